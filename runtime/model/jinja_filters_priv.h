/* The filters of sequences, found by jinja_filters.c. */
#ifndef SF_MODEL_JINJA_FILTERS_PRIV_H
#define SF_MODEL_JINJA_FILTERS_PRIV_H

#include "model/jinja_eval_priv.h"

const sf_jfilter *sf_jfilters_seq(size_t *n);

#endif
