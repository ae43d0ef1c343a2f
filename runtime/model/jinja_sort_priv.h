/* Filters that put things in order, and the attribute paths that filters take. */
#ifndef SF_MODEL_JINJA_SORT_PRIV_H
#define SF_MODEL_JINJA_SORT_PRIV_H

#include "model/jinja_eval_priv.h"

/* item["a"]["b"][0] for the path "a.b.0"; fallback (MISSING, None: none) stands in for undefined parts. */
SF_CHECKED sf_code sf_jattr_path(sf_jx *x, sf_jv item, sf_jv path, sf_jv fallback, sf_jv *out);
/* The attribute to compare by, in lower case unless case matters. */
SF_CHECKED sf_code sf_jsort_key(sf_jx *x, sf_jv item, sf_jv path, bool case_sensitive, sf_jv *out);

SF_CHECKED sf_code sf_jfilter_sort(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out);
SF_CHECKED sf_code sf_jfilter_dictsort(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out);
SF_CHECKED sf_code sf_jfilter_min(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out);
SF_CHECKED sf_code sf_jfilter_max(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out);

#endif
