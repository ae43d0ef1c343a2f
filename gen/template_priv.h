/* Shared by the template parser's sources. */
#ifndef SF_GEN_TEMPLATE_PRIV_H
#define SF_GEN_TEMPLATE_PRIV_H

#include "template.h"

/* A place on a directive's line. */
typedef struct cursor {
    sf_arena *arena;
    sf_template *t;
    int line; /* index */
    const char *p;
    sf_err *err;
} cursor;

int sf_cursor_col(const cursor *c);
/* The next word; fails with "expected <what>" at the end of the line. */
SF_CHECKED sf_code sf_cursor_word(cursor *c, const char *what, sf_word *out);
/* Likewise, a C identifier. */
SF_CHECKED sf_code sf_cursor_name(cursor *c, const char *what, sf_word *out);
/* Takes the word if it comes next. */
bool sf_cursor_take(cursor *c, const char *word);
SF_CHECKED sf_code sf_cursor_expect(cursor *c, const char *word);
bool sf_cursor_more(cursor *c); /* whether a word other than a `#` comment follows */
/* Nothing but a `#` comment may follow. */
SF_CHECKED sf_code sf_cursor_end(cursor *c);
sf_code sf_cursor_fail(const cursor *c, int col, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* "lo..hi" or "lo..". Returns false when it is neither. */
bool sf_parse_range(const char *text, double open, double *lo, double *hi);

SF_CHECKED sf_code sf_template_param_line(cursor *c);
/* Compares the prelude's lines first..last (indices) with the declared defaults. */
SF_CHECKED sf_code sf_template_check_prelude(sf_template *t, int first, int last, sf_err *err);
/* Checks names and blocks of the lines from `first` on and fills kind, jump and words. */
SF_CHECKED sf_code sf_template_body(sf_arena *a, sf_template *t, int first, sf_err *err);
/* After "//@": the first word's start, or NULL when the line is no directive; *put for a "//@|" line. */
const char *sf_directive(const char *line, bool *put);

#endif
