#include "template_priv.h"

#include <ctype.h>
#include <string.h>

/* Open blocks, and the names that `for` has bound in them. */
typedef struct body {
    sf_arena *arena;
    sf_template *t;
    sf_err *err;
    int depth, open[SF_TEMPLATE_DEPTH];
    int head[SF_TEMPLATE_DEPTH]; /* line of the block's if or for, also after its else */
    bool in_comment;
} body;

static sf_list *find_list(sf_template *t, const char *name) {
    for (int i = 0; i < t->n_lists; i++)
        if (strcmp(t->lists[i].name.text, name) == 0) return &t->lists[i];
    return NULL;
}

/* The list over which an enclosing for runs `name`, or NULL. */
static const sf_list *loop_list(const body *b, const char *name) {
    for (int i = b->depth; i-- > 0;) {
        const sf_line *l = &b->t->lines[b->head[i]];
        if (l->kind == SF_LINE_FOR && strcmp(l->left.text, name) == 0) return find_list(b->t, l->right.text);
    }
    return NULL;
}

static sf_code list_line(body *b, cursor *c) {
    sf_template *t = b->t;
    sf_list l = {.line = c->line};
    SF_TRY(sf_cursor_name(c, "a list's name", &l.name));
    if (find_list(t, l.name.text) || sf_param_find(t, l.name.text, NULL))
        return sf_cursor_fail(c, l.name.col, "%s is declared already, expected a new name", l.name.text);
    if (t->n_lists == SF_LISTS_MAX)
        return sf_cursor_fail(c, l.name.col, "over %d lists, expected fewer", SF_LISTS_MAX);
    while (sf_cursor_more(c)) {
        sf_word w = {0};
        SF_TRY(sf_cursor_word(c, "an entry", &w));
        if (l.n == SF_LIST_ITEMS_MAX)
            return sf_cursor_fail(c, w.col, "over %d entries, expected fewer", SF_LIST_ITEMS_MAX);
        l.items[l.n++] = w.text;
    }
    if (!l.n) return sf_cursor_fail(c, sf_cursor_col(c), "the list is empty, expected entries");
    t->lists[t->n_lists++] = l;
    t->lines[c->line].kind = SF_LINE_SKIP;
    return SF_OK;
}

static sf_code push(body *b, cursor *c) {
    if (b->depth == SF_TEMPLATE_DEPTH)
        return sf_cursor_fail(c, 1, "blocks nested over %d deep, expected less", SF_TEMPLATE_DEPTH);
    b->open[b->depth] = b->head[b->depth] = c->line;
    b->depth++;
    return SF_OK;
}

static sf_code if_line(body *b, cursor *c) {
    sf_line *l = &b->t->lines[c->line];
    SF_TRY(sf_cursor_name(c, "a parameter", &l->left));
    l->negated = sf_cursor_take(c, "!=");
    if (!l->negated) SF_TRY(sf_cursor_expect(c, "=="));
    SF_TRY(sf_cursor_word(c, "a value", &l->right));
    SF_TRY(sf_cursor_end(c));
    l->kind = SF_LINE_IF;
    if (!loop_list(b, l->left.text)) {
        int i = 0;
        const sf_param *p = sf_param_find(b->t, l->left.text, &i);
        if (!p)
            return sf_cursor_fail(
                c, l->left.col, "'%s' is not declared, expected a parameter or a loop's name", l->left.text);
        char msg[160];
        sf_value v = {0};
        if (sf_param_value(p, l->right.text, &v, msg, sizeof msg) != SF_OK)
            return sf_cursor_fail(c, l->right.col, "%s is compared with %s", p->name.text, msg);
        b->t->params[i].used = true;
    }
    return push(b, c);
}

static sf_code for_line(body *b, cursor *c) {
    sf_line *l = &b->t->lines[c->line];
    SF_TRY(sf_cursor_name(c, "a name", &l->left));
    SF_TRY(sf_cursor_expect(c, "in"));
    SF_TRY(sf_cursor_name(c, "a list", &l->right));
    SF_TRY(sf_cursor_end(c));
    sf_list *list = find_list(b->t, l->right.text);
    if (!list)
        return sf_cursor_fail(c, l->right.col, "list '%s' is not declared, expected '//@ list %s ...' above",
                              l->right.text, l->right.text);
    if (loop_list(b, l->left.text) || sf_param_find(b->t, l->left.text, NULL) ||
        find_list(b->t, l->left.text))
        return sf_cursor_fail(c, l->left.col, "%s is declared already, expected a new name", l->left.text);
    list->used = true;
    SF_TRY(push(b, c));
    l->kind = SF_LINE_FOR;
    return SF_OK;
}

static sf_code else_line(body *b, cursor *c) {
    SF_TRY(sf_cursor_end(c));
    sf_line *lines = b->t->lines;
    if (!b->depth || lines[b->open[b->depth - 1]].kind != SF_LINE_IF)
        return sf_cursor_fail(c, 1, "else with no open if, expected one above");
    lines[c->line].kind = SF_LINE_ELSE;
    lines[b->open[b->depth - 1]].jump = c->line;
    b->open[b->depth - 1] = c->line;
    return SF_OK;
}

static sf_code end_line(body *b, cursor *c) {
    SF_TRY(sf_cursor_end(c));
    if (!b->depth) return sf_cursor_fail(c, 1, "end with no open block, expected an if or a for above");
    b->t->lines[c->line].kind = SF_LINE_END;
    b->t->lines[b->open[--b->depth]].jump = c->line;
    return SF_OK;
}

/* "${NAME}"s of a put line. */
static sf_code put_line(body *b, int line, const char *text) {
    cursor c = {b->arena, b->t, line, text, b->err};
    for (const char *s = strstr(text, "${"); s; s = strstr(s + 2, "${")) {
        size_t len = strcspn(s + 2, "}");
        c.p = s;
        if (s[2 + len] != '}') return sf_cursor_fail(&c, sf_cursor_col(&c), "'${' is open, expected '}'");
        char name[80] = "";
        if (len < sizeof name) memcpy(name, s + 2, len);
        int i = 0;
        c.p = s + 2;
        if (loop_list(b, name)) continue;
        if (!sf_param_find(b->t, name, &i))
            return sf_cursor_fail(&c, sf_cursor_col(&c),
                                  "'%.*s' is not declared, expected a parameter or a loop's name",
                                  len < 64 ? (int)len : 64, s + 2);
        b->t->params[i].used = true;
    }
    b->t->lines[line].kind = SF_LINE_PUT;
    return SF_OK;
}

static sf_code directive_line(body *b, cursor *c) {
    while (*c->p == ' ' || *c->p == '\t')
        c->p++;
    if (sf_cursor_take(c, "list")) return list_line(b, c);
    if (sf_cursor_take(c, "if")) return if_line(b, c);
    if (sf_cursor_take(c, "else")) return else_line(b, c);
    if (sf_cursor_take(c, "for")) return for_line(b, c);
    if (sf_cursor_take(c, "end")) return end_line(b, c);
    return sf_cursor_fail(c, sf_cursor_col(c),
                          "'%.40s' in the body, expected list, if, else, for, end or '//@|'", c->p);
}

/* Marks the parameters that stand in a line of C; names in comments and literals do not count. */
static void mark_used(body *b, const char *s) {
    while (*s) {
        if (b->in_comment) {
            const char *end = strstr(s, "*/");
            if (!end) return;
            b->in_comment = false;
            s = end + 2;
        } else if (s[0] == '/' && s[1] == '/') {
            return;
        } else if (s[0] == '/' && s[1] == '*') {
            b->in_comment = true;
            s += 2;
        } else if (*s == '"' || *s == '\'') {
            char quote = *s++;
            while (*s && *s != quote)
                s += *s == '\\' && s[1] ? 2 : 1;
            s += *s != 0;
        } else if (isalpha((unsigned char)*s) || *s == '_') {
            size_t len = 0;
            while (isalnum((unsigned char)s[len]) || s[len] == '_')
                len++;
            for (int i = 0; i < b->t->n_params; i++) {
                const char *name = b->t->params[i].name.text;
                if (strlen(name) == len && memcmp(name, s, len) == 0) b->t->params[i].used = true;
            }
            s += len;
        } else {
            s++;
        }
    }
}

static sf_code check_used(const sf_template *t, sf_err *err) {
    for (int i = 0; i < t->n_params; i++)
        if (!t->params[i].used)
            return sf_template_fail(t, t->params[i].line, t->params[i].name.col, SF_FORMAT, err,
                                    "parameter %s is not used, expected it in the body",
                                    t->params[i].name.text);
    for (int i = 0; i < t->n_lists; i++)
        if (!t->lists[i].used)
            return sf_template_fail(t, t->lists[i].line, t->lists[i].name.col, SF_FORMAT, err,
                                    "list %s is not used, expected a for over it", t->lists[i].name.text);
    return SF_OK;
}

/* Names in the pattern of the kernel's name. */
static sf_code check_tile(const sf_template *t, sf_err *err) {
    const char *tile = t->tile.text;
    for (const char *s = tile ? strstr(tile, "${") : NULL; s; s = strstr(s + 2, "${")) {
        size_t len = strcspn(s + 2, "}");
        char name[80] = "";
        if (len < sizeof name) memcpy(name, s + 2, len);
        if (s[2 + len] != '}' || !sf_param_find(t, name, NULL))
            return sf_template_fail(t, t->tile_line, t->tile.col + (int)(s - tile), SF_FORMAT, err,
                                    "'%.64s' in the name, expected a declared parameter", s);
    }
    return SF_OK;
}

sf_code sf_template_body(sf_arena *a, sf_template *t, int first, sf_err *err) {
    body b = {.arena = a, .t = t, .err = err};
    SF_TRY(check_tile(t, err));
    for (int i = first; i < t->n_lines; i++) {
        bool put = false;
        const char *p = sf_directive(t->lines[i].text, &put);
        cursor c = {a, t, i, p, err};
        if (!p)
            mark_used(&b, t->lines[i].text);
        else if (put)
            SF_TRY(put_line(&b, i, p));
        else
            SF_TRY(directive_line(&b, &c));
        if (put) mark_used(&b, p);
    }
    if (b.depth)
        return sf_template_fail(t, b.head[b.depth - 1], 1, SF_FORMAT, err,
                                "this block is open, expected '//@ end'");
    return check_used(t, err);
}
