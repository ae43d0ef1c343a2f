/* What statements and expressions share of the parser: the current token, and making nodes. */
#include "model/jinja_ast_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sf_code sf_jparse_fail(const sf_jparser *p, sf_code code, const char *fmt, ...) {
    char msg[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    return SF_FAIL_AT(p->err, code, ((sf_loc){p->name, p->tok->line, p->tok->col}), "%s", msg);
}

bool sf_jparse_at(const sf_jparser *p, sf_jtok_type type, int op) {
    return p->tok->type == type && (type != SF_JT_OP || p->tok->op == op);
}

bool sf_jparse_at_name(const sf_jparser *p, const char *name) {
    return p->tok->type == SF_JT_NAME && strcmp(p->tok->text, name) == 0;
}

bool sf_jparse_skip_name(sf_jparser *p, const char *name) {
    if (!sf_jparse_at_name(p, name)) return false;
    p->tok++;
    return true;
}

const char *sf_jparse_describe(const sf_jtok *t, char buf[64]) {
    static const char *const names[] = {
        "end of template", "text",    "'{{'",  "'}}'",    "'{%'", "'%}'", "name",
        "string",          "integer", "float", "operator"};
    if (t->type == SF_JT_NAME)
        snprintf(buf, 64, "'%.40s'", t->text);
    else if (t->type == SF_JT_OP && t->op > 255)
        snprintf(buf, 64, "'%c%c'", t->op >> 8, t->op & 255);
    else if (t->type == SF_JT_OP)
        snprintf(buf, 64, "'%c'", t->op);
    else
        snprintf(buf, 64, "%s", names[t->type]);
    return buf;
}

sf_code sf_jparse_expect(sf_jparser *p, sf_jtok_type type, int op, const char *what) {
    char buf[64];
    if (!sf_jparse_at(p, type, op))
        return sf_jparse_fail(p, SF_FORMAT, "found %s, expected %s", sf_jparse_describe(p->tok, buf), what);
    if (type != SF_JT_EOF) p->tok++;
    return SF_OK;
}

sf_code sf_jparse_node(sf_jparser *p, sf_jnode_type type, sf_jnode **out) {
    sf_jnode *n = sf_jarena_get(p->arena, sizeof *n);
    if (!n) return sf_jparse_fail(p, sf_jarena_code(p->arena), "no room for the template");
    n->type = type;
    n->line = p->tok->line;
    n->col = p->tok->col;
    *out = n;
    return SF_OK;
}

sf_code sf_jparse_grow(sf_jparser *p, void *array, size_t n) {
    if (n & (n - 1)) return SF_OK;
    void *fresh = sf_jarena_get(p->arena, (n ? n * 2 : 1) * sizeof(void *));
    if (!fresh) return sf_jparse_fail(p, sf_jarena_code(p->arena), "no room for the template");
    if (n) memcpy(fresh, *(void **)array, n * sizeof(void *));
    memcpy(array, &fresh, sizeof fresh);
    return SF_OK;
}

sf_code sf_jparse_append(sf_jparser *p, sf_jnode *list, sf_jnode *item) {
    SF_TRY(sf_jparse_grow(p, &list->list, list->n));
    list->list[list->n++] = item;
    return SF_OK;
}
