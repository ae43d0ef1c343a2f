/* Case, as Python maps it: full mappings (one character may become several) and the final sigma. */
#include "model/jinja_lex_priv.h"
#include "model/jinja_text_priv.h"

#include <string.h>
#include <utf8proc.h>

static bool in_ranges(int32_t cp, const int32_t (*r)[2], size_t n) {
    for (size_t i = 0; i < n; i++)
        if (cp >= r[i][0] && cp <= r[i][1]) return true;
    return false;
}

/* Unicode's Other_Lowercase and Other_Uppercase (PropList.txt). */
bool sf_jtext_is_cased(int32_t cp, int *is_lower, int *is_upper) {
    static const int32_t lower[][2] = {
        {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},    {0x2e0, 0x2e4},
        {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},   {0x1d78, 0x1d78},  {0x1d9b, 0x1dbf},
        {0x2071, 0x2071},   {0x207f, 0x207f},   {0x2090, 0x209c},   {0x2170, 0x217f},  {0x24d0, 0x24e9},
        {0x2c7c, 0x2c7d},   {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},  {0xab5c, 0xab5f},
        {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba}};
    static const int32_t upper[][2] = {
        {0x2160, 0x216f}, {0x24b6, 0x24cf}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
    int cat = (int)utf8proc_category(cp);
    *is_lower = cat == UTF8PROC_CATEGORY_LL || in_ranges(cp, lower, sizeof lower / sizeof *lower);
    *is_upper = cat == UTF8PROC_CATEGORY_LU || in_ranges(cp, upper, sizeof upper / sizeof *upper);
    return *is_lower || *is_upper || cat == UTF8PROC_CATEGORY_LT;
}

static bool cased(int32_t cp) {
    int lower, upper;
    return sf_jtext_is_cased(cp, &lower, &upper);
}

static bool case_ignorable(int32_t cp) {
    static const int32_t marks[] = {'\'',   '.',    ':',    0xb7,   0x387,  0x55f,  0x5f4,  0x2018, 0x2019,
                                    0x2024, 0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (cp == marks[i]) return true;
    int c = (int)utf8proc_category(cp);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_ME || c == UTF8PROC_CATEGORY_CF ||
           c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_SK;
}

/* The first character before (step -1) or after i that is not ignorable is cased. */
static bool cased_beside(const sf_jstr *s, size_t i, bool after) {
    size_t n;
    if (after) {
        (void)sf_jv_char(s->data + i, s->len - i, &n);
        for (i += n; i < s->len; i += n) {
            int32_t cp = sf_jv_char(s->data + i, s->len - i, &n);
            if (!case_ignorable(cp)) return cased(cp);
        }
        return false;
    }
    while (i) {
        do
            i--;
        while (i && ((unsigned char)s->data[i] & 0xc0) == 0x80);
        int32_t cp = sf_jv_char(s->data + i, s->len - i, &n);
        if (!case_ignorable(cp)) return cased(cp);
    }
    return false;
}

/* SpecialCasing.txt by way of the full case folding: what folds to several characters has them as its
 * uppercase. */
static int full_fold(int32_t cp, int32_t out[4]) {
    int boundary = 0;
    int cat = (int)utf8proc_category(cp);
    if (cat == UTF8PROC_CATEGORY_LU) return 1;
    utf8proc_ssize_t n = utf8proc_decompose_char(cp, out, 4, UTF8PROC_CASEFOLD, &boundary);
    return n < 1 || n > 4 ? 1 : (int)n;
}

static int to_upper(int32_t cp, int32_t out[4]) {
    int n = full_fold(cp, out);
    if (n == 1) out[0] = cp;
    for (int i = 0; i < n; i++)
        out[i] = utf8proc_toupper(out[i]);
    return n;
}

static int to_title(int32_t cp, int32_t out[4]) {
    int32_t simple = utf8proc_totitle(cp);
    int n = full_fold(cp, out);
    /* utf8proc's simple title of sharp s is the capital one; Python writes Ss. */
    if (n == 1 || (simple != cp && cp != 0xdf) || utf8proc_category(cp) == UTF8PROC_CATEGORY_LT) {
        out[0] = simple;
        return 1;
    }
    int first = n > 1 && !cased(out[0]); /* an apostrophe may come first */
    out[first] = utf8proc_totitle(out[first]);
    if (cp >= 0x1f80 && cp <= 0x1fff && out[n - 1] == 0x3b9)
        out[n - 1] = 0x345; /* iota subscript stays one */
    return n;
}

static int to_lower(const sf_jstr *s, size_t i, int32_t cp, int32_t out[4]) {
    out[0] = cp == 0x3a3 ? (cased_beside(s, i, false) && !cased_beside(s, i, true) ? 0x3c2 : 0x3c3)
                         : utf8proc_tolower(cp);
    if (cp != 0x130) return 1;
    out[0] = 'i';
    out[1] = 0x307;
    return 2;
}

/* What splits words for jinja2: [-\s({\[<]. */
static bool word_break(const char *at, size_t len) {
    return sf_jlex_space(at, len) || (*at && strchr("-({[<", *at));
}

sf_code sf_jtext_case(sf_jx *x, sf_jv v, sf_jcase how, sf_jv *out) {
    const sf_jstr *s = v.u.s;
    sf_jout o = {0};
    bool start = true; /* of the text or of a word */
    for (size_t i = 0, n; i < s->len; i += n) {
        int32_t cp = sf_jv_char(s->data + i, s->len - i, &n), to[4];
        int k;
        if (how == SF_JCASE_UPPER || (how == SF_JCASE_WORDS && start))
            k = to_upper(cp, to);
        else if (start && how != SF_JCASE_LOWER)
            k = to_title(cp, to);
        else
            k = to_lower(s, i, cp, to);
        for (int j = 0; j < k; j++)
            SF_TRY(sf_jout_char(x, &o, to[j], s->plain ? s->plain[i] : 0));
        start =
            how == SF_JCASE_TITLE ? !cased(cp) : how == SF_JCASE_WORDS && word_break(s->data + i, s->len - i);
    }
    SF_TRY(sf_jout_take(x, &o, out));
    out->safe = v.safe;
    return SF_OK;
}

sf_code sf_jtext_is_case(sf_jx *x, const sf_jstr *s, bool upper, bool *out) {
    *out = false;
    SF_TRY(sf_jx_step(x, s->len));
    for (size_t i = 0, n; i < s->len; i += n) {
        int32_t cp = sf_jv_char(s->data + i, s->len - i, &n);
        int is_lower, is_upper;
        bool any = sf_jtext_is_cased(cp, &is_lower, &is_upper);
        if (any && !(upper ? is_upper : is_lower)) {
            *out = false;
            return SF_OK;
        }
        *out |= any;
    }
    return SF_OK;
}
