#include "bench/scrape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[SF_BENCH_COUNTERS] = {
    [SF_BENCH_VERIFY_PASSES] = "steadfast:verify_passes_total",
    [SF_BENCH_VERIFY_ROWS] = "steadfast:verify_rows_total",
    [SF_BENCH_ROLLBACKS] = "steadfast:rollbacks_total",
    [SF_BENCH_ROLLED_BACK] = "steadfast:rolled_back_tokens_total",
};

/* Behind the labels, or NULL: they do not end. In quotes there may be anything, a quote behind a backslash.
 */
static const char *skip_labels(const char *s) {
    bool quoted = false;
    for (; *s && *s != '\n'; s++) {
        if (quoted && *s == '\\' && s[1] && s[1] != '\n')
            s++;
        else if (*s == '"')
            quoted = !quoted;
        else if (*s == '}' && !quoted)
            return s + 1;
    }
    return NULL;
}

/* A line is NAME{labels} VALUE [TIME], or NAME VALUE [TIME]. */
static void read_line(const char *line, sf_bench_counters *out) {
    for (int i = 0; i < SF_BENCH_COUNTERS; i++) {
        const size_t len = strlen(names[i]);
        if (strncmp(line, names[i], len) != 0 || (line[len] != '{' && line[len] != ' ')) continue;
        const char *value = line[len] == '{' ? skip_labels(line + len) : line + len;
        if (!value) continue;
        value += strspn(value, " \t");
        if (*value == '\n') continue; /* strtod would go on to the next line */
        char *end;
        const double v = strtod(value, &end);
        if (end == value || !isfinite(out->v[i] + v)) continue;
        out->v[i] += v;
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

void sf_bench_counters_get(sf_bench_client *c, int limit_s, int (*stopped)(void), sf_bench_counters *out) {
    sf_buf text = {0};
    sf_err none; /* another server need not have them */
    *out = (sf_bench_counters){0};
    if (sf_bench_client_get(c, "/metrics", limit_s, stopped, &text, &none) == SF_OK && text.data)
        sf_bench_counters_read(text.data, out);
    sf_buf_fini(&text);
}
