/* A request as a client writes it, read into parameters and prompts. */
#ifndef SF_API_REQUEST_H
#define SF_API_REQUEST_H

#include "api/error.h"
#include "model/chat.h"
#include "model/tokenizer.h"
#include "sched/request.h"

/* Where a field may stand; a request has one of COMPLETION and CHAT, a line of `run --input` RUN too. */
enum { SF_API_COMPLETION = 1, SF_API_CHAT = 2, SF_API_RUN = 4, SF_API_ALL = 7 };

#define SF_API_ID_MAX 256 /* bytes */

/* What reading a request and writing its answer need of the engine. All borrowed. */
typedef struct sf_api_model {
    const sf_tokenizer *tokenizer; /* NULL: prompts as ids only, answers without text */
    const sf_chat *chat;           /* NULL: no chat, chat_missing says why */
    const char *chat_missing;
    int vocab, max_context;
    int bos;      /* -1: none */
    bool add_bos; /* one BOS before a prompt */
    const char *fingerprint;
    const char *date; /* "YYYY-MM-DD" for strftime_now, or NULL */
    bool deterministic_default, strict;
    int64_t seed; /* of requests that give none; unless seed_given, of deterministic and greedy ones only:
                   * what others draw should differ, so they get one from the system's randomness */
    bool seed_given;
} sf_api_model;

typedef struct sf_api_request {
    sf_params params; /* arrays owned by this record */
    unsigned kind;
    bool echo, stream, return_token_ids, add_special_tokens, add_generation_prompt, continue_final_message;
    int logprobs, top_logprobs, prompt_logprobs; /* as asked for; -1: not */
    int max_completion_tokens; /* -1: not given; else params.max_tokens is this, as in vLLM and SGLang */
    const char *model, *date;  /* NULL: not given */
    json_t *id;                /* RUN: NULL, a string or an integer; borrowed from body, as below */
    json_t *prompt, *prompt_ids, *messages, *tools, *documents, *stream_options;
    bool prompt_only;    /* set between the two readers: tokens are only counted, so there may be none */
    const char *ignored; /* the first unknown field, or NULL */
    int n_prompts;       /* filled by sf_api_request_prompts */
    sf_ids *prompts;     /* [n_prompts] */
    json_t *body;        /* holds everything borrowed above */
} sf_api_request;

/* Reads the fields of body (an object; a reference is kept) by the table of api/fields.h. RUN in kind:
 * prompt, prompt_ids or messages decides between completion and chat. Needs no weights: m's tokenizer and
 * chat are not used. sf_api_request_fini frees, also after a failure. Errors: SF_INVALID with the field, what
 * was found and what was expected; SF_NOMEM. */
SF_CHECKED sf_code sf_api_request_read(const sf_api_model *m, unsigned kind, json_t *body,
                                       sf_api_request *out, sf_api_error *err);
/* Turns prompt, prompt_ids or messages into token ids and checks them against vocabulary and context. */
SF_CHECKED sf_code sf_api_request_prompts(const sf_api_model *m, sf_api_request *r, sf_api_error *err);
/* Whether the request itself gives the seed. */
bool sf_api_request_seeded(const sf_api_request *r);
/* Appends the token ids of a JSON array to out. name is the field's, for messages: "prompt[3] is 999999,
 * ...". Errors: SF_INVALID, SF_NOMEM. */
SF_CHECKED sf_code sf_api_read_ids(const sf_api_model *m, const char *name, const json_t *array, sf_ids *out,
                                   sf_api_error *err);
/* Whether a value (NULL: none) may be the id of a line: a string of at most SF_API_ID_MAX bytes or an
 * integer. */
bool sf_api_id_usable(const json_t *id);
/* The unknown fields of a request by their names, "a, b"; where buf is too short they end in "...". Returns
 * buf. */
const char *sf_api_request_unknown(const sf_api_request *r, char *buf, size_t size);
void sf_api_request_fini(sf_api_request *r);

#endif
