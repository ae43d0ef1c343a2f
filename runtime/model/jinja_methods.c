/* Methods of strings, dictionaries and lists. */
#include "model/jinja_lex_priv.h"
#include "model/jinja_text_priv.h"

#include <string.h>
#include <utf8proc.h>

static sf_code trim_method(sf_jx *x, sf_jv self, const sf_jargs *a, int sides, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    const sf_jstr *chars;
    SF_TRY(sf_jargs_bind(x, a, "strip", "/chars", 0, slot));
    SF_TRY(sf_jarg_str(x, slot[0], &chars));
    return sf_jtext_trim(x, self, chars, sides, out);
}

static sf_code str_strip(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return trim_method(x, self, a, SF_JTRIM_LEFT | SF_JTRIM_RIGHT, out);
}
static sf_code str_lstrip(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return trim_method(x, self, a, SF_JTRIM_LEFT, out);
}
static sf_code str_rstrip(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return trim_method(x, self, a, SF_JTRIM_RIGHT, out);
}

static bool affix(const sf_jstr *s, const sf_jstr *part, bool end) {
    return part->len <= s->len && !memcmp(s->data + (end ? s->len - part->len : 0), part->data, part->len);
}

static sf_code affix_method(sf_jx *x, sf_jv self, const sf_jargs *a, bool end, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    SF_TRY(sf_jargs_bind(x, a, end ? "endswith" : "startswith", "/prefix", 1, slot));
    const sf_jv *parts = slot;
    size_t n = 1;
    if (slot[0].kind == SF_JV_TUPLE) {
        parts = slot[0].u.list->items;
        n = slot[0].u.list->n;
    }
    *out = sf_jv_bool(false);
    for (size_t i = 0; i < n && !out->u.b; i++) {
        if (parts[i].kind != SF_JV_STR)
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "a prefix must be text, not '%s'",
                              sf_jtype_name(parts[i]));
        out->u.b = affix(self.u.s, parts[i].u.s, end);
    }
    return SF_OK;
}

static sf_code str_startswith(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return affix_method(x, self, a, false, out);
}
static sf_code str_endswith(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return affix_method(x, self, a, true, out);
}

static sf_code remove_affix(sf_jx *x, sf_jv self, const sf_jargs *a, bool end, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    const sf_jstr *part;
    SF_TRY(sf_jargs_bind(x, a, "removeprefix", "/part", 1, slot));
    SF_TRY(sf_jarg_str(x, slot[0], &part));
    if (!part) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "a prefix must be text, not 'NoneType'");
    bool has = affix(self.u.s, part, end);
    size_t from = has && !end ? part->chars : 0, to = self.u.s->chars - (has && end ? part->chars : 0);
    return sf_jv_substr(x, self, from, to, out);
}

static sf_code str_removeprefix(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return remove_affix(x, self, a, false, out);
}
static sf_code str_removesuffix(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return remove_affix(x, self, a, true, out);
}

static sf_code split_method(sf_jx *x, sf_jv self, const sf_jargs *a, bool right, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    const sf_jstr *sep;
    int64_t max;
    SF_TRY(sf_jargs_bind(x, a, "split", "sep maxsplit", 0, slot));
    SF_TRY(sf_jarg_str(x, slot[0], &sep));
    SF_TRY(sf_jarg_int(x, slot[1], -1, &max));
    return sf_jtext_split(x, self, sep, max < 0 ? -1 : max, right, out);
}

static sf_code str_split(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return split_method(x, self, a, false, out);
}
static sf_code str_rsplit(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return split_method(x, self, a, true, out);
}

static sf_code str_splitlines(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    bool keep;
    SF_TRY(sf_jargs_bind(x, a, "splitlines", "keepends", 0, slot));
    SF_TRY(sf_jarg_bool(x, slot[0], false, &keep));
    return sf_jtext_lines(x, self, keep, out);
}

static sf_code str_replace(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    const sf_jstr *from, *to;
    int64_t count;
    SF_TRY(sf_jargs_bind(x, a, "replace", "/old new count", 2, slot));
    SF_TRY(sf_jarg_str(x, slot[0], &from));
    SF_TRY(sf_jarg_str(x, slot[1], &to));
    SF_TRY(sf_jarg_int(x, slot[2], -1, &count));
    if (!from || !to) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "replace needs text");
    return sf_jtext_replace(x, self, from, to, count, out);
}

static sf_code case_method(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jcase how, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    SF_TRY(sf_jargs_bind(x, a, "a case method", "", 0, slot));
    return sf_jtext_case(x, self, how, out);
}

static sf_code str_upper(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return case_method(x, self, a, SF_JCASE_UPPER, out);
}
static sf_code str_lower(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return case_method(x, self, a, SF_JCASE_LOWER, out);
}
static sf_code str_title(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return case_method(x, self, a, SF_JCASE_TITLE, out);
}
static sf_code str_capitalize(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return case_method(x, self, a, SF_JCASE_CAPITALIZE, out);
}

static sf_code str_join(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    sf_jiter *it;
    SF_TRY(sf_jargs_bind(x, a, "join", "/items", 1, slot));
    SF_TRY(sf_jiter_open(x, slot[0], &it));
    return sf_jtext_join(x, self.u.s, it, true, out);
}

static sf_code find_method(sf_jx *x, sf_jv self, const sf_jargs *a, bool last, int64_t *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    SF_TRY(sf_jargs_bind(x, a, "find", "/sub", 1, slot));
    if (slot[0].kind != SF_JV_STR) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "find needs text");
    SF_TRY(sf_jx_step(x, self.u.s->len));
    int64_t at = sf_jtext_find(self.u.s, slot[0].u.s, 0, last);
    *out = at < 0 ? -1 : 0;
    for (int64_t i = 0; i < at; i++)
        *out += ((unsigned char)self.u.s->data[i] & 0xc0) != 0x80;
    return SF_OK;
}

static sf_code str_find(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    int64_t at;
    SF_TRY(find_method(x, self, a, false, &at));
    *out = sf_jv_int(at);
    return SF_OK;
}
static sf_code str_rfind(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    int64_t at;
    SF_TRY(find_method(x, self, a, true, &at));
    *out = sf_jv_int(at);
    return SF_OK;
}
static sf_code str_index(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    SF_TRY(str_find(x, self, a, out));
    return out->u.i < 0 ? SF_FAIL_AT(x->err, SF_INVALID, x->at, "substring not found") : SF_OK;
}

static sf_code str_count(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    SF_TRY(sf_jargs_bind(x, a, "count", "/sub", 1, slot));
    if (slot[0].kind != SF_JV_STR) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "count needs text");
    const sf_jstr *s = self.u.s, *sub = slot[0].u.s;
    *out = sf_jv_int(sub->len ? 0 : (int64_t)s->chars + 1);
    SF_TRY(sf_jx_step(x, s->len));
    for (int64_t at = 0; sub->len && (at = sf_jtext_find(s, sub, (size_t)at, false)) >= 0;
         at += (int64_t)sub->len)
        out->u.i++;
    return SF_OK;
}

/* Whether every character of a text that has one is of a class. */
static sf_code class_method(sf_jx *x, sf_jv self, const sf_jargs *a, const char *name, int first, int last,
                            sf_jv *out) {
    const sf_jstr *s = self.u.s;
    sf_jv slot[SF_JMAX_PARAMS];
    SF_TRY(sf_jargs_bind(x, a, name, "", 0, slot));
    SF_TRY(sf_jx_step(x, s->len));
    bool all = s->len > 0;
    for (size_t i = 0, n; all && i < s->len; i += n) {
        int cat = (int)utf8proc_category(sf_jv_char(s->data + i, s->len - i, &n));
        if (cat == UTF8PROC_CATEGORY_NO && first != UTF8PROC_CATEGORY_LU)
            return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "%s of an unusual digit is not supported", name);
        all = (cat >= first && cat <= last) ||
              (first == UTF8PROC_CATEGORY_LU && last == UTF8PROC_CATEGORY_NO && cat == UTF8PROC_CATEGORY_ND);
        if (cat > UTF8PROC_CATEGORY_LO && cat < UTF8PROC_CATEGORY_ND) all = false; /* marks lie between */
    }
    *out = sf_jv_bool(all);
    return SF_OK;
}

static sf_code str_isdigit(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return class_method(x, self, a, "isdigit", UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_ND, out);
}
static sf_code str_isalpha(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return class_method(x, self, a, "isalpha", UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO, out);
}
static sf_code str_isalnum(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return class_method(x, self, a, "isalnum", UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NO, out);
}

static sf_code str_isspace(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    SF_TRY(sf_jargs_bind(x, a, "isspace", "", 0, slot));
    SF_TRY(sf_jtext_trim(x, self, NULL, SF_JTRIM_LEFT, out));
    *out = sf_jv_bool(self.u.s->len && !out->u.s->len);
    return SF_OK;
}

static sf_code is_case_method(sf_jx *x, sf_jv self, const sf_jargs *a, bool upper, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    *out = sf_jv_bool(false);
    SF_TRY(sf_jargs_bind(x, a, upper ? "isupper" : "islower", "", 0, slot));
    return sf_jtext_is_case(x, self.u.s, upper, &out->u.b);
}
static sf_code str_isupper(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return is_case_method(x, self, a, true, out);
}
static sf_code str_islower(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return is_case_method(x, self, a, false, out);
}

static sf_code dict_get(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    const sf_jv *found;
    SF_TRY(sf_jargs_bind(x, a, "get", "/key default", 1, slot));
    SF_TRY(sf_jv_find(x, self.u.dict, slot[0], &found));
    *out = found ? *found : slot[1].kind == SF_JV_MISSING ? sf_jv_none() : slot[1];
    return SF_OK;
}

static sf_code dict_view(sf_jx *x, sf_jv self, const sf_jargs *a, int of, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    sf_jview *v;
    SF_TRY(sf_jargs_bind(x, a, "a dictionary's view", "", 0, slot));
    SF_TRY(sf_jx_get(x, sizeof *v, &v));
    v->dict = self.u.dict;
    v->of = of == 0 ? SF_JVIEW_KEYS : of == 1 ? SF_JVIEW_VALUES : SF_JVIEW_ITEMS;
    *out = (sf_jv){.kind = SF_JV_VIEW, .u.view = v};
    return SF_OK;
}
static sf_code dict_keys(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return dict_view(x, self, a, 0, out);
}
static sf_code dict_values(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return dict_view(x, self, a, 1, out);
}
static sf_code dict_items(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    return dict_view(x, self, a, 2, out);
}

/* Containers never change here (the sandbox forbids it), so a copy is the thing itself. */
static sf_code same(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    SF_TRY(sf_jargs_bind(x, a, "copy", "", 0, slot));
    *out = self;
    return SF_OK;
}

static sf_code list_search(sf_jx *x, sf_jv self, const sf_jargs *a, int64_t *first, int64_t *count) {
    sf_jv slot[SF_JMAX_PARAMS];
    SF_TRY(sf_jargs_bind(x, a, "index", "/item", 1, slot));
    *first = -1;
    *count = 0;
    for (size_t i = 0; i < self.u.list->n; i++) {
        bool is;
        SF_TRY(sf_jequal(x, self.u.list->items[i], slot[0], &is));
        if (is && *first < 0) *first = (int64_t)i;
        *count += is;
    }
    return SF_OK;
}

static sf_code list_index(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    int64_t first, count;
    SF_TRY(list_search(x, self, a, &first, &count));
    if (first < 0) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "item is not in the list");
    *out = sf_jv_int(first);
    return SF_OK;
}
static sf_code list_count(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    int64_t first, count;
    SF_TRY(list_search(x, self, a, &first, &count));
    *out = sf_jv_int(count);
    return SF_OK;
}

typedef struct sf_jmethod {
    const char *name;
    sf_jfn *fn;
} sf_jmethod;

static const sf_jmethod STR_METHODS[] = {{"strip", str_strip},
                                         {"lstrip", str_lstrip},
                                         {"rstrip", str_rstrip},
                                         {"startswith", str_startswith},
                                         {"endswith", str_endswith},
                                         {"removeprefix", str_removeprefix},
                                         {"removesuffix", str_removesuffix},
                                         {"split", str_split},
                                         {"rsplit", str_rsplit},
                                         {"splitlines", str_splitlines},
                                         {"replace", str_replace},
                                         {"upper", str_upper},
                                         {"lower", str_lower},
                                         {"title", str_title},
                                         {"capitalize", str_capitalize},
                                         {"join", str_join},
                                         {"find", str_find},
                                         {"rfind", str_rfind},
                                         {"index", str_index},
                                         {"count", str_count},
                                         {"isdigit", str_isdigit},
                                         {"isalpha", str_isalpha},
                                         {"isalnum", str_isalnum},
                                         {"isspace", str_isspace},
                                         {"isupper", str_isupper},
                                         {"islower", str_islower},
                                         {NULL, NULL}};
static const sf_jmethod DICT_METHODS[] = {{"get", dict_get},     {"keys", dict_keys}, {"values", dict_values},
                                          {"items", dict_items}, {"copy", same},      {NULL, NULL}};
static const sf_jmethod LIST_METHODS[] = {
    {"index", list_index}, {"count", list_count}, {"copy", same}, {NULL, NULL}};
static const sf_jmethod TUPLE_METHODS[] = {{"index", list_index}, {"count", list_count}, {NULL, NULL}};
static const sf_jmethod NO_METHODS[] = {{NULL, NULL}};

/* Python has these, this subset does not. */
static const char *const STR_REFUSED[] = {
    "casefold", "center",    "encode",       "expandtabs", "format",      "format_map",
    "isascii",  "isdecimal", "isidentifier", "isnumeric",  "isprintable", "istitle",
    "ljust",    "rjust",     "maketrans",    "partition",  "rpartition",  "rindex",
    "swapcase", "translate", "zfill",        NULL};
static const char *const NUM_REFUSED[] = {
    "real",     "imag",       "numerator",        "denominator", "conjugate", "bit_length", "bit_count",
    "to_bytes", "from_bytes", "as_integer_ratio", "is_integer",  "hex",       "fromhex",    NULL};
static const char *const OTHER_REFUSED[] = {
    "start", "stop", "step",      "count",        "index",         "mapping", "isdisjoint", "send", "throw",
    "close", "name", "arguments", "catch_kwargs", "catch_varargs", "caller",  "fromkeys",   NULL};
/* The sandbox hides methods that change their object: they read as undefined. */
static const char *const MUTATORS[] = {"append",  "clear", "extend",  "insert",     "pop",    "remove",
                                       "reverse", "sort",  "popitem", "setdefault", "update", NULL};

static bool listed(const char *const *names, const char *name) {
    for (; *names; names++)
        if (!strcmp(*names, name)) return true;
    return false;
}

static void tables(sf_jv v, const sf_jmethod **methods, const char *const **refused) {
    *methods = NO_METHODS;
    *refused = OTHER_REFUSED;
    if (v.kind == SF_JV_STR) {
        *methods = STR_METHODS;
        *refused = STR_REFUSED;
    } else if (v.kind == SF_JV_DICT) {
        *methods = DICT_METHODS;
        *refused = OTHER_REFUSED + 15;
    } else if (v.kind == SF_JV_LIST || v.kind == SF_JV_TUPLE) {
        *methods = v.kind == SF_JV_LIST ? LIST_METHODS : TUPLE_METHODS;
        *refused = OTHER_REFUSED + 16;
    } else if (sf_jv_is_num(v)) {
        *refused = NUM_REFUSED;
    } else if (v.kind == SF_JV_NONE) {
        *refused = OTHER_REFUSED + 16;
    }
}

sf_code sf_jmethod_find(sf_jx *x, sf_jv self, const char *name, size_t len, bool *found, sf_jv *out) {
    const sf_jmethod *m;
    const char *const *refused;
    *found = false;
    if (strlen(name) != len) return SF_OK;
    tables(self, &m, &refused);
    for (; m->name && !*found; m++) {
        if (strcmp(m->name, name) != 0) continue;
        sf_jfunc *f;
        SF_TRY(sf_jx_get(x, sizeof *f, &f));
        *f = (sf_jfunc){.name = m->name, .fn = m->fn, .self = self};
        *out = (sf_jv){.kind = SF_JV_FUNC, .u.fn = f};
        *found = true;
    }
    if (*found) return SF_OK;
    if (listed(refused, name))
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "'%s' of '%s' is not supported", name,
                          sf_jtype_name(self));
    if ((self.kind == SF_JV_DICT || self.kind == SF_JV_LIST) && listed(MUTATORS, name)) {
        bool of_dict = listed(MUTATORS + 8, name) || !strcmp(name, "clear") || !strcmp(name, "pop");
        bool of_list = !listed(MUTATORS + 8, name);
        *found = self.kind == SF_JV_DICT ? of_dict : of_list;
        *out = sf_jv_undef(name);
    }
    return SF_OK;
}
