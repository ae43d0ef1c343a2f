/* A kernel template, read and checked (templates/README.md is its language). A parsed template is sound:
 * every name in it is declared, every declared name is used, its blocks close, and its prelude says the
 * defaults. */
#ifndef SF_GEN_TEMPLATE_H
#define SF_GEN_TEMPLATE_H

#include "arena.h"
#include "device/plan.h"

#include <stdbool.h>

#define SF_TEMPLATE_MAX_BYTES ((size_t)256 << 10)
#define SF_TEMPLATE_MAX_LINES 4000
#define SF_ROW_RANGES_MAX     4
#define SF_PARAMS_MAX         32
#define SF_CHOICES_MAX        16
#define SF_LISTS_MAX          16
#define SF_LIST_ITEMS_MAX     64
#define SF_TEMPLATE_DEPTH     8

typedef enum sf_param_kind { SF_PARAM_INT, SF_PARAM_FLOAT, SF_PARAM_ENUM } sf_param_kind;

/* A word of a directive, and the column at which it stands. text == NULL: none. */
typedef struct sf_word {
    const char *text;
    int col;
} sf_word;

/* A parameter's value: i for int and for enum (index), f for float. */
typedef struct sf_value {
    int64_t i;
    double f;
} sf_value;

typedef struct sf_param {
    sf_param_kind kind;
    int line; /* index into lines */
    sf_word name, def_word, from;
    sf_value def;
    bool ranged;
    double lo, hi;
    int n_choices;
    const char *choices[SF_CHOICES_MAX + 1]; /* NULL-terminated */
    bool used;
} sf_param;

typedef struct sf_list {
    int line;
    sf_word name;
    int n;
    const char *items[SF_LIST_ITEMS_MAX];
    bool used;
} sf_list;

typedef enum sf_line_kind {
    SF_LINE_TEXT,    /* copied */
    SF_LINE_SKIP,    /* head directives, lists, the prelude's lines */
    SF_LINE_PRELUDE, /* replaced by this kernel's values */
    SF_LINE_IF,
    SF_LINE_ELSE,
    SF_LINE_FOR,
    SF_LINE_END,
    SF_LINE_PUT /* "//@|": copied with ${} replaced */
} sf_line_kind;

typedef struct sf_line {
    const char *text; /* NUL-terminated, without the newline */
    sf_line_kind kind;
    int jump;            /* if: its else or end; else, for: its end */
    sf_word left, right; /* if left == right; for left in right */
    bool negated;        /* if left != right */
} sf_line;

/* What a kernel does for a library: makes the copy of the weight, or SwiGLU of the product. */
typedef enum sf_library_part { SF_PART_WEIGHT, SF_PART_SWIGLU } sf_library_part;

typedef struct sf_row_range {
    int lo, hi; /* INT_MAX: open */
} sf_row_range;

typedef struct sf_template {
    const char *path; /* for messages */
    const char *file; /* for generated files: "templates/cpu/gemm.c", whatever the folder's place */
    char sha256[65];
    const char *name, *backend, *order;
    const char *library; /* whose product the kernel stands beside; NULL: none */
    sf_library_part part;
    int library_line;
    sf_word tile; /* pattern of the kernel's name, and its line */
    int tile_line;
    sf_op op;
    bool serves[SF_CLASS_COUNT];
    sf_row_range rows[SF_ROW_RANGES_MAX]; /* ascending, apart */
    int n_rows, rows_line, n_params, n_lists, n_lines, prelude_end;
    sf_param params[SF_PARAMS_MAX];
    sf_list lists[SF_LISTS_MAX];
    sf_line *lines; /* [n_lines] */
} sf_template;

/* Parses len bytes. Errors (SF_FORMAT, SF_INVALID, SF_FULL) show the line with a caret under the fault. */
SF_CHECKED sf_code sf_template_parse(sf_arena *a, const char *path, const char *file, const char *text,
                                     size_t len, sf_template **out, sf_err *err);

/* Error at a column of a line (index; col counts from 1), which it shows with a caret. */
sf_code sf_template_fail(const sf_template *t, int line, int col, sf_code code, sf_err *err, const char *fmt,
                         ...) __attribute__((format(printf, 6, 7)));

/* Class of the kernels: pinned for a template that serves both, because it keeps the pinned promise. */
sf_class sf_template_class(const sf_template *t);

/* Reads text as a value of p. SF_INVALID: msg (size bytes) gets "x, expected 1..16". */
SF_CHECKED sf_code sf_param_value(const sf_param *p, const char *text, sf_value *out, char *msg, size_t size);
/* Whether v lies in the parameter's range; msg as above. */
bool sf_param_in_range(const sf_param *p, sf_value v, char *msg, size_t size);
/* The value as it is written in C and for ${}; returns buf. size >= 40. */
const char *sf_param_text(const sf_param *p, sf_value v, char *buf, size_t size);
const sf_param *sf_param_find(const sf_template *t, const char *name, int *index); /* NULL: none */

#endif
