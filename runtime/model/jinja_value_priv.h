/* Values of the Jinja subset. They behave as Python's do under jinja2; strings also carry, byte by byte,
 * whether they came from the messages ("plain"). All memory belongs to the rendering's arena. */
#ifndef SF_MODEL_JINJA_VALUE_PRIV_H
#define SF_MODEL_JINJA_VALUE_PRIV_H

#include "base/err.h"

#include <stdbool.h>

typedef enum sf_jkind {
    SF_JV_MISSING = 0, /* an argument that was not given */
    SF_JV_UNDEF,
    SF_JV_NONE,
    SF_JV_BOOL,
    SF_JV_INT,
    SF_JV_FLOAT,
    SF_JV_STR,
    SF_JV_LIST,
    SF_JV_TUPLE,
    SF_JV_RANGE,
    SF_JV_DICT,
    SF_JV_VIEW, /* dict.items() and kin: can be iterated again and has a length */
    SF_JV_ITER, /* a generator: iterated once */
    SF_JV_NS,   /* namespace() */
    SF_JV_LOOP,
    SF_JV_FUNC
} sf_jkind;

struct sf_jx;
struct sf_jiter;
struct sf_jloop;

typedef struct sf_jstr {
    const char *data;     /* [len], valid UTF-8 */
    const uint8_t *plain; /* [len], nonzero: from the messages; NULL: none of it */
    size_t len, chars;    /* bytes, code points */
} sf_jstr;

typedef struct sf_jv {
    uint8_t kind;  /* sf_jkind */
    uint8_t plain; /* numbers, containers: what is printed for them came from the messages */
    uint8_t safe;  /* strings: jinja's Markup */
    union {
        bool b;
        int64_t i;
        double f;
        const sf_jstr *s;
        struct sf_jlist *list; /* LIST, TUPLE */
        struct sf_jdict *dict; /* DICT, NS */
        const struct sf_jrange *range;
        struct sf_jview *view;
        struct sf_jiter *iter;
        struct sf_jloop *loop;
        const struct sf_jfunc *fn;
        const char *hint; /* UNDEF: what was looked for, for messages */
    } u;
} sf_jv;

typedef struct sf_jlist {
    sf_jv *items; /* [n] */
    size_t n, cap;
} sf_jlist;

typedef struct sf_jdict {
    sf_jv *keys, *vals; /* [n], in order of insertion */
    size_t n, cap;
} sf_jdict;

typedef struct sf_jrange {
    int64_t start, stop, step, n;
} sf_jrange;

typedef struct sf_jview {
    sf_jdict *dict;
    enum { SF_JVIEW_KEYS, SF_JVIEW_VALUES, SF_JVIEW_ITEMS } of;
} sf_jview;

/* A growing string. */
typedef struct sf_jout {
    char *data;     /* [cap] */
    uint8_t *plain; /* [cap] */
    size_t len, cap;
    bool any_plain;
} sf_jout;

static inline sf_jv sf_jv_none(void) {
    return (sf_jv){.kind = SF_JV_NONE};
}
static inline sf_jv sf_jv_bool(bool b) {
    return (sf_jv){.kind = SF_JV_BOOL, .u.b = b};
}
static inline sf_jv sf_jv_int(int64_t i) {
    return (sf_jv){.kind = SF_JV_INT, .u.i = i};
}
static inline sf_jv sf_jv_float(double f) {
    return (sf_jv){.kind = SF_JV_FLOAT, .u.f = f};
}
static inline sf_jv sf_jv_undef(const char *hint) {
    return (sf_jv){.kind = SF_JV_UNDEF, .u.hint = hint};
}
static inline sf_jv sf_jv_of_str(const sf_jstr *s) {
    return (sf_jv){.kind = SF_JV_STR, .u.s = s};
}
static inline bool sf_jv_is_num(sf_jv v) {
    return v.kind >= SF_JV_BOOL && v.kind <= SF_JV_FLOAT;
}

/* Strings. data is borrowed by sf_jv_str_borrow (and must be valid UTF-8), copied by sf_jv_str. */
SF_CHECKED sf_code sf_jv_str_borrow(struct sf_jx *x, const char *data, const uint8_t *plain, size_t len,
                                    sf_jv *out);
SF_CHECKED sf_code sf_jv_str(struct sf_jx *x, const char *data, size_t len, uint8_t plain, sf_jv *out);
/* Code points from..to (already within 0..chars); keeps Markup. */
SF_CHECKED sf_code sf_jv_substr(struct sf_jx *x, sf_jv s, size_t from, size_t to, sf_jv *out);
size_t sf_jv_offset(const sf_jstr *s, size_t chars);             /* bytes before that code point */
int32_t sf_jv_char(const char *data, size_t len, size_t *bytes); /* first code point; len > 0 */

SF_CHECKED sf_code sf_jv_list(struct sf_jx *x, sf_jkind kind, size_t cap, sf_jv *out);
SF_CHECKED sf_code sf_jv_push(struct sf_jx *x, sf_jv list, sf_jv item);
SF_CHECKED sf_code sf_jv_dict(struct sf_jx *x, size_t cap, sf_jv *out);
SF_CHECKED sf_code sf_jv_put(struct sf_jx *x, sf_jv dict, sf_jv key, sf_jv val);
/* found = NULL: absent. Unhashable keys are an error, as in Python. */
SF_CHECKED sf_code sf_jv_find(struct sf_jx *x, const sf_jdict *d, sf_jv key, const sf_jv **found);

SF_CHECKED sf_code sf_jout_add(struct sf_jx *x, sf_jout *o, const char *data, size_t len,
                               const uint8_t *plain,
                               uint8_t fill); /* plain NULL: every byte is marked with fill */
SF_CHECKED sf_code sf_jout_str(struct sf_jx *x, sf_jout *o, const sf_jstr *s);
SF_CHECKED sf_code sf_jout_char(struct sf_jx *x, sf_jout *o, int32_t cp, uint8_t plain);
SF_CHECKED sf_code sf_jout_take(struct sf_jx *x, sf_jout *o, sf_jv *out); /* the string; o is spent */

/* str(v), repr(v) and json.dumps(v) appended. indent < 0: one line. */
typedef struct sf_jdump {
    const char *indent; /* one level; NULL: one line */
    size_t indent_len;
    const sf_jstr *item_sep, *key_sep;
    bool ascii, sort;
} sf_jdump;
SF_CHECKED sf_code sf_jv_print(struct sf_jx *x, sf_jout *o, sf_jv v);
SF_CHECKED sf_code sf_jv_repr(struct sf_jx *x, sf_jout *o, sf_jv v);
SF_CHECKED sf_code sf_jv_dump(struct sf_jx *x, sf_jout *o, sf_jv v, const sf_jdump *how, int level);
SF_CHECKED sf_code sf_jv_to_str(struct sf_jx *x, sf_jv v, sf_jv *out); /* soft_str: a string stays as it is */
char *sf_jv_float_text(double f, char buf[40]);                        /* Python's repr */

#endif
