/* Tokens and the tree of a template. */
#ifndef SF_MODEL_JINJA_AST_PRIV_H
#define SF_MODEL_JINJA_AST_PRIV_H

#include "model/jinja_arena_priv.h"
#include "model/jinja_value_priv.h"

typedef enum sf_jtok_type {
    SF_JT_EOF,
    SF_JT_DATA,
    SF_JT_VAR_BEGIN,
    SF_JT_VAR_END,
    SF_JT_BLOCK_BEGIN,
    SF_JT_BLOCK_END,
    SF_JT_NAME,
    SF_JT_STRING,
    SF_JT_INT,
    SF_JT_FLOAT,
    SF_JT_OP /* op: an operator */
} sf_jtok_type;

enum { /* operators of two characters; those of one are the character */
       SF_JOP_POW = '*' << 8 | '*',
       SF_JOP_FLOORDIV = '/' << 8 | '/',
       SF_JOP_EQ = '=' << 8 | '=',
       SF_JOP_NE = '!' << 8 | '=',
       SF_JOP_LE = '<' << 8 | '=',
       SF_JOP_GE = '>' << 8 | '=',
       SF_JOP_IN = 'i' << 8 | 'n',
       SF_JOP_NOTIN = 'n' << 8 | 'i'
};

typedef struct sf_jtok {
    sf_jtok_type type;
    int op, line, col;
    const char *text; /* NAME: NUL-terminated; DATA, STRING: [len], decoded */
    size_t len;
    int64_t i;
    double f;
} sf_jtok;

/* Cuts source (any bytes) into tokens that end with EOF; all memory from the arena. */
SF_CHECKED sf_code sf_jinja_lex(sf_jarena *a, const char *name, const char *source, size_t len, sf_jtok **out,
                                size_t *n, sf_err *err);

typedef enum sf_jnode_type {
    SF_JN_CONST,    /* value */
    SF_JN_NAME,     /* name */
    SF_JN_NSREF,    /* name.attr, as a target */
    SF_JN_LIST,     /* list */
    SF_JN_TUPLE,    /* list */
    SF_JN_DICT,     /* list: key, value, key, value ... */
    SF_JN_ATTR,     /* a . name */
    SF_JN_ITEM,     /* a [ b ] */
    SF_JN_SLICE,    /* a [ list of 3, absent ones NULL ] */
    SF_JN_CALL,     /* a ( list, kw ) */
    SF_JN_FILTER,   /* a | def ( list, kw ); a NULL: of a block */
    SF_JN_TEST,     /* a is def ( list, kw ) */
    SF_JN_UNARY,    /* op a */
    SF_JN_NOT,      /* a */
    SF_JN_AND,      /* a b */
    SF_JN_OR,       /* a b */
    SF_JN_COND,     /* a if b else c */
    SF_JN_BINARY,   /* a op b */
    SF_JN_CONCAT,   /* list */
    SF_JN_COMPARE,  /* a, then list[i] compared by list[i]->op */
    SF_JN_OPERAND,  /* op a */
    SF_JN_BODY,     /* list */
    SF_JN_DATA,     /* value */
    SF_JN_PRINT,    /* a */
    SF_JN_IF,       /* if a: b, else c */
    SF_JN_FOR,      /* for a in b if d: body, else c */
    SF_JN_SET,      /* a = b */
    SF_JN_SETBLOCK, /* a = b of body (b NULL: no filter) */
    SF_JN_MACRO,    /* name (list of NAME, defaults kw) body */
    SF_JN_WITH,     /* list: target, value ...; body */
    SF_JN_CAPTURE,  /* filter b of body */
    SF_JN_SCOPE,    /* body */
    SF_JN_BREAK,
    SF_JN_CONTINUE
} sf_jnode_type;

typedef struct sf_jnode {
    sf_jnode_type type;
    int op, line, col;
    const char *name, *attr;
    struct sf_jnode *a, *b, *c, *d, *body;
    struct sf_jnode **list; /* [n] */
    size_t n;
    const char **kw_names; /* [n_kw] */
    struct sf_jnode **kw;  /* [n_kw]; MACRO: defaults of the last n_kw parameters */
    size_t n_kw;
    sf_jv value;
    const void *def;      /* FILTER: sf_jfilter; TEST: sf_jtest */
    bool varargs, kwargs; /* MACRO: the body uses the name */
} sf_jnode;

/* Parses a template into a BODY node. Errors carry name:line:column. */
SF_CHECKED sf_code sf_jinja_parse(sf_jarena *a, const char *name, const char *source, size_t len,
                                  sf_jnode **out, sf_err *err);

/* The parser's state, shared by the statements (jinja_parse.c) and the expressions (jinja_expr.c). */
typedef struct sf_jparser {
    sf_jarena *arena;
    const char *name;
    const sf_jtok *tok; /* the current token; EOF is the last */
    sf_err *err;
    int depth;           /* of the recursion */
    int in_for, in_loop; /* enclosing for statements; those that break may leave */
    sf_jnode *macro;
} sf_jparser;

/* What an expression may be: the whole of it, without `a if b else c`, or a target's parts. */
typedef enum sf_jtuple_mode {
    SF_JTUPLE_FULL,
    SF_JTUPLE_NO_COND,
    SF_JTUPLE_TARGET,
    SF_JTUPLE_TARGET_NS
} sf_jtuple_mode;

SF_CHECKED sf_code sf_jparse_expr(sf_jparser *p, sf_jnode **out);
/* end: a name that ends the tuple too ("in", "recursive"), or NULL. */
SF_CHECKED sf_code sf_jparse_tuple(sf_jparser *p, sf_jtuple_mode mode, const char *end, bool parens,
                                   sf_jnode **out);
SF_CHECKED sf_code sf_jparse_filters(sf_jparser *p, sf_jnode *of, bool inline_first, sf_jnode **out);

/* jinja_cursor.c. Errors carry the current token's place. */
SF_CHECKED sf_code sf_jparse_fail(const sf_jparser *p, sf_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Whether the current token is of this type (and, of SF_JT_OP, this operator) or this name. */
bool sf_jparse_at(const sf_jparser *p, sf_jtok_type type, int op);
bool sf_jparse_at_name(const sf_jparser *p, const char *name);
bool sf_jparse_skip_name(sf_jparser *p, const char *name);
/* "'x'" or "end of template", for messages. Returns buf. */
const char *sf_jparse_describe(const sf_jtok *t, char buf[64]);
/* Steps past the token, or fails with what was found and `what` was expected. */
SF_CHECKED sf_code sf_jparse_expect(sf_jparser *p, sf_jtok_type type, int op, const char *what);
/* A node at the current token's place, in the arena. */
SF_CHECKED sf_code sf_jparse_node(sf_jparser *p, sf_jnode_type type, sf_jnode **out);
SF_CHECKED sf_code sf_jparse_append(sf_jparser *p, sf_jnode *list, sf_jnode *item);
/* Room for one more pointer in the array at *array, which holds n; doubles at powers of two. */
SF_CHECKED sf_code sf_jparse_grow(sf_jparser *p, void *array, size_t n);

#endif
