/* Statements (parser.py): what is inside {% %}. */
#include "model/jinja_ast_priv.h"

#include <string.h>

enum { MAX_BLOCKS = 60 };

static sf_code parse_body(sf_jparser *p, const char *const *ends, sf_jnode **out);

/* The rest of an opening tag, and the statements up to one of ends (NULL-terminated), which becomes the
 * current token. */
static sf_code parse_block(sf_jparser *p, const char *const *ends, sf_jnode **out) {
    if (sf_jparse_at(p, SF_JT_OP, ':')) p->tok++;
    SF_TRY(sf_jparse_expect(p, SF_JT_BLOCK_END, 0, "'%}'"));
    if (++p->depth > MAX_BLOCKS) return sf_jparse_fail(p, SF_FULL, "template nests too deeply");
    SF_TRY(parse_body(p, ends, out));
    p->depth--;
    if (p->tok->type == SF_JT_EOF)
        return sf_jparse_fail(p, SF_FORMAT, "found end of template, expected '%s'", ends[0]);
    return SF_OK;
}

static sf_code parse_block_to(sf_jparser *p, const char *end, sf_jnode **out) {
    SF_TRY(parse_block(p, (const char *const[]){end, NULL}, out));
    p->tok++;
    return SF_OK;
}

static sf_code check_target(sf_jparser *p, const sf_jnode *t) {
    if (t->type == SF_JN_TUPLE) {
        for (size_t i = 0; i < t->n; i++)
            SF_TRY(check_target(p, t->list[i]));
        return SF_OK;
    }
    if (t->type == SF_JN_NSREF) return SF_OK;
    if (t->type != SF_JN_NAME) return sf_jparse_fail(p, SF_FORMAT, "cannot assign to this expression");
    if (p->in_for && !strcmp(t->name, "loop"))
        return sf_jparse_fail(p, SF_FORMAT, "cannot assign to the loop variable inside a loop");
    return SF_OK;
}

static sf_code parse_target(sf_jparser *p, sf_jtuple_mode mode, const char *end, sf_jnode **out) {
    SF_TRY(sf_jparse_tuple(p, mode, end, false, out));
    return check_target(p, *out);
}

static sf_code parse_for(sf_jparser *p, sf_jnode **out) {
    SF_TRY(sf_jparse_node(p, SF_JN_FOR, out));
    sf_jnode *n = *out;
    p->tok++;
    p->in_for++;
    SF_TRY(parse_target(p, SF_JTUPLE_TARGET, "in", &n->a));
    if (!sf_jparse_skip_name(p, "in")) return sf_jparse_fail(p, SF_FORMAT, "expected 'in'");
    SF_TRY(sf_jparse_tuple(p, SF_JTUPLE_NO_COND, "recursive", false, &n->b));
    if (sf_jparse_skip_name(p, "if")) SF_TRY(sf_jparse_expr(p, &n->d));
    if (sf_jparse_at_name(p, "recursive"))
        return sf_jparse_fail(p, SF_UNSUPPORTED, "recursive loops are not supported");
    p->in_loop++;
    SF_TRY(parse_block(p, (const char *const[]){"endfor", "else", NULL}, &n->body));
    p->in_loop--;
    bool has_else = sf_jparse_at_name(p, "else");
    p->tok++;
    if (has_else) SF_TRY(parse_block_to(p, "endfor", &n->c));
    p->in_for--;
    return SF_OK;
}

static sf_code parse_if(sf_jparser *p, sf_jnode **out) {
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    sf_jnode **link = out, *n;
    for (;;) {
        SF_TRY(sf_jparse_node(p, SF_JN_IF, &n));
        *link = n;
        link = &n->c;
        p->tok++; /* if, elif */
        SF_TRY(sf_jparse_tuple(p, SF_JTUPLE_NO_COND, NULL, false, &n->a));
        SF_TRY(parse_block(p, ends, &n->b));
        if (!sf_jparse_at_name(p, "elif")) break;
    }
    bool has_else = sf_jparse_at_name(p, "else");
    p->tok++;
    return has_else ? parse_block_to(p, "endif", link) : SF_OK;
}

static sf_code parse_set(sf_jparser *p, sf_jnode **out) {
    SF_TRY(sf_jparse_node(p, SF_JN_SET, out));
    sf_jnode *n = *out;
    p->tok++;
    SF_TRY(parse_target(p, SF_JTUPLE_TARGET_NS, NULL, &n->a));
    if (sf_jparse_at(p, SF_JT_OP, '=')) {
        p->tok++;
        return sf_jparse_tuple(p, SF_JTUPLE_FULL, NULL, false, &n->b);
    }
    n->type = SF_JN_SETBLOCK;
    SF_TRY(sf_jparse_filters(p, NULL, false, &n->b));
    return parse_block_to(p, "endset", &n->body);
}

/* A body that runs apart from the loop around it, so that break cannot leave it. */
static sf_code parse_apart(sf_jparser *p, const char *end, sf_jnode *macro, sf_jnode **out) {
    int in_loop = p->in_loop;
    sf_jnode *outer = p->macro;
    p->in_loop = 0;
    if (macro) p->macro = macro;
    SF_TRY(parse_block_to(p, end, out));
    p->in_loop = in_loop;
    p->macro = outer;
    return SF_OK;
}

static sf_code parse_macro(sf_jparser *p, sf_jnode **out) {
    SF_TRY(sf_jparse_node(p, SF_JN_MACRO, out));
    sf_jnode *n = *out, *defaults;
    p->tok++;
    n->name = p->tok->text;
    SF_TRY(sf_jparse_expect(p, SF_JT_NAME, 0, "the macro's name"));
    SF_TRY(sf_jparse_expect(p, SF_JT_OP, '(', "'('"));
    SF_TRY(sf_jparse_node(p, SF_JN_LIST, &defaults));
    while (!sf_jparse_at(p, SF_JT_OP, ')')) {
        if (n->n) SF_TRY(sf_jparse_expect(p, SF_JT_OP, ',', "','"));
        sf_jnode *arg, *value;
        SF_TRY(sf_jparse_node(p, SF_JN_NAME, &arg));
        arg->name = p->tok->text;
        SF_TRY(sf_jparse_expect(p, SF_JT_NAME, 0, "a parameter's name"));
        for (size_t i = 0; i < n->n; i++)
            if (!strcmp(n->list[i]->name, arg->name))
                return sf_jparse_fail(p, SF_FORMAT, "parameter '%.60s' repeated", arg->name);
        SF_TRY(sf_jparse_append(p, n, arg));
        if (sf_jparse_at(p, SF_JT_OP, '=')) {
            p->tok++;
            SF_TRY(sf_jparse_expr(p, &value));
            SF_TRY(sf_jparse_append(p, defaults, value));
        } else if (defaults->n) {
            return sf_jparse_fail(p, SF_FORMAT, "parameter without default after one with a default");
        }
    }
    p->tok++;
    n->kw = defaults->list;
    n->n_kw = defaults->n;
    return parse_apart(p, "endmacro", n, &n->body);
}

static sf_code parse_with(sf_jparser *p, sf_jnode **out) {
    SF_TRY(sf_jparse_node(p, SF_JN_WITH, out));
    sf_jnode *n = *out;
    p->tok++;
    while (p->tok->type != SF_JT_BLOCK_END) {
        sf_jnode *part;
        if (n->n) SF_TRY(sf_jparse_expect(p, SF_JT_OP, ',', "','"));
        SF_TRY(parse_target(p, SF_JTUPLE_TARGET, NULL, &part));
        SF_TRY(sf_jparse_append(p, n, part));
        SF_TRY(sf_jparse_expect(p, SF_JT_OP, '=', "'='"));
        SF_TRY(sf_jparse_expr(p, &part));
        SF_TRY(sf_jparse_append(p, n, part));
    }
    return parse_block_to(p, "endwith", &n->body);
}

static sf_code parse_filter_block(sf_jparser *p, sf_jnode **out) {
    SF_TRY(sf_jparse_node(p, SF_JN_CAPTURE, out));
    p->tok++;
    SF_TRY(sf_jparse_filters(p, NULL, true, &(*out)->b));
    return parse_block_to(p, "endfilter", &(*out)->body);
}

static sf_code parse_leave(sf_jparser *p, sf_jnode **out) {
    SF_TRY(sf_jparse_node(p, p->tok->text[0] == 'b' ? SF_JN_BREAK : SF_JN_CONTINUE, out));
    if (!p->in_loop) return sf_jparse_fail(p, SF_FORMAT, "'%s' outside a loop", p->tok->text);
    p->tok++;
    return SF_OK;
}

static sf_code parse_print(sf_jparser *p, sf_jnode **out) {
    SF_TRY(sf_jparse_node(p, SF_JN_BODY, out));
    p->tok++;
    while (p->tok->type != SF_JT_BLOCK_END) {
        sf_jnode *n;
        if ((*out)->n) SF_TRY(sf_jparse_expect(p, SF_JT_OP, ',', "','"));
        SF_TRY(sf_jparse_node(p, SF_JN_PRINT, &n));
        SF_TRY(sf_jparse_expr(p, &n->a));
        SF_TRY(sf_jparse_append(p, *out, n));
    }
    return SF_OK;
}

/* Hugging Face's marker of the assistant's words: the body alone matters here. */
static sf_code parse_generation(sf_jparser *p, sf_jnode **out) {
    SF_TRY(sf_jparse_node(p, SF_JN_SCOPE, out));
    p->tok++;
    return parse_apart(p, "endgeneration", NULL, &(*out)->body);
}

static sf_code parse_statement(sf_jparser *p, sf_jnode **out) {
    static const struct {
        const char *name;
        sf_code (*parse)(sf_jparser *p, sf_jnode **out);
    } statements[] = {
        {"for", parse_for},     {"if", parse_if},
        {"set", parse_set},     {"macro", parse_macro},
        {"with", parse_with},   {"filter", parse_filter_block},
        {"break", parse_leave}, {"continue", parse_leave},
        {"print", parse_print}, {"generation", parse_generation},
    };
    static const char *const refused[] = {"block", "extends", "include",   "import",
                                          "from",  "call",    "autoescape"};
    if (p->tok->type != SF_JT_NAME) return sf_jparse_fail(p, SF_FORMAT, "expected a tag's name");
    const char *name = p->tok->text;
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (!strcmp(statements[i].name, name)) return statements[i].parse(p, out);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!strcmp(refused[i], name))
            return sf_jparse_fail(p, SF_UNSUPPORTED, "tag '%s' is not supported", name);
    return sf_jparse_fail(p, SF_FORMAT, "unknown or misplaced tag '%.60s'", name);
}

static sf_code parse_data(sf_jparser *p, sf_jnode **out) {
    SF_TRY(sf_jparse_node(p, SF_JN_DATA, out));
    sf_jstr *s = sf_jarena_get(p->arena, sizeof *s);
    if (!s) return sf_jparse_fail(p, sf_jarena_code(p->arena), "no room for the template");
    *s = (sf_jstr){.data = p->tok->text, .len = p->tok->len};
    (*out)->value = sf_jv_of_str(s);
    p->tok++;
    return SF_OK;
}

static sf_code parse_body(sf_jparser *p, const char *const *ends, sf_jnode **out) {
    SF_TRY(sf_jparse_node(p, SF_JN_BODY, out));
    while (p->tok->type != SF_JT_EOF) {
        sf_jnode *n;
        if (p->tok->type == SF_JT_DATA) {
            SF_TRY(parse_data(p, &n));
        } else if (p->tok->type == SF_JT_VAR_BEGIN) {
            p->tok++;
            SF_TRY(sf_jparse_node(p, SF_JN_PRINT, &n));
            SF_TRY(sf_jparse_tuple(p, SF_JTUPLE_FULL, NULL, false, &n->a));
            SF_TRY(sf_jparse_expect(p, SF_JT_VAR_END, 0, "'}}'"));
        } else {
            SF_TRY(sf_jparse_expect(p, SF_JT_BLOCK_BEGIN, 0, "a tag"));
            for (const char *const *e = ends; e && *e; e++)
                if (sf_jparse_at_name(p, *e)) return SF_OK;
            SF_TRY(parse_statement(p, &n));
            SF_TRY(sf_jparse_expect(p, SF_JT_BLOCK_END, 0, "'%}'"));
        }
        SF_TRY(sf_jparse_append(p, *out, n));
    }
    return SF_OK;
}

sf_code sf_jinja_parse(sf_jarena *a, const char *name, const char *source, size_t len, sf_jnode **out,
                       sf_err *err) {
    sf_jtok *toks;
    size_t n;
    SF_TRY(sf_jinja_lex(a, name, source, len, &toks, &n, err));
    sf_jparser p = {.arena = a, .name = name, .tok = toks, .err = err};
    return parse_body(&p, NULL, out);
}
