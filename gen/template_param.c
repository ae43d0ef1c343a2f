#include "template_priv.h"

#include "suggest.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const sf_param *sf_param_find(const sf_template *t, const char *name, int *index) {
    for (int i = 0; i < t->n_params; i++)
        if (strcmp(t->params[i].name.text, name) == 0) {
            if (index) *index = i;
            return &t->params[i];
        }
    return NULL;
}

static bool parse_int(const char *text, int64_t *out) {
    const char *s = text + (*text == '-');
    size_t digits = strspn(s, "0123456789");
    if (!digits || s[digits] || digits > 15) return false;
    *out = strtoll(text, NULL, 10);
    return true;
}

static bool parse_float(const char *text, double *out) {
    if (!*text || strspn(text, "0123456789.eE+-") != strlen(text)) return false;
    char *end = NULL;
    *out = strtod(text, &end);
    return *end == 0 && isfinite(*out);
}

bool sf_param_in_range(const sf_param *p, sf_value v, char *msg, size_t size) {
    double x = p->kind == SF_PARAM_FLOAT ? v.f : (double)v.i;
    if (!p->ranged || (x >= p->lo && x <= p->hi)) return true;
    snprintf(msg, size, "%.15g, expected %.15g..%.15g", x, p->lo, p->hi);
    return false;
}

sf_code sf_param_value(const sf_param *p, const char *text, sf_value *out, char *msg, size_t size) {
    sf_value v = {0};
    if (p->kind == SF_PARAM_ENUM) {
        for (int i = 0; i < p->n_choices; i++)
            if (strcmp(p->choices[i], text) == 0) {
                out->i = i;
                return SF_OK;
            }
        char list[120];
        snprintf(msg, size, "'%.40s', expected %s", text, sf_join(p->choices, list, sizeof list));
        return SF_INVALID;
    }
    bool ok = p->kind == SF_PARAM_INT ? parse_int(text, &v.i) : parse_float(text, &v.f);
    if (!ok) {
        snprintf(msg, size, "'%.40s', expected %s", text,
                 p->kind == SF_PARAM_INT ? "an integer" : "a number");
        return SF_INVALID;
    }
    if (!sf_param_in_range(p, v, msg, size)) return SF_INVALID;
    *out = v;
    return SF_OK;
}

/* The fewest digits that give the fp32 value back: a float parameter is a C float. */
static void float_text(double v, char *buf, size_t size) {
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(buf, size, "%.*g", digits, v);
        if (strtof(buf, NULL) == (float)v) break;
    }
    if (!strpbrk(buf, ".e")) {
        size_t len = strlen(buf);
        snprintf(buf + len, size - len, ".0");
    }
}

const char *sf_param_text(const sf_param *p, sf_value v, char *buf, size_t size) {
    if (p->kind == SF_PARAM_ENUM)
        snprintf(buf, size, "%s", p->choices[v.i]);
    else if (p->kind == SF_PARAM_INT)
        snprintf(buf, size, "%lld", (long long)v.i);
    else
        float_text(v.f, buf, size);
    return buf;
}

static sf_code read_choices(cursor *c, sf_param *p) {
    sf_word w = {0};
    SF_TRY(sf_cursor_word(c, "the choices, such as store|add", &w));
    for (const char *s = w.text;;) {
        size_t len = strcspn(s, "|");
        if (len == 0 || p->n_choices == SF_CHOICES_MAX)
            return sf_cursor_fail(c, w.col, "choices are '%.64s', expected 1..%d words such as store|add",
                                  w.text, SF_CHOICES_MAX);
        p->choices[p->n_choices] = sf_arena_text(c->arena, s, len);
        if (!p->choices[p->n_choices++]) return sf_arena_full(c->err);
        if (!s[len]) return SF_OK;
        s += len + 1;
    }
}

static sf_code read_type(cursor *c, sf_param *p) {
    if (sf_cursor_take(c, "int")) return SF_OK;
    if (sf_cursor_take(c, "float")) {
        p->kind = SF_PARAM_FLOAT;
        return SF_OK;
    }
    if (sf_cursor_take(c, "enum")) {
        p->kind = SF_PARAM_ENUM;
        return read_choices(c, p);
    }
    return sf_cursor_fail(c, sf_cursor_col(c), "expected int, float or enum");
}

static sf_code read_range(cursor *c, sf_param *p) {
    sf_word w = {0};
    int col = sf_cursor_col(c);
    if (!sf_cursor_take(c, "in")) return SF_OK;
    if (p->kind == SF_PARAM_ENUM) return sf_cursor_fail(c, col, "a range of choices, expected none");
    SF_TRY(sf_cursor_word(c, "a range such as 1..16", &w));
    if (!sf_parse_range(w.text, 1e15, &p->lo, &p->hi))
        return sf_cursor_fail(c, w.col, "the range is '%.40s', expected one such as 1..16", w.text);
    p->ranged = true;
    return SF_OK;
}

sf_code sf_template_param_line(cursor *c) {
    sf_template *t = c->t;
    sf_param p = {.line = c->line};
    char msg[190];
    SF_TRY(sf_cursor_name(c, "a parameter's name", &p.name));
    if (sf_param_find(t, p.name.text, NULL))
        return sf_cursor_fail(c, p.name.col, "parameter %s again, expected it once", p.name.text);
    if (t->n_params == SF_PARAMS_MAX)
        return sf_cursor_fail(c, p.name.col, "over %d parameters, expected fewer", SF_PARAMS_MAX);
    SF_TRY(read_type(c, &p));
    SF_TRY(sf_cursor_expect(c, "="));
    SF_TRY(sf_cursor_word(c, "the default", &p.def_word));
    SF_TRY(read_range(c, &p));
    if (sf_cursor_take(c, "from")) SF_TRY(sf_cursor_word(c, "a source such as op.n", &p.from));
    if (sf_param_value(&p, p.def_word.text, &p.def, msg, sizeof msg) != SF_OK)
        return sf_cursor_fail(c, p.def_word.col, "the default of %s is %s", p.name.text, msg);
    SF_TRY(sf_cursor_end(c));
    t->params[t->n_params++] = p;
    return SF_OK;
}

/* The text after "NAME =" in a line, or NULL. */
static const char *assigned(const char *line, const char *name) {
    size_t len = strlen(name);
    for (const char *s = strstr(line, name); s; s = strstr(s + 1, name)) {
        bool starts = s == line || !(isalnum((unsigned char)s[-1]) || s[-1] == '_');
        const char *after = s + len + strspn(s + len, " \t");
        if (starts && !isalnum((unsigned char)s[len]) && s[len] != '_' && after[0] == '=' && after[1] != '=')
            return after + 1 + strspn(after + 1, " \t");
    }
    return NULL;
}

static bool says_default(const sf_param *p, const char *text) {
    if (p->kind == SF_PARAM_ENUM) {
        char want[160];
        int n = snprintf(want, sizeof want, "%s_%s", p->name.text, p->choices[p->def.i]);
        return strncmp(text, want, (size_t)n) == 0 && !isalnum((unsigned char)text[n]) && text[n] != '_';
    }
    double want = p->kind == SF_PARAM_INT ? (double)p->def.i : p->def.f;
    return strtod(text, NULL) == want;
}

sf_code sf_template_check_prelude(sf_template *t, int first, int last, sf_err *err) {
    for (int i = 0; i < t->n_params; i++) {
        const sf_param *p = &t->params[i];
        const char *text = NULL;
        for (int line = first; line <= last && !text; line++)
            text = assigned(t->lines[line].text, p->name.text);
        if (!text)
            return sf_template_fail(t, p->line, p->name.col, SF_FORMAT, err,
                                    "parameter %s is not set in the prelude, expected its default there",
                                    p->name.text);
        if (!says_default(p, text))
            return sf_template_fail(t, p->line, p->def_word.col, SF_FORMAT, err,
                                    "the prelude sets %s to '%.24s', expected the default %s", p->name.text,
                                    text, p->def_word.text);
    }
    return SF_OK;
}
