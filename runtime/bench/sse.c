#include "bench/sse.h"

#include <string.h>

static const char mark[] = "\xef\xbb\xbf";

void sf_bench_sse_fini(sf_bench_sse *s) {
    sf_buf_fini(&s->line);
    sf_buf_fini(&s->data);
}

static void empty(sf_buf *b) {
    b->len = 0;
    if (b->data) b->data[0] = 0;
}

static sf_code dispatch(sf_bench_sse *s, sf_bench_event_fn *fn, void *ctx, sf_err *err) {
    const bool wanted = !s->has_data || fn(ctx, s->data.data, s->data.len);
    s->has_data = false;
    empty(&s->data);
    return wanted ? SF_OK : SF_FAIL(err, SF_CANCELLED, "no more is wanted");
}

/* One line without its end. */
static sf_code take_line(sf_bench_sse *s, sf_bench_event_fn *fn, void *ctx, sf_err *err) {
    const char *line = s->line.data ? s->line.data : "";
    size_t len = s->line.len, skip = 0;
    if (!s->begun && len >= 3 && memcmp(line, mark, 3) == 0) skip = 3;
    s->begun = true;
    line += skip;
    len -= skip;
    if (len == 0) return dispatch(s, fn, ctx, err);
    const bool bare = len == 4;
    if (len < 4 || memcmp(line, "data", 4) != 0 || (!bare && line[4] != ':')) return SF_OK;
    line += bare ? 4 : 5;
    len -= bare ? 4 : 5;
    if (len > 0 && *line == ' ') {
        line++;
        len--;
    }
    if (s->has_data) SF_TRY(sf_buf_append(&s->data, "\n", 1, err));
    s->has_data = true;
    if (s->data.len + len > SF_BENCH_EVENT_MAX) return SF_FAIL(err, SF_FULL, "an event of more than 64 MiB");
    return sf_buf_append(&s->data, line, len, err);
}

sf_code sf_bench_sse_feed(sf_bench_sse *s, const char *bytes, size_t len, sf_bench_event_fn *fn, void *ctx,
                          sf_err *err) {
    for (size_t at = 0; at < len;) {
        if (s->after_cr && bytes[at] == '\n') at++;
        s->after_cr = false;
        const size_t left = len - at;
        size_t n = 0;
        while (n < left && bytes[at + n] != '\n' && bytes[at + n] != '\r')
            n++;
        if (s->line.len + n > SF_BENCH_EVENT_MAX)
            return SF_FAIL(err, SF_FULL, "an event of more than 64 MiB");
        SF_TRY(sf_buf_append(&s->line, bytes + at, n, err));
        at += n;
        if (n == left) break;
        s->after_cr = bytes[at++] == '\r';
        sf_code rc = take_line(s, fn, ctx, err);
        empty(&s->line);
        if (rc != SF_OK) return rc;
    }
    return SF_OK;
}

sf_code sf_bench_sse_end(sf_bench_sse *s, sf_bench_event_fn *fn, void *ctx, sf_err *err) {
    if (s->line.len > 0) {
        sf_code rc = take_line(s, fn, ctx, err);
        empty(&s->line);
        if (rc != SF_OK) return rc;
    }
    return dispatch(s, fn, ctx, err);
}
