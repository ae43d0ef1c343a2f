#include "expand.h"

#include <string.h>

typedef struct expander {
    const sf_template *t;
    const sf_value *values;
    const char *kernel_name;
    sf_buf *out;
    size_t start;  /* where this kernel begins in out */
    int next_line; /* the line (from 1) that a compiler would name for what comes next; 0 before the first */
    int depth;
    long steps; /* lines and rounds so far: nested loops over nothing must end too */
    const char *loop_name[SF_TEMPLATE_DEPTH], *loop_item[SF_TEMPLATE_DEPTH];
    sf_err *err;
} expander;

static const char *value_of(const expander *x, const char *name, char *buf, size_t size) {
    for (int i = x->depth; i-- > 0;)
        if (strcmp(x->loop_name[i], name) == 0) return x->loop_item[i];
    int i = 0;
    const sf_param *p = sf_param_find(x->t, name, &i);
    return p ? sf_param_text(p, x->values[i], buf, size) : NULL;
}

/* Keeps a compiler's messages on the template's lines. A directive may not cut a continued macro, so none is
 * written after a backslash. */
static sf_code sync_line(expander *x, int line) {
    const sf_buf *o = x->out;
    bool continued = o->len >= 2 && o->data[o->len - 1] == '\n' && o->data[o->len - 2] == '\\';
    if (line + 1 != x->next_line && !continued)
        SF_TRY(sf_buf_printf(x->out, x->err, "#line %d \"%s\"\n", line + 1, x->t->file));
    x->next_line = line + 2;
    if (x->out->len - x->start > SF_EXPAND_MAX_BYTES)
        return SF_FAIL_AT(x->err, SF_FULL, ((sf_loc){x->t->path, line + 1, 0}),
                          "expands to over %zu bytes, expected less", SF_EXPAND_MAX_BYTES);
    return SF_OK;
}

static sf_code step(expander *x, int line) {
    if (++x->steps <= SF_EXPAND_MAX_STEPS) return SF_OK;
    return SF_FAIL_AT(x->err, SF_FULL, ((sf_loc){x->t->path, line + 1, 0}),
                      "over %d lines and rounds, expected fewer", SF_EXPAND_MAX_STEPS);
}

static sf_code put_text(expander *x, const char *s) {
    char buf[64];
    for (;;) {
        const char *var = strstr(s, "${"), *end = var ? strchr(var, '}') : NULL;
        if (!end) return sf_buf_append(x->out, s, strlen(s), x->err);
        char name[80] = "";
        size_t len = (size_t)(end - var) - 2;
        if (len < sizeof name) memcpy(name, var + 2, len);
        const char *value = value_of(x, name, buf, sizeof buf);
        SF_TRY(sf_buf_append(x->out, s, (size_t)(var - s), x->err));
        if (value) SF_TRY(sf_buf_append(x->out, value, strlen(value), x->err));
        s = end + 1;
    }
}

static sf_code prelude(expander *x) {
    sf_buf *o = x->out;
    char buf[64];
    x->next_line = 0; /* the template's own lines are over for a while */
    SF_TRY(sf_buf_printf(o, x->err, "#define KERNEL_NAME %s\n", x->kernel_name));
    if (strcmp(x->t->backend, "cuda") == 0)
        SF_TRY(sf_buf_printf(o, x->err, "#define KERNEL_LAUNCH %s_launch\n", x->kernel_name));
    for (int i = 0; i < x->t->n_params; i++) {
        const sf_param *p = &x->t->params[i];
        const char *text = sf_param_text(p, x->values[i], buf, sizeof buf), *name = p->name.text;
        if (p->kind == SF_PARAM_INT) {
            SF_TRY(sf_buf_printf(o, x->err, "enum { %s = %s };\n", name, text));
        } else if (p->kind == SF_PARAM_FLOAT) {
            SF_TRY(sf_buf_printf(o, x->err, "static const float %s = %sf;\n", name, text));
        } else {
            SF_TRY(sf_buf_printf(o, x->err, "enum {"));
            for (int c = 0; c < p->n_choices; c++)
                SF_TRY(sf_buf_printf(o, x->err, " %s_%s,", name, p->choices[c]));
            SF_TRY(sf_buf_printf(o, x->err, " %s = %s_%s };\n", name, name, text));
        }
    }
    return SF_OK;
}

static bool condition(const expander *x, const sf_line *l) {
    for (int i = x->depth; i-- > 0;)
        if (strcmp(x->loop_name[i], l->left.text) == 0)
            return (strcmp(x->loop_item[i], l->right.text) == 0) != l->negated;
    int i = 0;
    char msg[160];
    const sf_param *p = sf_param_find(x->t, l->left.text, &i);
    sf_value v = {0};
    bool equal = p && sf_param_value(p, l->right.text, &v, msg, sizeof msg) == SF_OK &&
                 v.i == x->values[i].i && v.f == x->values[i].f;
    return equal != l->negated;
}

static sf_code block(expander *x, int first, int last);

static sf_code loop(expander *x, int line) {
    const sf_line *l = &x->t->lines[line];
    const sf_list *list = NULL;
    for (int i = 0; i < x->t->n_lists; i++)
        if (strcmp(x->t->lists[i].name.text, l->right.text) == 0) list = &x->t->lists[i];
    if (!list) return SF_OK;
    for (int i = 0; i < list->n; i++) {
        SF_TRY(step(x, line));
        x->loop_name[x->depth] = l->left.text;
        x->loop_item[x->depth++] = list->items[i];
        sf_code rc = block(x, line + 1, l->jump);
        x->depth--;
        if (rc != SF_OK) return rc;
    }
    return SF_OK;
}

static sf_code branch(expander *x, int line) {
    const sf_line *lines = x->t->lines;
    int other = lines[line].jump; /* its else or its end */
    if (condition(x, &lines[line])) return block(x, line + 1, other);
    if (lines[other].kind == SF_LINE_ELSE) return block(x, other + 1, lines[other].jump);
    return SF_OK;
}

/* Lines first..last-1. */
static sf_code block(expander *x, int first, int last) {
    for (int i = first; i < last; i++) {
        const sf_line *l = &x->t->lines[i];
        SF_TRY(step(x, i));
        switch (l->kind) {
        case SF_LINE_TEXT:
        case SF_LINE_PUT: {
            bool put = l->kind == SF_LINE_PUT;
            const char *text = put ? strchr(l->text, '|') + 1 : l->text;
            SF_TRY(sync_line(x, i));
            if (put)
                SF_TRY(put_text(x, text + (*text == ' ')));
            else
                SF_TRY(sf_buf_append(x->out, text, strlen(text), x->err));
            SF_TRY(sf_buf_append(x->out, "\n", 1, x->err));
            break;
        }
        case SF_LINE_PRELUDE:
            SF_TRY(prelude(x));
            break;
        case SF_LINE_IF:
            SF_TRY(branch(x, i));
            i = x->t->lines[i].jump;
            if (x->t->lines[i].kind == SF_LINE_ELSE) i = x->t->lines[i].jump;
            break;
        case SF_LINE_FOR:
            SF_TRY(loop(x, i));
            i = x->t->lines[i].jump;
            break;
        default:
            break;
        }
    }
    return SF_OK;
}

sf_code sf_expand(const sf_template *t, const sf_value *values, const char *kernel_name, sf_buf *out,
                  sf_err *err) {
    expander x = {
        .t = t, .values = values, .kernel_name = kernel_name, .out = out, .start = out->len, .err = err};
    return block(&x, 0, t->n_lines);
}

sf_code sf_expand_tile(const sf_template *t, const sf_value *values, sf_buf *out, sf_err *err) {
    expander x = {.t = t, .values = values, .out = out, .start = out->len, .err = err};
    return t->tile.text ? put_text(&x, t->tile.text) : SF_OK;
}
