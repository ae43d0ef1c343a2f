/* The prompts of a benchmark: drawn at random, or read from a file. */
#ifndef SF_BENCH_DATASET_H
#define SF_BENCH_DATASET_H

#include "model/tokenizer.h"

#include <jansson.h>

typedef enum sf_bench_source { SF_BENCH_RANDOM, SF_BENCH_SHAREGPT, SF_BENCH_CUSTOM } sf_bench_source;

typedef struct sf_bench_prompt {
    json_t *value;        /* owned: a string or token ids for completions, messages for chats */
    int64_t input_tokens; /* as far as it is known: 0 */
    int output_tokens;    /* to ask for */
} sf_bench_prompt;

typedef struct sf_bench_dataset {
    sf_bench_prompt *v; /* [n] */
    int n;
} sf_bench_dataset;

typedef struct sf_bench_dataset_config {
    sf_bench_source source;
    const char *path; /* of a file; outlives every error record */
    bool chat;        /* messages are wanted, not prompts */
    int n;
    int64_t seed;
    int output_len;            /* 0: what the data say, or else the source's default */
    int input_len, prefix_len; /* random: drawn tokens, and those before them that all prompts share */
    double range_ratio;        /* random: lengths are uniform in length * (1 -+ this), 0 <= it < 1 */
    int vocab;                 /* random: ids are below */
    const int *avoid;          /* random: [n_avoid] special ids, when there is no tokenizer to tell */
    int n_avoid;
    const sf_tokenizer *tokenizer; /* or NULL: then lengths in files are guessed from bytes */
} sf_bench_dataset_config;

/* c->n prompts; a file with fewer is gone through again.
 * random: token ids; for chats the text they stand for, which needs the tokenizer.
 * sharegpt: a JSON list of {"conversations": [{"value"}, {"value"}, ...]}; the first turn is the prompt, the
 *   second one's length the answer's. Conversations too short or too long for vLLM's benchmark (under 4
 *   tokens, over 1024 of prompt or 2048 of both) are left out. Shuffled.
 * custom: JSON lines with prompt (text or token ids) or messages, and, where wanted, output_tokens. In order.
 * Errors: SF_IO, SF_FORMAT (file and line), SF_INVALID (a setting), SF_NOMEM. */
SF_CHECKED sf_code sf_bench_dataset_make(const sf_bench_dataset_config *c, sf_bench_dataset *out,
                                         sf_err *err);
void sf_bench_dataset_fini(sf_bench_dataset *d);

#endif
