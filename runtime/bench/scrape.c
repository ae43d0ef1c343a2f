#include "bench/scrape.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[SF_BENCH_COUNTERS] = {
    [SF_BENCH_VERIFY_PASSES] = "steadfast:verify_passes_total",
    [SF_BENCH_VERIFY_ROWS] = "steadfast:verify_rows_total",
    [SF_BENCH_ROLLBACKS] = "steadfast:rollbacks_total",
    [SF_BENCH_ROLLED_BACK] = "steadfast:rolled_back_tokens_total",
};

/* A line is NAME{labels} VALUE, or NAME VALUE. */
static void read_line(const char *line, sf_bench_counters *out) {
    for (int i = 0; i < SF_BENCH_COUNTERS; i++) {
        const size_t len = strlen(names[i]);
        if (strncmp(line, names[i], len) != 0 || (line[len] != '{' && line[len] != ' ')) continue;
        const size_t rest = strcspn(line, "\n");
        const char *blank = line + len;
        for (size_t k = len; k < rest; k++)
            if (line[k] == ' ' && line[k + 1] != ' ') blank = line + k; /* a label may hold blanks */
        out->v[i] += strtod(blank, NULL);
        out->there = true;
    }
}

void sf_bench_counters_read(const char *text, sf_bench_counters *out) {
    *out = (sf_bench_counters){0};
    for (const char *line = text; *line;) {
        read_line(line, out);
        line += strcspn(line, "\n");
        if (*line) line++;
    }
}

void sf_bench_counters_get(sf_bench_client *c, int (*stopped)(void), sf_bench_counters *out) {
    sf_buf text = {0};
    sf_err none; /* another server need not have them */
    *out = (sf_bench_counters){0};
    if (sf_bench_client_get(c, "/metrics", stopped, &text, &none) == SF_OK && text.data)
        sf_bench_counters_read(text.data, out);
    sf_buf_fini(&text);
}
