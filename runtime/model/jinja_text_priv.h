/* Text operations behind filters and string methods. All keep the marks of the bytes they keep. */
#ifndef SF_MODEL_JINJA_TEXT_PRIV_H
#define SF_MODEL_JINJA_TEXT_PRIV_H

#include "model/jinja_eval_priv.h"

typedef enum sf_jcase {
    SF_JCASE_UPPER,
    SF_JCASE_LOWER,
    SF_JCASE_TITLE,      /* str.title() */
    SF_JCASE_CAPITALIZE, /* str.capitalize() */
    SF_JCASE_WORDS       /* jinja2's title filter */
} sf_jcase;

SF_CHECKED sf_code sf_jtext_case(sf_jx *x, sf_jv s, sf_jcase how, sf_jv *out);
enum { SF_JTRIM_LEFT = 1, SF_JTRIM_RIGHT = 2 };
SF_CHECKED sf_code sf_jtext_trim(sf_jx *x, sf_jv s, const sf_jstr *chars, int sides, sf_jv *out);
SF_CHECKED sf_code sf_jtext_replace(sf_jx *x, sf_jv s, const sf_jstr *from, const sf_jstr *to, int64_t count,
                                    sf_jv *out);
SF_CHECKED sf_code sf_jtext_split(sf_jx *x, sf_jv s, const sf_jstr *sep, int64_t max, bool right, sf_jv *out);
SF_CHECKED sf_code sf_jtext_lines(sf_jx *x, sf_jv s, bool keep_ends, sf_jv *out);
/* str(sep).join(str(item) ...); strict: items must be text, as for str.join. */
SF_CHECKED sf_code sf_jtext_join(sf_jx *x, const sf_jstr *sep, sf_jiter *items, bool strict, sf_jv *out);
SF_CHECKED sf_code sf_jtext_is_case(sf_jx *x, const sf_jstr *s, bool upper, bool *out);
/* Bytes before the first (last) occurrence, or -1. */
int64_t sf_jtext_find(const sf_jstr *s, const sf_jstr *sub, size_t from, bool last);
bool sf_jtext_is_cased(int32_t cp, int *is_lower, int *is_upper);

#endif
