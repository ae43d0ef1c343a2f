#include "yaml_node.h"

#include "suggest.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const sf_yaml_node *sf_yaml_find(const sf_yaml_node *map, const char *key) {
    for (const sf_yaml_node *n = map->first; n; n = n->next)
        if (n->key && strcmp(n->key, key) == 0) return n;
    return NULL;
}

sf_code sf_yaml_check_keys(const sf_yaml_node *map, const char *what, const char *const *keys, sf_err *err) {
    for (const sf_yaml_node *n = map->first; n; n = n->next) {
        bool known = false;
        for (int i = 0; keys[i]; i++)
            known = known || strcmp(n->key, keys[i]) == 0;
        if (known) continue;
        const char *close = sf_suggest(n->key, keys);
        char list[256];
        if (close)
            return SF_FAIL_AT(err, SF_INVALID, n->key_loc, "unknown key '%.64s' in %s, did you mean '%s'?",
                              n->key, what, close);
        return SF_FAIL_AT(err, SF_INVALID, n->key_loc, "unknown key '%.64s' in %s, expected %s", n->key, what,
                          sf_join(keys, list, sizeof list));
    }
    return SF_OK;
}

static sf_code get(const sf_yaml_node *map, const char *key, const sf_yaml_node **out, sf_err *err) {
    *out = sf_yaml_find(map, key);
    if (*out) return SF_OK;
    if (map->key) return SF_FAIL_AT(err, SF_INVALID, map->loc, "'%.64s' lacks the key '%s'", map->key, key);
    return SF_FAIL_AT(err, SF_INVALID, map->loc, "the key '%s' is missing, expected it in this file", key);
}

/* What stands there, for a message. */
static const char *found(const sf_yaml_node *n) {
    if (n->kind == SF_YAML_LIST) return "a list";
    if (n->kind == SF_YAML_MAP) return "a mapping";
    return n->text[0] ? n->text : "empty";
}

/* A decimal integer as people write it: no octal look-alikes (010), no digits' separators. */
static bool parse_int(const sf_yaml_node *n, long long *out) {
    if (n->kind != SF_YAML_SCALAR || n->quoted) return false;
    const char *s = n->text + (n->text[0] == '-');
    size_t digits = strspn(s, "0123456789");
    if (digits == 0 || s[digits] || (digits > 1 && s[0] == '0')) return false;
    errno = 0;
    *out = strtoll(n->text, NULL, 10);
    return errno == 0;
}

static bool parse_num(const sf_yaml_node *n, double *out) {
    if (n->kind != SF_YAML_SCALAR || n->quoted) return false;
    const char *s = n->text + (n->text[0] == '-');
    if (!*s || strspn(s, "0123456789.eE+-") != strlen(s)) return false;
    char *end = NULL;
    *out = strtod(n->text, &end);
    return *end == 0 && isfinite(*out);
}

sf_code sf_yaml_int(const sf_yaml_node *node, const char *name, int lo, int hi, int *out, sf_err *err) {
    long long v = 0;
    if (!parse_int(node, &v))
        return SF_FAIL_AT(err, SF_INVALID, node->loc, "%s is %s%.64s%s, expected an integer in %d..%d", name,
                          node->quoted ? "\"" : "", found(node), node->quoted ? "\"" : "", lo, hi);
    if (v < lo || v > hi)
        return SF_FAIL_AT(err, SF_INVALID, node->loc, "%s is %lld, expected %d..%d", name, v, lo, hi);
    *out = (int)v;
    return SF_OK;
}

sf_code sf_yaml_num(const sf_yaml_node *node, const char *name, double lo, double hi, double *out,
                    sf_err *err) {
    double v = 0;
    if (!parse_num(node, &v))
        return SF_FAIL_AT(err, SF_INVALID, node->loc, "%s is %s%.64s%s, expected a number in %g..%g", name,
                          node->quoted ? "\"" : "", found(node), node->quoted ? "\"" : "", lo, hi);
    if (v < lo || v > hi)
        return SF_FAIL_AT(err, SF_INVALID, node->loc, "%s is %g, expected %g..%g", name, v, lo, hi);
    *out = v;
    return SF_OK;
}

sf_code sf_yaml_word(const sf_yaml_node *node, const char *name, const char *const *words, int *out,
                     sf_err *err) {
    if (node->kind == SF_YAML_SCALAR)
        for (int i = 0; words[i]; i++)
            if (strcmp(node->text, words[i]) == 0) {
                *out = i;
                return SF_OK;
            }
    char list[200];
    return SF_FAIL_AT(err, SF_INVALID, node->loc, "%s is %.64s, expected %s", name, found(node),
                      sf_join(words, list, sizeof list));
}

sf_code sf_yaml_get_int(const sf_yaml_node *map, const char *key, int lo, int hi, int *out, sf_err *err) {
    const sf_yaml_node *n = NULL;
    SF_TRY(get(map, key, &n, err));
    return sf_yaml_int(n, key, lo, hi, out, err);
}

sf_code sf_yaml_get_num(const sf_yaml_node *map, const char *key, double lo, double hi, double *out,
                        sf_err *err) {
    const sf_yaml_node *n = NULL;
    SF_TRY(get(map, key, &n, err));
    return sf_yaml_num(n, key, lo, hi, out, err);
}

sf_code sf_yaml_get_bool(const sf_yaml_node *map, const char *key, bool *out, sf_err *err) {
    const sf_yaml_node *n = NULL;
    SF_TRY(get(map, key, &n, err));
    bool yes = n->kind == SF_YAML_SCALAR && !n->quoted && strcmp(n->text, "true") == 0;
    bool no = n->kind == SF_YAML_SCALAR && !n->quoted && strcmp(n->text, "false") == 0;
    if (!yes && !no)
        return SF_FAIL_AT(err, SF_INVALID, n->loc, "%s is %.64s, expected true or false", key, found(n));
    *out = yes;
    return SF_OK;
}

sf_code sf_yaml_get_text(const sf_yaml_node *map, const char *key, const char **out, sf_err *err) {
    const sf_yaml_node *n = NULL;
    SF_TRY(get(map, key, &n, err));
    if (n->kind != SF_YAML_SCALAR || !n->text[0])
        return SF_FAIL_AT(err, SF_INVALID, n->loc, "%s is %s, expected text", key, found(n));
    *out = n->text;
    return SF_OK;
}

sf_code sf_yaml_get_name(const sf_yaml_node *map, const char *key, const char **out, sf_err *err) {
    const char *text = NULL;
    SF_TRY(sf_yaml_get_text(map, key, &text, err));
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    if (text[len] || len > 64 || text[0] == '.' || text[0] == '-')
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(map, key)->loc,
                          "%s is '%.80s', expected at most 64 letters, digits, '-', '_' and '.', the first a "
                          "letter or digit",
                          key, text);
    *out = text;
    return SF_OK;
}

sf_code sf_yaml_get_word(const sf_yaml_node *map, const char *key, const char *const *words, int *out,
                         sf_err *err) {
    const sf_yaml_node *n = NULL;
    SF_TRY(get(map, key, &n, err));
    return sf_yaml_word(n, key, words, out, err);
}

sf_code sf_yaml_get_list(const sf_yaml_node *map, const char *key, int max, const sf_yaml_node **out,
                         sf_err *err) {
    const sf_yaml_node *n = NULL;
    SF_TRY(get(map, key, &n, err));
    if (n->kind != SF_YAML_LIST)
        return SF_FAIL_AT(err, SF_INVALID, n->loc, "%s is %.64s, expected a list", key, found(n));
    if (n->n < 1 || n->n > max)
        return SF_FAIL_AT(err, SF_INVALID, n->loc, "%s has %d entries, expected 1..%d", key, n->n, max);
    *out = n;
    return SF_OK;
}

sf_code sf_yaml_get_ints(const sf_yaml_node *map, const char *key, int lo, int hi, int max, int *out, int *n,
                         sf_err *err) {
    const sf_yaml_node *list = NULL;
    SF_TRY(sf_yaml_get_list(map, key, max, &list, err));
    int i = 0;
    for (const sf_yaml_node *item = list->first; item; item = item->next)
        SF_TRY(sf_yaml_int(item, key, lo, hi, &out[i++], err));
    *n = i;
    return SF_OK;
}

sf_code sf_yaml_get_map(const sf_yaml_node *map, const char *key, const char *const *keys,
                        const sf_yaml_node **out, sf_err *err) {
    const sf_yaml_node *n = NULL;
    SF_TRY(get(map, key, &n, err));
    if (n->kind != SF_YAML_MAP)
        return SF_FAIL_AT(err, SF_INVALID, n->loc, "%s is %.64s, expected a mapping", key, found(n));
    if (keys) SF_TRY(sf_yaml_check_keys(n, key, keys, err));
    *out = n;
    return SF_OK;
}
