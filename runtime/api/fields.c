#include "api/fields.h"

#include "base/suggest.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define COMPLETION SF_API_COMPLETION
#define CHAT       SF_API_CHAT
#define RUN        SF_API_RUN
#define ALL        SF_API_ALL
#define AT(field)  offsetof(sf_api_request, field)
#define IDS_MAX    (SF_STOP_MAX - 8) /* eos ids need room beside them */

/* clang-format off */
const sf_api_field sf_api_fields[] = {
    /* name, type, where, min, max, open_min, offset, default, help */
    {"id", SF_API_ID, RUN, 0, SF_API_ID_MAX, false, AT(id), "null", "comes back with the answer"},
    {"model", SF_API_STRING, ALL, 0, 0, false, AT(model), "the engine's", "name of the model"},
    {"prompt", SF_API_PROMPT, COMPLETION | RUN, 0, 0, false, AT(prompt), "", "text, or token ids"},
    {"prompt_ids", SF_API_ARRAY, RUN, 0, 0, false, AT(prompt_ids), "", "token ids, taken as they are"},
    {"messages", SF_API_ARRAY, CHAT | RUN, 0, 0, false, AT(messages), "", "the conversation, for the chat template"},
    {"tools", SF_API_ARRAY, CHAT | RUN, 0, 0, false, AT(tools), "none", "given to the chat template"},
    {"documents", SF_API_ARRAY, CHAT | RUN, 0, 0, false, AT(documents), "none", "given to the chat template"},
    {"add_generation_prompt", SF_API_BOOL, CHAT | RUN, 0, 0, false, AT(add_generation_prompt), "true", "end with the opening of an answer"},
    {"continue_final_message", SF_API_BOOL, CHAT | RUN, 0, 0, false, AT(continue_final_message), "false", "leave the last message open"},
    {"date", SF_API_STRING, CHAT | RUN, 0, 0, false, AT(date), "the value of --date", "YYYY-MM-DD, today for chat templates that ask for it"},
    {"add_special_tokens", SF_API_BOOL, COMPLETION | RUN, 0, 0, false, AT(add_special_tokens), "true", "BOS before a text prompt, where the model has one"},
    {"max_tokens", SF_API_INT, ALL, 0, INT_MAX, false, AT(params.max_tokens), "16; chat: up to the context", "tokens of an answer at most"},
    {"max_completion_tokens", SF_API_INT, CHAT | RUN, 0, INT_MAX, false, AT(max_completion_tokens), "max_tokens", "newer name of max_tokens; wins where both stand"},
    {"min_tokens", SF_API_INT, ALL, 0, INT_MAX, false, AT(params.min_tokens), "0", "no end before this many"},
    {"temperature", SF_API_FLOAT, ALL, 0, 100, false, AT(params.temperature), "1", "0 takes the likeliest token"},
    {"top_p", SF_API_FLOAT, ALL, 0, 1, true, AT(params.top_p), "1", "nucleus: smallest set of this probability"},
    {"top_k", SF_API_INT, ALL, -1, INT_MAX, false, AT(params.top_k), "0", "likeliest tokens kept; 0 or -1: all"},
    {"min_p", SF_API_FLOAT, ALL, 0, 1, false, AT(params.min_p), "0", "drop tokens under this share of the likeliest"},
    {"repetition_penalty", SF_API_FLOAT, ALL, 0.01, 100, false, AT(params.repetition_penalty), "1", "divides logits of tokens seen"},
    {"frequency_penalty", SF_API_FLOAT, ALL, -2, 2, false, AT(params.frequency_penalty), "0", "per occurrence in the answer"},
    {"presence_penalty", SF_API_FLOAT, ALL, -2, 2, false, AT(params.presence_penalty), "0", "once for tokens in the answer"},
    {"logit_bias", SF_API_BIAS, ALL, -100, 100, false, 0, "{}", "added to the logits of these token ids, 1024 at most"},
    {"seed", SF_API_INT64, ALL, 0, 0, false, AT(params.seed), "--seed; without it 0 where is_deterministic or temperature 0, else a new one each time", "of the draws; the answer's determinism.seed says which it was"},
    {"n", SF_API_INT, ALL, 1, SF_N_MAX, false, AT(params.n), "1", "choices"},
    {"stop", SF_API_STOP, ALL, 0, SF_STOP_STRINGS_MAX, false, 0, "[]", "text that ends an answer, itself left out"},
    {"stop_token_ids", SF_API_IDS, ALL, 0, IDS_MAX, false, 0, "[]", "tokens that end an answer"},
    {"ignore_eos", SF_API_BOOL, ALL, 0, 0, false, AT(params.ignore_eos), "false", "do not end at the model's eos"},
    {"logprobs", SF_API_LOGPROBS, ALL, 0, SF_TOP_MAX, false, AT(logprobs), "none", "log-probabilities: the chosen token's and the N likeliest"},
    {"top_logprobs", SF_API_INT, CHAT | RUN, 0, SF_TOP_MAX, false, AT(top_logprobs), "0", "the N likeliest, where logprobs is true"},
    {"prompt_logprobs", SF_API_INT, ALL, 0, SF_TOP_MAX, false, AT(prompt_logprobs), "none", "the same for the prompt's tokens"},
    {"echo", SF_API_BOOL, COMPLETION | RUN, 0, 0, false, AT(echo), "false", "put the prompt before the answer"},
    {"return_token_ids", SF_API_BOOL, ALL, 0, 0, false, AT(return_token_ids), "false", "add prompt_token_ids"},
    {"is_deterministic", SF_API_BOOL, ALL, 0, 0, false, AT(params.deterministic), "the value of --deterministic-default", "same bits under any load"},
    {"stream", SF_API_BOOL, ALL, 0, 0, false, AT(stream), "false", "server-sent events (run: no effect)"},
    {"stream_options", SF_API_OBJECT, ALL, 0, 0, false, AT(stream_options), "none", "include_usage; include_determinism: what verifying has cost so far, with every event"},
};
/* clang-format on */
const int sf_api_n_fields = (int)(sizeof sf_api_fields / sizeof *sf_api_fields);

/* What other programs' clients call a field. */
static const struct {
    const char *name, *field;
} aliases[] = {{"deterministic", "is_deterministic"}, {"custom_id", "id"}};
enum { N_ALIASES = sizeof aliases / sizeof *aliases };

const sf_api_field *sf_api_field_find(const char *name) {
    for (int i = 0; i < N_ALIASES; i++)
        if (strcmp(aliases[i].name, name) == 0) name = aliases[i].field;
    for (int i = 0; i < sf_api_n_fields; i++)
        if (strcmp(sf_api_fields[i].name, name) == 0) return &sf_api_fields[i];
    return NULL;
}

const char *sf_api_field_alias(const sf_api_field *f) {
    for (int i = 0; i < N_ALIASES; i++)
        if (strcmp(aliases[i].field, f->name) == 0) return aliases[i].name;
    return NULL;
}

const char *sf_api_field_near(const char *name, unsigned kind) {
    const char *words[sizeof sf_api_fields / sizeof *sf_api_fields + N_ALIASES + 1];
    int n = 0;
    for (int i = 0; i < sf_api_n_fields; i++)
        if (sf_api_fields[i].where & kind) words[n++] = sf_api_fields[i].name;
    for (int i = 0; i < N_ALIASES; i++)
        if (sf_api_field_find(aliases[i].field)->where & kind) words[n++] = aliases[i].name;
    words[n] = NULL;
    return sf_suggest(name, words);
}

const char *sf_api_field_expects(const sf_api_field *f, char *buf, size_t size) {
    switch (f->type) {
    case SF_API_BOOL:
        snprintf(buf, size, "true or false");
        break;
    case SF_API_INT:
        if (f->max == INT_MAX) {
            snprintf(buf, size, "an integer of at least %.0f", f->min);
        } else {
            snprintf(buf, size, "an integer in %.0f..%.0f", f->min, f->max);
        }
        break;
    case SF_API_INT64:
        snprintf(buf, size, "a 64-bit integer");
        break;
    case SF_API_FLOAT:
        snprintf(buf, size, "a number in %c%g, %g]", f->open_min ? '(' : '[', f->min, f->max);
        break;
    case SF_API_STRING:
        snprintf(buf, size, "a string");
        break;
    case SF_API_OBJECT:
        snprintf(buf, size, "an object");
        break;
    case SF_API_ARRAY:
        snprintf(buf, size, "an array");
        break;
    case SF_API_ID:
        snprintf(buf, size, "a string of at most %.0f bytes or an integer", f->max);
        break;
    case SF_API_PROMPT:
        snprintf(buf, size, "a string, a list of strings, token ids or a list of lists of token ids");
        break;
    case SF_API_LOGPROBS:
        snprintf(buf, size, "an integer in %.0f..%.0f, true or false", f->min, f->max);
        break;
    case SF_API_STOP:
        snprintf(buf, size, "a non-empty string or a list of at most %.0f of them", f->max);
        break;
    case SF_API_IDS:
        snprintf(buf, size, "a list of at most %.0f token ids", f->max);
        break;
    case SF_API_BIAS:
        snprintf(buf, size, "an object of token ids and numbers in [%g, %g]", f->min, f->max);
        break;
    }
    return buf;
}
