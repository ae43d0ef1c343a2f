/* The token rules are jinja2's own (lexer.py), with trim_blocks and lstrip_blocks on. */
#include "model/jinja_lex_priv.h"

#include "base/utf8.h"

#include <string.h>

static sf_code lex_nomem(sf_jlexer *l) {
    return SF_FAIL(l->err, sf_jarena_code(l->arena), "%s: no room for the template", l->name);
}

sf_code sf_jlex_fail(sf_jlexer *l, sf_code code, size_t at, const char *what) {
    int line = l->line, col = 1;
    for (size_t i = l->line_at; i < at && i < l->len; i++) {
        col++;
        if (l->src[i] == '\n') {
            line++;
            col = 1;
        }
    }
    return SF_FAIL_AT(l->err, code, ((sf_loc){l->name, line, col}), "%s", what);
}

/* Moves the line count up to offset `at`. */
static void seek_line(sf_jlexer *l, size_t at) {
    for (; l->counted < at; l->counted++) {
        if (l->src[l->counted] != '\n') continue;
        l->line++;
        l->line_at = l->counted + 1;
    }
}

sf_code sf_jlex_push(sf_jlexer *l, sf_jtok_type type, size_t at, sf_jtok **out) {
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 256;
        sf_jtok *toks = sf_jarena_get(l->arena, cap * sizeof *toks);
        if (!toks) return lex_nomem(l);
        if (l->n) memcpy(toks, l->toks, l->n * sizeof *toks);
        l->toks = toks;
        l->cap = cap;
    }
    seek_line(l, at);
    sf_jtok *t = &l->toks[l->n++];
    *t = (sf_jtok){.type = type, .line = l->line, .col = (int)(at - l->line_at) + 1};
    *out = t;
    return SF_OK;
}

static bool at(const sf_jlexer *l, size_t pos, const char *text) {
    size_t n = strlen(text);
    return l->len - pos >= n && memcmp(l->src + pos, text, n) == 0;
}

/* Python's str.isspace and re's \s. */
size_t sf_jlex_space(const char *s, size_t len) {
    unsigned char c = (unsigned char)s[0];
    if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20);
    size_t n;
    int32_t cp = sf_jv_char(s, len, &n);
    bool space = cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 ||
                 cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
    return space ? n : 0;
}

static size_t skip_space(const sf_jlexer *l, size_t pos) {
    for (size_t n; pos < l->len && (n = sf_jlex_space(l->src + pos, l->len - pos)); pos += n) {
    }
    return pos;
}

/* If a tag's end stands at pos, returns the offset behind it and behind what it swallows; else 0. */
static size_t tag_end(const sf_jlexer *l, size_t pos, const char *end) {
    char c = pos < l->len ? l->src[pos] : 0;
    bool var = end[0] == '}';
    if (c == '-' && at(l, pos + 1, end)) return skip_space(l, pos + 3);
    if (c == '+' && !var && at(l, pos + 1, end)) return pos + 3;
    if (!at(l, pos, end)) return 0;
    return pos + 2 + (!var && pos + 2 < l->len && l->src[pos + 2] == '\n');
}

/* `raw` or `endraw` tag at pos ("{%" stands there): the offset of the tag's end mark, or 0. */
static size_t word_tag(const sf_jlexer *l, size_t pos, const char *word) {
    pos += 2;
    if (pos < l->len && (l->src[pos] == '-' || l->src[pos] == '+')) pos++;
    pos = skip_space(l, pos);
    if (!at(l, pos, word)) return 0;
    return skip_space(l, pos + strlen(word));
}

/* Emits the text from..to that stands before a tag with the given sign. */
static sf_code emit_data(sf_jlexer *l, size_t from, size_t to, char sign, bool lstrip) {
    size_t end = to;
    if (sign == '-') {
        size_t keep = from;
        for (size_t i = from, n; i < to; i += n) {
            n = sf_jlex_space(l->src + i, to - i);
            if (n) continue;
            (void)sf_jv_char(l->src + i, to - i, &n);
            keep = i + n;
        }
        end = keep;
    } else if (sign != '+' && lstrip) {
        size_t line = to;
        while (line > from && l->src[line - 1] != '\n')
            line--;
        if ((line > from || l->line_starting) && skip_space(l, line) >= to) end = line;
    }
    if (end == from) return SF_OK;
    sf_jtok *t;
    SF_TRY(sf_jlex_push(l, SF_JT_DATA, from, &t));
    t->text = l->src + from;
    t->len = end - from;
    return SF_OK;
}

static sf_code lex_comment(sf_jlexer *l, size_t *pos) {
    for (size_t p = *pos; p < l->len; p++) {
        size_t end = tag_end(l, p, "#}");
        if (!end) continue;
        l->line_starting = l->src[end - 1] == '\n';
        *pos = end;
        return SF_OK;
    }
    return sf_jlex_fail(l, SF_FORMAT, *pos, "missing end of comment tag");
}

static sf_code lex_raw(sf_jlexer *l, size_t *pos) {
    for (size_t p = *pos; p + 1 < l->len; p++) {
        if (!at(l, p, "{%")) continue;
        size_t mark = word_tag(l, p, "endraw");
        size_t end = mark ? tag_end(l, mark, "%}") : 0;
        if (!end) continue;
        SF_TRY(emit_data(l, *pos, p, l->src[p + 2], true));
        l->line_starting = l->src[end - 1] == '\n';
        *pos = end;
        return SF_OK;
    }
    return sf_jlex_fail(l, SF_FORMAT, *pos, "missing end of raw directive");
}

/* Inside a tag, up to and with its end. */
static sf_code lex_tag(sf_jlexer *l, size_t *pos, bool var) {
    const char *end_mark = var ? "}}" : "%}";
    size_t p = *pos;
    l->n_open = 0;
    while (p < l->len) {
        size_t end = l->n_open ? 0 : tag_end(l, p, end_mark);
        sf_jtok *t;
        if (end) {
            SF_TRY(sf_jlex_push(l, var ? SF_JT_VAR_END : SF_JT_BLOCK_END, p, &t));
            l->line_starting = l->src[end - 1] == '\n';
            *pos = end;
            return SF_OK;
        }
        size_t space = skip_space(l, p);
        if (space > p)
            p = space;
        else
            SF_TRY(sf_jlex_inner(l, &p));
    }
    *pos = p;
    return SF_OK;
}

static sf_code lex_root(sf_jlexer *l) {
    size_t pos = 0;
    while (pos < l->len) {
        size_t p = pos;
        while (p + 1 < l->len && !(l->src[p] == '{' && strchr("%{#", l->src[p + 1]) && l->src[p + 1]))
            p++;
        if (p + 1 >= l->len) return emit_data(l, pos, l->len, '+', false);
        char kind = l->src[p + 1], sign = p + 2 < l->len ? l->src[p + 2] : 0;
        bool var = kind == '{', has_sign = sign == '-' || sign == '+';
        SF_TRY(emit_data(l, pos, p, sign, !var));
        size_t raw = kind == '%' ? word_tag(l, p, "raw") : 0;
        bool dash = raw && at(l, raw, "-%}");
        if (raw && (dash || at(l, raw, "%}"))) {
            pos = dash ? skip_space(l, raw + 3) : raw + 2;
            l->line_starting = l->src[pos - 1] == '\n';
            SF_TRY(lex_raw(l, &pos));
            continue;
        }
        pos = p + 2 + has_sign;
        l->line_starting = false;
        if (kind == '#') {
            SF_TRY(lex_comment(l, &pos));
            continue;
        }
        sf_jtok *t;
        SF_TRY(sf_jlex_push(l, var ? SF_JT_VAR_BEGIN : SF_JT_BLOCK_BEGIN, p, &t));
        SF_TRY(lex_tag(l, &pos, var));
    }
    return SF_OK;
}

/* Newlines become \n, and one at the very end is dropped, as jinja2 does. */
static sf_code normalise(sf_jlexer *l, const char *source, size_t len) {
    char *s = sf_jarena_get(l->arena, len + 1);
    if (!s) return lex_nomem(l);
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (source[i] == '\r') {
            s[n++] = '\n';
            if (i + 1 < len && source[i + 1] == '\n') i++;
        } else {
            s[n++] = source[i];
        }
    }
    l->src = s;
    l->len = n;
    const size_t good = sf_utf8_prefix(s, n);
    if (good < n) return sf_jlex_fail(l, SF_FORMAT, good, "template is not valid UTF-8");
    if (n && s[n - 1] == '\n') l->len--;
    return SF_OK;
}

sf_code sf_jinja_lex(sf_jarena *a, const char *name, const char *source, size_t len, sf_jtok **out, size_t *n,
                     sf_err *err) {
    sf_jlexer l = {.arena = a, .name = name, .err = err, .line = 1, .line_starting = true};
    SF_TRY(normalise(&l, source, len));
    SF_TRY(lex_root(&l));
    sf_jtok *t;
    SF_TRY(sf_jlex_push(&l, SF_JT_EOF, l.len, &t));
    *out = l.toks;
    *n = l.n;
    return SF_OK;
}
