#include "template_priv.h"

#include "base/hash.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sf_code sf_template_fail(const sf_template *t, int line, int col, sf_code code, sf_err *err, const char *fmt,
                         ...) {
    enum { SHOWN = 96 };
    char msg[190], pad[SHOWN + 1];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    sf_loc loc = {t->path, line + 1, col};
    const char *text = t->lines[line].text;
    if (col < 1 || col > SHOWN) return SF_FAIL_AT(err, code, loc, "%s", msg);
    int n = 0;
    for (; n < col - 1 && text[n]; n++)
        pad[n] = text[n] == '\t' ? '\t' : ' '; /* so that the caret stands right whatever a tab's width */
    pad[n] = 0;
    return SF_FAIL_AT(err, code, loc, "%s\n  %.*s\n  %s^", msg, SHOWN, text, pad);
}

sf_code sf_cursor_fail(const cursor *c, int col, const char *fmt, ...) {
    char msg[190];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    return sf_template_fail(c->t, c->line, col, SF_FORMAT, c->err, "%s", msg);
}

static void skip_space(cursor *c) {
    while (*c->p == ' ' || *c->p == '\t')
        c->p++;
}

int sf_cursor_col(const cursor *c) {
    return (int)(c->p - c->t->lines[c->line].text) + 1;
}

sf_code sf_cursor_word(cursor *c, const char *what, sf_word *out) {
    skip_space(c);
    size_t len = strcspn(c->p, " \t");
    if (len == 0) return sf_cursor_fail(c, sf_cursor_col(c), "the line ends, expected %s", what);
    sf_word w = {sf_arena_text(c->arena, c->p, len), sf_cursor_col(c)};
    if (!w.text) return sf_arena_full(c->err);
    c->p += len;
    *out = w;
    return SF_OK;
}

sf_code sf_cursor_name(cursor *c, const char *what, sf_word *out) {
    SF_TRY(sf_cursor_word(c, what, out));
    const char *s = out->text;
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_')
        n++;
    if (s[n] || isdigit((unsigned char)s[0]) || n > 64)
        return sf_cursor_fail(c, out->col, "'%.64s' is no name, expected %s", s, what);
    return SF_OK;
}

bool sf_cursor_take(cursor *c, const char *word) {
    skip_space(c);
    size_t len = strlen(word);
    if (strncmp(c->p, word, len) != 0 || (c->p[len] && c->p[len] != ' ' && c->p[len] != '\t')) return false;
    c->p += len;
    return true;
}

sf_code sf_cursor_expect(cursor *c, const char *word) {
    if (sf_cursor_take(c, word)) return SF_OK;
    return sf_cursor_fail(c, sf_cursor_col(c), "expected '%s'", word);
}

bool sf_cursor_more(cursor *c) {
    skip_space(c);
    return *c->p != 0 && *c->p != '#';
}

sf_code sf_cursor_end(cursor *c) {
    if (!sf_cursor_more(c)) return SF_OK;
    return sf_cursor_fail(c, sf_cursor_col(c), "'%.40s' follows, expected the end of the line", c->p);
}

bool sf_parse_range(const char *text, double open, double *lo, double *hi) {
    const char *dots = strstr(text, "..");
    if (!dots || dots == text || dots - text > 30) return false;
    char low[32];
    memcpy(low, text, (size_t)(dots - text));
    low[dots - text] = 0;
    char *end = NULL;
    *lo = strtod(low, &end);
    if (*end) return false;
    *hi = open;
    if (dots[2]) *hi = strtod(dots + 2, &end);
    return !(dots[2] && *end) && *lo <= *hi;
}

const char *sf_directive(const char *line, bool *put) {
    const char *s = line + strspn(line, " \t");
    *put = false;
    if (strncmp(s, "//@", 3) != 0) return NULL;
    *put = s[3] == '|';
    return s + 3 + *put;
}

sf_class sf_template_class(const sf_template *t) {
    return t->serves[SF_CLASS_PINNED] ? SF_CLASS_PINNED : SF_CLASS_FAST;
}

static sf_code split_lines(sf_arena *a, sf_template *t, const char *text, size_t len, sf_err *err) {
    sf_loc loc = {t->path, 0, 0};
    if (len > SF_TEMPLATE_MAX_BYTES)
        return SF_FAIL_AT(err, SF_FULL, loc, "%zu bytes, expected at most %zu", len, SF_TEMPLATE_MAX_BYTES);
    if (memchr(text, 0, len)) return SF_FAIL_AT(err, SF_FORMAT, loc, "holds a NUL byte, expected text");
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n' || i + 1 == len;
    if (n > SF_TEMPLATE_MAX_LINES)
        return SF_FAIL_AT(err, SF_FULL, loc, "%zu lines, expected at most %d", n, SF_TEMPLATE_MAX_LINES);
    t->lines = sf_arena_alloc(a, n + 1, sizeof *t->lines);
    if (!t->lines) return sf_arena_full(err);
    for (size_t start = 0; start < len;) {
        const char *nl = memchr(text + start, '\n', len - start);
        size_t end = nl ? (size_t)(nl - text) : len;
        char *copy = sf_arena_text(a, text + start, end - start);
        if (!copy) return sf_arena_full(err);
        t->lines[t->n_lines++].text = copy;
        start = end + 1;
    }
    return SF_OK;
}

/* One head directive each. A field that is set already is a second directive of that kind. */
static sf_code text_line(cursor *c, const char *what, const char **field) {
    sf_word w = {0};
    if (*field) return sf_cursor_fail(c, sf_cursor_col(c), "a second %s, expected one", what);
    SF_TRY(sf_cursor_word(c, what, &w));
    *field = w.text;
    return sf_cursor_end(c);
}

static sf_code name_line(cursor *c, const char *what, const char **field) {
    cursor look = *c;
    sf_word w = {0};
    SF_TRY(sf_cursor_name(&look, what, &w));
    return text_line(c, what, field);
}

static sf_code op_line(cursor *c, bool *seen) {
    static const char *const names[] = {"embed",     "rmsnorm", "gemm",          "rope_append",
                                        "attention", "sample",  "attention_long"};
    sf_word w = {0};
    if (*seen) return sf_cursor_fail(c, sf_cursor_col(c), "a second op, expected one");
    SF_TRY(sf_cursor_word(c, "an op", &w));
    for (int i = 0; i < SF_OP_COUNT; i++)
        if (strcmp(w.text, names[i]) == 0) {
            c->t->op = (sf_op)i;
            *seen = true;
            return sf_cursor_end(c);
        }
    return sf_cursor_fail(c, w.col,
                          "op '%.40s' is unknown, expected embed, rmsnorm, gemm, rope_append, attention, "
                          "sample or attention_long",
                          w.text);
}

static sf_code class_line(cursor *c) {
    sf_word w = {0};
    bool *serves = c->t->serves;
    if (serves[0] || serves[1]) return sf_cursor_fail(c, sf_cursor_col(c), "a second class, expected one");
    SF_TRY(sf_cursor_word(c, "pinned, fast or both", &w));
    serves[SF_CLASS_PINNED] = strcmp(w.text, "pinned") == 0 || strcmp(w.text, "both") == 0;
    serves[SF_CLASS_FAST] = strcmp(w.text, "fast") == 0 || strcmp(w.text, "both") == 0;
    if (!serves[0] && !serves[1])
        return sf_cursor_fail(c, w.col, "class '%.40s' is unknown, expected pinned, fast or both", w.text);
    return sf_cursor_end(c);
}

static sf_code rows_line(cursor *c) {
    sf_template *t = c->t;
    if (t->n_rows) return sf_cursor_fail(c, sf_cursor_col(c), "a second line of rows, expected one");
    do {
        sf_word w = {0};
        double lo = 0, hi = 0;
        if (t->n_rows == SF_ROW_RANGES_MAX)
            return sf_cursor_fail(c, sf_cursor_col(c), "a row range more, expected at most %d",
                                  SF_ROW_RANGES_MAX);
        SF_TRY(sf_cursor_word(c, "a row range such as 1..8 or 9..", &w));
        if (!sf_parse_range(w.text, INT_MAX, &lo, &hi) || lo < 1 || hi > INT_MAX)
            return sf_cursor_fail(c, w.col, "rows are '%.40s', expected a range such as 1..8 or 9..", w.text);
        if (t->n_rows && lo <= t->rows[t->n_rows - 1].hi)
            return sf_cursor_fail(c, w.col, "rows are '%.40s', expected a range past the one before", w.text);
        t->rows[t->n_rows++] = (sf_row_range){(int)lo, (int)hi};
    } while (sf_cursor_more(c));
    t->rows_line = c->line;
    return SF_OK;
}

/* An empty pattern is none. */
static sf_code tile_line(cursor *c) {
    if (!sf_cursor_more(c)) return SF_OK;
    if (c->t->tile.text) return sf_cursor_fail(c, sf_cursor_col(c), "a second name pattern, expected one");
    c->t->tile_line = c->line;
    SF_TRY(sf_cursor_word(c, "a name pattern", &c->t->tile));
    return sf_cursor_end(c);
}

static sf_code library_line(cursor *c) {
    static const char *const parts[] = {"weight", "swiglu"};
    sf_word w = {0};
    if (c->t->library) return sf_cursor_fail(c, sf_cursor_col(c), "a second library, expected one");
    SF_TRY(sf_cursor_name(c, "a library", &w));
    c->t->library = w.text;
    c->t->library_line = c->line;
    SF_TRY(sf_cursor_word(c, "weight or swiglu", &w));
    for (int i = 0; i < 2; i++)
        if (strcmp(w.text, parts[i]) == 0) {
            c->t->part = (sf_library_part)i;
            return sf_cursor_end(c);
        }
    return sf_cursor_fail(c, w.col, "the library's part is '%.40s', expected weight or swiglu", w.text);
}

/* An order may take several lines; they are one text. */
static sf_code order_line(cursor *c) {
    skip_space(c);
    if (!*c->p) return sf_cursor_fail(c, sf_cursor_col(c), "the line ends, expected the reduction order");
    if (strstr(c->p, "*/")) /* it stands in a comment of the generated file */
        return sf_cursor_fail(c, sf_cursor_col(c), "'*/' in the reduction order, expected plain words");
    sf_template *t = c->t;
    t->order = t->order ? sf_arena_printf(c->arena, "%s %s", t->order, c->p)
                        : sf_arena_text(c->arena, c->p, strlen(c->p));
    return t->order ? SF_OK : sf_arena_full(c->err);
}

static sf_code head_line(cursor *c, bool *op_seen) {
    skip_space(c);
    int col = sf_cursor_col(c);
    if (sf_cursor_take(c, "template")) return name_line(c, "a template name", &c->t->name);
    if (!c->t->name) return sf_cursor_fail(c, col, "expected '//@ template NAME' as the first directive");
    if (sf_cursor_take(c, "op")) return op_line(c, op_seen);
    if (sf_cursor_take(c, "backend")) return name_line(c, "a backend", &c->t->backend);
    if (sf_cursor_take(c, "class")) return class_line(c);
    if (sf_cursor_take(c, "rows")) return rows_line(c);
    if (sf_cursor_take(c, "name")) return tile_line(c);
    if (sf_cursor_take(c, "library")) return library_line(c);
    if (sf_cursor_take(c, "order:")) return order_line(c);
    if (sf_cursor_take(c, "param")) return sf_template_param_line(c);
    sf_word w = {0};
    SF_TRY(sf_cursor_word(c, "a directive", &w));
    return sf_cursor_fail(
        c, w.col,
        "'%.40s' in the head, expected template, op, backend, class, rows, name, library, order:, param or "
        "prelude",
        w.text);
}

/* Reads directives up to the prelude; *prelude is its line. */
static sf_code read_head(sf_arena *a, sf_template *t, int *prelude, bool *op_seen, sf_err *err) {
    for (int i = 0; i < t->n_lines; i++) {
        bool put = false;
        const char *p = sf_directive(t->lines[i].text, &put);
        if (!p) continue;
        cursor c = {a, t, i, p, err};
        if (put)
            return sf_cursor_fail(&c, sf_cursor_col(&c), "'//@|' in the head, expected it after the prelude");
        t->lines[i].kind = SF_LINE_SKIP;
        if (sf_cursor_take(&c, "prelude")) {
            *prelude = i;
            t->lines[i].kind = SF_LINE_PRELUDE;
            return sf_cursor_end(&c);
        }
        SF_TRY(head_line(&c, op_seen));
    }
    return SF_FAIL_AT(err, SF_FORMAT, ((sf_loc){t->path, 0, 0}),
                      "'//@ prelude' is missing, expected it after the head");
}

static sf_code check_head(const sf_template *t, bool op_seen, int prelude, sf_err *err) {
    const char *lacks = !op_seen                         ? "op"
                        : !t->backend                    ? "backend"
                        : !t->serves[0] && !t->serves[1] ? "class"
                        : !t->n_rows                     ? "rows"
                        : !t->order                      ? "order:"
                                                         : NULL;
    if (!lacks && t->library && t->serves[SF_CLASS_PINNED])
        return sf_template_fail(t, t->library_line, 1, SF_FORMAT, err,
                                "library %s with the pinned class, expected class fast: it promises no order",
                                t->library);
    if (!lacks) return SF_OK;
    return sf_template_fail(t, prelude, 1, SF_FORMAT, err, "the head ends, expected '//@ %s' before it",
                            lacks);
}

static sf_code read_prelude(sf_template *t, int prelude, sf_err *err) {
    for (int i = prelude + 1; i < t->n_lines; i++) {
        bool put = false;
        const char *p = sf_directive(t->lines[i].text, &put);
        t->lines[i].kind = SF_LINE_SKIP;
        if (!p) continue;
        cursor c = {NULL, t, i, p, err};
        SF_TRY(sf_cursor_expect(&c, "end"));
        t->prelude_end = i;
        SF_TRY(sf_cursor_end(&c));
        return sf_template_check_prelude(t, prelude + 1, i - 1, err);
    }
    return sf_template_fail(t, prelude, 1, SF_FORMAT, err,
                            "the prelude is open, expected '//@ end' after it");
}

sf_code sf_template_parse(sf_arena *a, const char *path, const char *file, const char *text, size_t len,
                          sf_template **out, sf_err *err) {
    sf_template *t = sf_arena_alloc(a, 1, sizeof *t);
    if (!t) return sf_arena_full(err);
    t->path = path;
    t->file = file;
    if (!sf_sha256_of(text, len, t->sha256)) return sf_arena_full(err);
    int prelude = 0;
    bool op_seen = false;
    SF_TRY(split_lines(a, t, text, len, err));
    SF_TRY(read_head(a, t, &prelude, &op_seen, err));
    SF_TRY(check_head(t, op_seen, prelude, err));
    SF_TRY(read_prelude(t, prelude, err));
    SF_TRY(sf_template_body(a, t, t->prelude_end + 1, err));
    *out = t;
    return SF_OK;
}
