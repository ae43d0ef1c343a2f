/* The lexer's state: jinja_lex.c cuts text from tags, jinja_token.c cuts a tag into tokens. */
#ifndef SF_MODEL_JINJA_LEX_PRIV_H
#define SF_MODEL_JINJA_LEX_PRIV_H

#include "model/jinja_ast_priv.h"

enum { SF_JLEX_NEST = 200 };

typedef struct sf_jlexer {
    sf_jarena *arena;
    const char *name, *src; /* src[len], newlines normalised */
    size_t len;
    sf_err *err;
    sf_jtok *toks; /* [cap] */
    size_t n, cap;
    int line;
    size_t line_at, counted; /* offset of the current line, and how far lines were counted */
    bool line_starting;      /* the last tag ended with a newline, or none came yet */
    char open[SF_JLEX_NEST]; /* brackets to close */
    int n_open;
} sf_jlexer;

SF_CHECKED sf_code sf_jlex_fail(sf_jlexer *l, sf_code code, size_t at, const char *what);
SF_CHECKED sf_code sf_jlex_push(sf_jlexer *l, sf_jtok_type type, size_t at, sf_jtok **out);
size_t sf_jlex_space(const char *s, size_t len); /* bytes of the white space character at s, or 0; len > 0 */
/* One number, name, string or operator at *pos. */
SF_CHECKED sf_code sf_jlex_inner(sf_jlexer *l, size_t *pos);

#endif
