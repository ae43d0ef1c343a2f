/* The table of request fields: names, types, ranges, defaults. What is read, checked and documented comes
 * from this table and nowhere else. */
#ifndef SF_API_FIELDS_H
#define SF_API_FIELDS_H

#include "api/request.h"

#include <stddef.h>

typedef enum sf_api_type {
    SF_API_BOOL,
    SF_API_INT,      /* int in min..max */
    SF_API_INT64,    /* the whole range */
    SF_API_FLOAT,    /* a number in min..max, stored as float */
    SF_API_STRING,   /* borrowed const char * */
    SF_API_OBJECT,   /* borrowed json_t * */
    SF_API_ARRAY,    /* likewise */
    SF_API_ID,       /* likewise: a string of at most max bytes or an integer */
    SF_API_PROMPT,   /* likewise: a string, a list of strings, token ids, a list of lists of token ids */
    SF_API_LOGPROBS, /* int in min..max; true and false mean 0 and none */
    SF_API_STOP,     /* a string or a list of at most max non-empty strings */
    SF_API_IDS,      /* a list of at most max token ids */
    SF_API_BIAS      /* {"id": number in min..max} */
} sf_api_type;

typedef struct sf_api_field {
    const char *name;
    sf_api_type type;
    unsigned where; /* SF_API_COMPLETION | SF_API_CHAT | SF_API_RUN */
    double min, max;
    bool open_min;        /* min itself is outside */
    size_t offset;        /* in sf_api_request; unused for SF_API_STOP, _IDS, _BIAS */
    const char *fallback; /* the default, as text */
    const char *help;
} sf_api_field;

extern const sf_api_field sf_api_fields[];
extern const int sf_api_n_fields;

/* By its name or its alias. NULL: unknown. */
const sf_api_field *sf_api_field_find(const char *name);
/* Another name that a request may use for the field, or NULL. */
const char *sf_api_field_alias(const sf_api_field *f);
/* The known name of a request of this kind that an unknown one is probably a slip of, or NULL. */
const char *sf_api_field_near(const char *name, unsigned kind);
/* What the field expects: "an integer in 1..64", "a number in (0, 1]". Returns buf. */
const char *sf_api_field_expects(const sf_api_field *f, char *buf, size_t size);

#endif
