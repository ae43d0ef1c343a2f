/* Readers of the fields that hold lists. */
#ifndef SF_API_VALUES_PRIV_H
#define SF_API_VALUES_PRIV_H

#include "api/fields.h"

/* Each fills the parameter's array (owned by r) or fails naming the field. */
SF_CHECKED sf_code sf_api_read_stop(const sf_api_field *f, json_t *v, sf_api_request *r, sf_api_error *err);
SF_CHECKED sf_code sf_api_read_stop_ids(const sf_api_model *m, const sf_api_field *f, json_t *v,
                                        sf_api_request *r, sf_api_error *err);
SF_CHECKED sf_code sf_api_read_bias(const sf_api_model *m, const sf_api_field *f, json_t *v,
                                    sf_api_request *r, sf_api_error *err);

sf_code sf_api_wrong(const sf_api_field *f, const json_t *found, sf_api_error *err);

#endif
