/* Expressions, in jinja2's order of precedence (parser.py). */
#include "model/jinja_ast_priv.h"
#include "model/jinja_eval_priv.h"

#include <string.h>

enum { MAX_DEPTH = 150 };

static sf_code parse_unary(sf_jparser *p, bool filters, sf_jnode **out);
static sf_code parse_or(sf_jparser *p, sf_jnode **out);

static bool at_op(const sf_jparser *p, int op) {
    return sf_jparse_at(p, SF_JT_OP, op);
}

static bool skip_op(sf_jparser *p, int op) {
    if (!at_op(p, op)) return false;
    p->tok++;
    return true;
}

static sf_code string_value(sf_jparser *p, const char *data, size_t len, sf_jv *out) {
    sf_jstr *s = sf_jarena_get(p->arena, sizeof *s);
    if (!s) return sf_jparse_fail(p, sf_jarena_code(p->arena), "no room for the template");
    *s = (sf_jstr){.data = data, .len = len};
    for (size_t i = 0; i < len; i++)
        s->chars += ((unsigned char)data[i] & 0xc0) != 0x80;
    *out = sf_jv_of_str(s);
    return SF_OK;
}

/* Adjacent string literals are one. */
static sf_code parse_string(sf_jparser *p, sf_jnode *n) {
    size_t len = 0, at = 0;
    const sf_jtok *first = p->tok;
    for (; p->tok->type == SF_JT_STRING; p->tok++)
        len += p->tok->len;
    char *data = sf_jarena_get(p->arena, len + 1);
    if (!data) return sf_jparse_fail(p, sf_jarena_code(p->arena), "no room for the template");
    for (const sf_jtok *t = first; t < p->tok; t++) {
        memcpy(data + at, t->text, t->len);
        at += t->len;
    }
    return string_value(p, data, len, &n->value);
}

static sf_code parse_name(sf_jparser *p, bool ns, sf_jnode *n) {
    const char *s = p->tok->text;
    p->tok++;
    if (!strcmp(s, "true") || !strcmp(s, "True") || !strcmp(s, "false") || !strcmp(s, "False")) {
        n->type = SF_JN_CONST;
        n->value = sf_jv_bool(s[0] == 't' || s[0] == 'T');
        return SF_OK;
    }
    if (!strcmp(s, "none") || !strcmp(s, "None")) {
        n->type = SF_JN_CONST;
        n->value = sf_jv_none();
        return SF_OK;
    }
    n->type = SF_JN_NAME;
    n->name = s;
    if (p->macro) {
        p->macro->varargs |= !strcmp(s, "varargs");
        p->macro->kwargs |= !strcmp(s, "kwargs");
    }
    if (ns && skip_op(p, '.')) {
        n->type = SF_JN_NSREF;
        n->attr = p->tok->text;
        return sf_jparse_expect(p, SF_JT_NAME, 0, "an attribute name");
    }
    return SF_OK;
}

/* List and dictionary displays; the opening bracket is the current token. */
static sf_code parse_display(sf_jparser *p, sf_jnode *n) {
    bool dict = at_op(p, '{');
    int close = dict ? '}' : ']';
    n->type = dict ? SF_JN_DICT : SF_JN_LIST;
    p->tok++;
    while (!at_op(p, close)) {
        if (n->n) SF_TRY(sf_jparse_expect(p, SF_JT_OP, ',', "','"));
        if (at_op(p, close)) break;
        sf_jnode *item = NULL;
        SF_TRY(sf_jparse_expr(p, &item));
        SF_TRY(sf_jparse_append(p, n, item));
        if (!dict) continue;
        SF_TRY(sf_jparse_expect(p, SF_JT_OP, ':', "':'"));
        SF_TRY(sf_jparse_expr(p, &item));
        SF_TRY(sf_jparse_append(p, n, item));
    }
    p->tok++;
    return SF_OK;
}

static sf_code parse_primary(sf_jparser *p, bool ns, sf_jnode **out) {
    sf_jnode *n = NULL;
    char buf[64];
    SF_TRY(sf_jparse_node(p, SF_JN_CONST, &n));
    *out = n;
    const sf_jtok *t = p->tok;
    if (t->type == SF_JT_NAME) return parse_name(p, ns, n);
    if (t->type == SF_JT_STRING) return parse_string(p, n);
    if (t->type == SF_JT_INT || t->type == SF_JT_FLOAT) {
        n->value = t->type == SF_JT_INT ? sf_jv_int(t->i) : sf_jv_float(t->f);
        p->tok++;
        return SF_OK;
    }
    if (at_op(p, '[') || at_op(p, '{')) return parse_display(p, n);
    if (!skip_op(p, '(')) return sf_jparse_fail(p, SF_FORMAT, "unexpected %s", sf_jparse_describe(t, buf));
    SF_TRY(sf_jparse_tuple(p, SF_JTUPLE_FULL, NULL, true, out));
    return sf_jparse_expect(p, SF_JT_OP, ')', "')'");
}

static sf_code parse_slice_part(sf_jparser *p, sf_jnode *slice) {
    sf_jnode *part = NULL;
    if (!at_op(p, ':') && !at_op(p, ']') && !at_op(p, ',')) SF_TRY(sf_jparse_expr(p, &part));
    return sf_jparse_append(p, slice, part);
}

static sf_code parse_subscript(sf_jparser *p, sf_jnode **node) {
    sf_jnode *n = NULL;
    SF_TRY(sf_jparse_node(p, SF_JN_ITEM, &n));
    n->a = *node;
    *node = n;
    if (skip_op(p, '.')) {
        if (p->tok->type == SF_JT_INT) {
            return parse_primary(p, false, &n->b);
        }
        n->type = SF_JN_ATTR;
        n->name = p->tok->text;
        return sf_jparse_expect(p, SF_JT_NAME, 0, "a name or a number");
    }
    p->tok++;
    if (at_op(p, ']')) return sf_jparse_fail(p, SF_UNSUPPORTED, "empty subscript");
    if (!at_op(p, ':')) {
        SF_TRY(sf_jparse_expr(p, &n->b));
        if (skip_op(p, ']')) return SF_OK;
    }
    if (at_op(p, ':')) {
        n->type = SF_JN_SLICE;
        SF_TRY(sf_jparse_append(p, n, n->b));
        for (int k = 0; k < 2; k++)
            SF_TRY(skip_op(p, ':') ? parse_slice_part(p, n) : sf_jparse_append(p, n, NULL));
    }
    if (at_op(p, ',')) return sf_jparse_fail(p, SF_UNSUPPORTED, "subscripts with ',' are not supported");
    return sf_jparse_expect(p, SF_JT_OP, ']', "']'");
}

/* The arguments of a call, a filter or a test; '(' is the current token. */
static sf_code parse_args(sf_jparser *p, sf_jnode *n) {
    p->tok++;
    bool first = true;
    while (!at_op(p, ')')) {
        if (!first) SF_TRY(sf_jparse_expect(p, SF_JT_OP, ',', "',' or ')'"));
        if (!first && at_op(p, ')')) break;
        first = false;
        sf_jnode *value = NULL;
        if (at_op(p, '*') || at_op(p, SF_JOP_POW))
            return sf_jparse_fail(p, SF_UNSUPPORTED, "'*' and '**' arguments are not supported");
        if (p->tok->type == SF_JT_NAME && p->tok[1].type == SF_JT_OP && p->tok[1].op == '=') {
            const char *name = p->tok->text;
            p->tok += 2;
            for (size_t i = 0; i < n->n_kw; i++)
                if (!strcmp(n->kw_names[i], name))
                    return sf_jparse_fail(p, SF_FORMAT, "keyword argument '%.60s' repeated", name);
            SF_TRY(sf_jparse_expr(p, &value));
            SF_TRY(sf_jparse_grow(p, &n->kw, n->n_kw));
            SF_TRY(sf_jparse_grow(p, &n->kw_names, n->n_kw));
            n->kw_names[n->n_kw] = name;
            n->kw[n->n_kw++] = value;
            continue;
        }
        if (n->n_kw) return sf_jparse_fail(p, SF_FORMAT, "positional argument after a keyword argument");
        SF_TRY(sf_jparse_expr(p, &value));
        SF_TRY(sf_jparse_append(p, n, value));
    }
    p->tok++;
    return SF_OK;
}

static sf_code parse_call(sf_jparser *p, sf_jnode **node) {
    sf_jnode *n = NULL;
    SF_TRY(sf_jparse_node(p, SF_JN_CALL, &n));
    n->a = *node;
    *node = n;
    return parse_args(p, n);
}

static sf_code parse_postfix(sf_jparser *p, sf_jnode **node) {
    for (;;) {
        if (at_op(p, '.') || at_op(p, '['))
            SF_TRY(parse_subscript(p, node));
        else if (at_op(p, '('))
            SF_TRY(parse_call(p, node));
        else
            return SF_OK;
    }
}

sf_code sf_jparse_filters(sf_jparser *p, sf_jnode *of, bool inline_first, sf_jnode **out) {
    while (inline_first || at_op(p, '|')) {
        if (!inline_first) p->tok++;
        inline_first = false;
        sf_jnode *n = NULL;
        SF_TRY(sf_jparse_node(p, SF_JN_FILTER, &n));
        const char *name = p->tok->text;
        bool known = p->tok->type == SF_JT_NAME;
        n->def = known ? sf_jfilter_find(name, strlen(name)) : NULL;
        if (known && !n->def)
            return sf_jparse_fail(p, SF_UNSUPPORTED, "filter '%.60s' is not supported", name);
        SF_TRY(sf_jparse_expect(p, SF_JT_NAME, 0, "a filter's name"));
        if (at_op(p, '.')) return sf_jparse_fail(p, SF_UNSUPPORTED, "dotted filter names are not supported");
        n->a = of;
        of = n;
        if (at_op(p, '(')) SF_TRY(parse_args(p, n));
    }
    *out = of;
    return SF_OK;
}

static bool starts_test_arg(const sf_jparser *p) {
    if (p->tok->type == SF_JT_NAME)
        return !sf_jparse_at_name(p, "else") && !sf_jparse_at_name(p, "or") && !sf_jparse_at_name(p, "and");
    return p->tok->type == SF_JT_STRING || p->tok->type == SF_JT_INT || p->tok->type == SF_JT_FLOAT ||
           at_op(p, '[') || at_op(p, '{');
}

static sf_code parse_test(sf_jparser *p, sf_jnode **node) {
    p->tok++;
    sf_jnode *n = NULL, *not = NULL;
    if (sf_jparse_at_name(p, "not")) {
        SF_TRY(sf_jparse_node(p, SF_JN_NOT, &not ));
        p->tok++;
    }
    SF_TRY(sf_jparse_node(p, SF_JN_TEST, &n));
    const char *name = p->tok->text;
    bool known = p->tok->type == SF_JT_NAME;
    n->def = known ? sf_jtest_find(name, strlen(name)) : NULL;
    if (known && !n->def) return sf_jparse_fail(p, SF_UNSUPPORTED, "test '%.60s' is not supported", name);
    SF_TRY(sf_jparse_expect(p, SF_JT_NAME, 0, "a test's name"));
    if (at_op(p, '.')) return sf_jparse_fail(p, SF_UNSUPPORTED, "dotted test names are not supported");
    n->a = *node;
    *node = n;
    if (at_op(p, '(')) {
        SF_TRY(parse_args(p, n));
    } else if (starts_test_arg(p)) {
        sf_jnode *arg = NULL;
        if (sf_jparse_at_name(p, "is")) return sf_jparse_fail(p, SF_FORMAT, "tests with 'is' do not chain");
        SF_TRY(parse_primary(p, false, &arg));
        SF_TRY(parse_postfix(p, &arg));
        SF_TRY(sf_jparse_append(p, n, arg));
    }
    if (not ) {
        not ->a = n;
        *node = not ;
    }
    return SF_OK;
}

static sf_code parse_unary(sf_jparser *p, bool filters, sf_jnode **out) {
    if (++p->depth > MAX_DEPTH) return sf_jparse_fail(p, SF_FULL, "template nests too deeply");
    if (at_op(p, '-') || at_op(p, '+')) {
        SF_TRY(sf_jparse_node(p, SF_JN_UNARY, out));
        (*out)->op = p->tok->op;
        p->tok++;
        SF_TRY(parse_unary(p, false, &(*out)->a));
    } else {
        SF_TRY(parse_primary(p, false, out));
    }
    SF_TRY(parse_postfix(p, out));
    while (filters) {
        if (at_op(p, '|'))
            SF_TRY(sf_jparse_filters(p, *out, false, out));
        else if (sf_jparse_at_name(p, "is"))
            SF_TRY(parse_test(p, out));
        else if (at_op(p, '('))
            SF_TRY(parse_call(p, out));
        else
            break;
    }
    p->depth--;
    return SF_OK;
}

/* Left-associative binary levels, loosest first; level 1 is '~', which gathers its operands in a list. */
static bool level_op(const sf_jparser *p, int level) {
    if (p->tok->type != SF_JT_OP) return false;
    int op = p->tok->op;
    if (level == 0) return op == '+' || op == '-';
    if (level == 1) return op == '~';
    if (level == 2) return op == '*' || op == '/' || op == SF_JOP_FLOORDIV || op == '%';
    return op == SF_JOP_POW;
}

static sf_code parse_binary(sf_jparser *p, int level, sf_jnode **out) {
    if (level == 4) return parse_unary(p, true, out);
    SF_TRY(parse_binary(p, level + 1, out));
    while (level_op(p, level)) {
        sf_jnode *n = *out, *right;
        if (level != 1 || n->type != SF_JN_CONCAT) {
            SF_TRY(sf_jparse_node(p, level == 1 ? SF_JN_CONCAT : SF_JN_BINARY, &n));
            n->op = p->tok->op;
            n->a = *out;
            if (level == 1) SF_TRY(sf_jparse_append(p, n, *out));
        }
        p->tok++;
        SF_TRY(parse_binary(p, level + 1, &right));
        n->b = right;
        if (level == 1) SF_TRY(sf_jparse_append(p, n, right));
        *out = n;
    }
    return SF_OK;
}

/* Consumes a comparison operator; 0: there is none. */
static int compare_op(sf_jparser *p) {
    if (p->tok->type == SF_JT_OP) {
        int op = p->tok->op;
        bool is = op == '<' || op == '>' || op == SF_JOP_EQ || op == SF_JOP_NE || op == SF_JOP_LE ||
                  op == SF_JOP_GE;
        p->tok += is;
        return is ? op : 0;
    }
    if (sf_jparse_skip_name(p, "in")) return SF_JOP_IN;
    if (!sf_jparse_at_name(p, "not") || p->tok[1].type != SF_JT_NAME || strcmp(p->tok[1].text, "in") != 0)
        return 0;
    p->tok += 2;
    return SF_JOP_NOTIN;
}

static sf_code parse_compare(sf_jparser *p, sf_jnode **out) {
    SF_TRY(parse_binary(p, 0, out));
    sf_jnode *chain = NULL;
    for (;;) {
        sf_jnode *operand = NULL;
        SF_TRY(sf_jparse_node(p, SF_JN_OPERAND, &operand));
        operand->op = compare_op(p);
        if (!operand->op) return SF_OK;
        if (!chain) {
            SF_TRY(sf_jparse_node(p, SF_JN_COMPARE, &chain));
            chain->a = *out;
            *out = chain;
        }
        SF_TRY(parse_binary(p, 0, &operand->a));
        SF_TRY(sf_jparse_append(p, chain, operand));
    }
}

static sf_code parse_not(sf_jparser *p, sf_jnode **out) {
    if (!sf_jparse_at_name(p, "not")) return parse_compare(p, out);
    if (++p->depth > MAX_DEPTH) return sf_jparse_fail(p, SF_FULL, "template nests too deeply");
    SF_TRY(sf_jparse_node(p, SF_JN_NOT, out));
    p->tok++;
    SF_TRY(parse_not(p, &(*out)->a));
    p->depth--;
    return SF_OK;
}

static sf_code parse_logic(sf_jparser *p, bool or, sf_jnode **out) {
    SF_TRY(or ? parse_logic(p, false, out) : parse_not(p, out));
    while (sf_jparse_at_name(p, or ? "or" : "and")) {
        sf_jnode *n = NULL;
        SF_TRY(sf_jparse_node(p, or ? SF_JN_OR : SF_JN_AND, &n));
        p->tok++;
        n->a = *out;
        SF_TRY(or ? parse_logic(p, false, &n->b) : parse_not(p, &n->b));
        *out = n;
    }
    return SF_OK;
}

static sf_code parse_or(sf_jparser *p, sf_jnode **out) {
    return parse_logic(p, true, out);
}

sf_code sf_jparse_expr(sf_jparser *p, sf_jnode **out) {
    if (++p->depth > MAX_DEPTH) return sf_jparse_fail(p, SF_FULL, "template nests too deeply");
    SF_TRY(parse_or(p, out));
    while (sf_jparse_at_name(p, "if")) {
        sf_jnode *n = NULL;
        SF_TRY(sf_jparse_node(p, SF_JN_COND, &n));
        p->tok++;
        n->a = *out;
        SF_TRY(parse_or(p, &n->b));
        if (sf_jparse_skip_name(p, "else")) SF_TRY(sf_jparse_expr(p, &n->c));
        *out = n;
    }
    p->depth--;
    return SF_OK;
}

static sf_code tuple_item(sf_jparser *p, sf_jtuple_mode mode, sf_jnode **out) {
    if (mode == SF_JTUPLE_FULL) return sf_jparse_expr(p, out);
    if (mode == SF_JTUPLE_NO_COND) return parse_or(p, out);
    if (++p->depth > MAX_DEPTH) return sf_jparse_fail(p, SF_FULL, "template nests too deeply");
    SF_TRY(parse_primary(p, mode == SF_JTUPLE_TARGET_NS, out));
    p->depth--;
    return SF_OK;
}

sf_code sf_jparse_tuple(sf_jparser *p, sf_jtuple_mode mode, const char *end, bool parens, sf_jnode **out) {
    sf_jnode *tuple = NULL, *item = NULL;
    char buf[64];
    bool is_tuple = false;
    SF_TRY(sf_jparse_node(p, SF_JN_TUPLE, &tuple));
    for (;;) {
        if (tuple->n) SF_TRY(sf_jparse_expect(p, SF_JT_OP, ',', "','"));
        bool done = p->tok->type == SF_JT_VAR_END || p->tok->type == SF_JT_BLOCK_END || at_op(p, ')');
        if (done || (end && sf_jparse_at_name(p, end))) break;
        SF_TRY(tuple_item(p, mode, &item));
        SF_TRY(sf_jparse_append(p, tuple, item));
        if (!at_op(p, ',')) break;
        is_tuple = true;
    }
    if (!is_tuple && !item && !parens)
        return sf_jparse_fail(p, SF_FORMAT, "found %s, expected an expression",
                              sf_jparse_describe(p->tok, buf));
    *out = !is_tuple && item ? item : tuple;
    return SF_OK;
}
