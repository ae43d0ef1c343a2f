/* Splits that are not built in: tokenizer.json's own regular expression, by PCRE2. */
#include "model/split_priv.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATTERN = 4096 };

struct sf_regex {
    pcre2_code *code;
    char version[64]; /* of PCRE2 and its Unicode tables, which the ids depend on */
};

struct sf_regex_run {
    pcre2_match_data *data;
    pcre2_match_context *limits;
    const sf_regex *regex;
    size_t from, to; /* the match that was found behind a gap; to == 0: none */
};

static void set_why(char why[SF_REGEX_WHY], int code, size_t at) {
    PCRE2_UCHAR text[160];
    if (pcre2_get_error_message(code, text, sizeof text) < 0) text[0] = 0;
    (void)snprintf(why, SF_REGEX_WHY, "%s, at byte %zu of the pattern", (const char *)text, at);
}

sf_code sf_regex_create(const char *pattern, size_t len, sf_regex **out, char why[SF_REGEX_WHY]) {
    int code = 0;
    size_t at = 0;
    uint32_t matches_empty = 0;
    sf_regex *r = calloc(1, sizeof *r);
    pcre2_compile_context *rules = pcre2_compile_context_create(NULL);
    sf_code rc = SF_NOMEM;
    (void)snprintf(why, SF_REGEX_WHY, "no memory for a pattern");
    if (!r || !rules) goto done;
    rc = SF_UNSUPPORTED;
    pcre2_set_max_pattern_length(rules, MAX_PATTERN);
    pcre2_set_newline(rules, PCRE2_NEWLINE_LF);
    r->code =
        pcre2_compile((PCRE2_SPTR)pattern, len,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &at, rules);
    if (!r->code) {
        if (code == PCRE2_ERROR_HEAP_FAILED) rc = SF_NOMEM;
        set_why(why, code, at);
        goto done;
    }
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_MATCHEMPTY, &matches_empty);
    if (matches_empty) {
        (void)snprintf(why, SF_REGEX_WHY, "the pattern matches the empty text");
        goto done;
    }
    if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) <= (int)sizeof r->version)
        (void)pcre2_config(PCRE2_CONFIG_VERSION, r->version);
    *out = r;
    r = NULL;
    rc = SF_OK;
done:
    pcre2_compile_context_free(rules);
    sf_regex_destroy(r);
    return rc;
}

void sf_regex_destroy(sf_regex *r) {
    if (!r) return;
    pcre2_code_free(r->code);
    free(r);
}

const char *sf_regex_version(const sf_regex *r) {
    return r->version;
}

sf_regex_run *sf_regex_run_create(const sf_regex *r) {
    sf_regex_run *run = calloc(1, sizeof *run);
    if (!run) return NULL;
    run->regex = r;
    run->data = pcre2_match_data_create(1, NULL);
    run->limits = pcre2_match_context_create(NULL);
    if (run->data && run->limits) return run;
    sf_regex_run_destroy(run);
    return NULL;
}

void sf_regex_run_destroy(sf_regex_run *run) {
    if (!run) return;
    pcre2_match_data_free(run->data);
    pcre2_match_context_free(run->limits);
    free(run);
}

/* What lies before a match is a word too, as the library has it. A look at the text behind `from` may be as
 * long as the text, so the limit on one match grows with it; the pattern of a published split needs a few
 * steps a character. */
static size_t match_word(sf_words *w, size_t from) {
    sf_regex_run *run = w->run;
    if (run->to && run->from == from) {
        size_t n = run->to - from;
        run->to = 0;
        return n;
    }
    size_t limit = 10000 + 16 * (w->len - from);
    (void)pcre2_set_match_limit(run->limits, limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX);
    int n = pcre2_match(run->regex->code, (PCRE2_SPTR)w->text, w->len, from, PCRE2_NO_UTF_CHECK, run->data,
                        run->limits);
    if (n < 0) {
        if (n != PCRE2_ERROR_NOMATCH) w->failed = n == PCRE2_ERROR_NOMEMORY ? SF_NOMEM : SF_FULL;
        return w->len - from;
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(run->data);
    if (at[0] == from && at[1] > from) return at[1] - from;
    if (at[0] <= from || at[1] <= at[0]) { /* \K, or a match that a look-behind moved: no words */
        w->failed = SF_FULL;
        return w->len - from;
    }
    run->from = at[0];
    run->to = at[1];
    return at[0] - from;
}

const sf_split sf_split_regex = {.name = "regex", .word = match_word};
