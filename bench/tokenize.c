/* Encodes texts and says how long it takes, for bench/tokenize.
 * usage: bench-tokenize TOKENIZER TEXTS ROUNDS
 * TOKENIZER: a GGUF file or a Hugging Face directory. TEXTS: u32 length (little-endian) and bytes, again and
 * again; each text is one call, as a request's prompt is. Prints one JSON object with the best round's CPU
 * seconds. */
#include "../tests/model/open_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of this process, so that others on the machine do not count. */
static double cpu_seconds(void) {
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static sf_code round_of(const sf_tokenizer *t, const sf_buf *all, size_t *texts, size_t *bytes,
                        size_t *tokens, sf_err *err) {
    *texts = *bytes = *tokens = 0;
    for (size_t at = 0; at < all->len;) {
        uint32_t len = 0;
        if (all->len - at >= sizeof len) memcpy(&len, all->data + at, sizeof len);
        at += sizeof len;
        if (at > all->len || len > all->len - at) return SF_FAIL(err, SF_FORMAT, "the last text is cut");
        sf_ids ids = {0};
        sf_code rc = sf_tokenizer_encode(t, all->data + at, len, NULL, &ids, err);
        *tokens += ids.len;
        sf_ids_fini(&ids);
        SF_TRY(rc);
        *bytes += len;
        *texts += 1;
        at += len;
    }
    return SF_OK;
}

static sf_code measure(const char *const argv[], sf_buf *all, sf_tokenizer **t, sf_err *err) {
    size_t texts = 0, bytes = 0, tokens = 0;
    long rounds = strtol(argv[3], NULL, 10);
    double best = 1e30;
    SF_TRY(open_tokenizer(argv[1], t, err));
    SF_TRY(sf_buf_read_file(all, argv[2], (size_t)1 << 30, err));
    for (long i = 0; i < rounds; i++) {
        double from = cpu_seconds();
        SF_TRY(round_of(*t, all, &texts, &bytes, &tokens, err));
        double took = cpu_seconds() - from;
        if (took < best) best = took;
    }
    printf("{\"texts\": %zu, \"bytes\": %zu, \"tokens\": %zu, \"seconds\": %.6f}\n", texts, bytes, tokens,
           best);
    return SF_OK;
}

int main(int argc, char **argv) {
    sf_tokenizer *t = NULL;
    sf_buf all = {0};
    sf_err err;
    char line[600];
    if (argc != 4) return 2;
    sf_code rc = measure((const char *const *)argv, &all, &t, &err);
    if (rc != SF_OK) fprintf(stderr, "%s\n", sf_err_format(&err, line, sizeof line));
    sf_tokenizer_close(t);
    sf_buf_fini(&all);
    return rc == SF_OK ? 0 : 1;
}
