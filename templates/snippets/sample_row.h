/* What is asked of a row of logits before anything is drawn: log-softmax, ranks, the top ones, and the logits
 * after bias, bans and penalties. */
#ifndef SF_SNIPPETS_SAMPLE_ROW_H
#define SF_SNIPPETS_SAMPLE_ROW_H

#include "device/device.h"
#include "snippets/math.h"

/* Maximum and the log of the sum of exp(x - max). */
typedef struct row_stats {
    float max, log_sum;
    int32_t arg; /* the lowest id with the maximum */
    bool bad;    /* a NaN, an infinity above, or nothing but -inf */
} row_stats;

V_FN v16f row_load(const float *x, int at, int n, float filler) {
    if (at + 16 <= n) return v_load(x + at);
    return v_sel(vu_first(n - at), v_load_n(x + at, n - at), v_set1(filler));
}

static inline row_stats row_max(const float *x, int n) {
    const float none = -__builtin_inff();
    v16f top = v_set1(none);
    v16u same = vu_set1(0xffffffffu);
    for (int i = 0; i < n; i += 16) {
        const v16f v = row_load(x, i, n, none);
        top = v_max(v, top);
        same = vu_and(same, v_eq(v, v));
    }
    row_stats r = {.max = v_max_lane(top), .arg = -1};
    r.bad = vu_any(vu_xor(same, vu_set1(0xffffffffu))) || !(r.max > none && r.max < -none);
    for (int i = 0; i < n && !r.bad && r.arg < 0; i += 16) {
        if (!vu_any(v_eq(row_load(x, i, n, none), v_set1(r.max)))) continue;
        for (r.arg = i; x[r.arg] != r.max;)
            r.arg++;
    }
    return r;
}

/* exp(x - max) in 16 lanes by id mod 16, ascending, then the fixed tree. */
static inline row_stats row_log_softmax(const float *x, int n) {
    row_stats r = row_max(x, n);
    v16f sum = v_zero();
    for (int i = 0; i < n && !r.bad; i += 16)
        sum = v_add(sum, v_exp(v_sub(row_load(x, i, n, -__builtin_inff()), v_set1(r.max))));
    r.log_sum = r.bad ? 0.0f : f_log(v_sum(sum));
    return r;
}

static inline float row_logprob(const row_stats *r, float x) {
    return (x - r->max) - r->log_sum;
}

/* 1 + how many are likelier; of equals the lower id comes first. */
static inline int32_t row_rank(const float *x, int n, int32_t id) {
    const v16f v = v_set1(x[id]);
    v16u count = vu_set1(0); /* minus the count: a mask is -1 */
    int32_t rank = 1;
    uint32_t t[16];
    for (int i = 0; i < n; i += 16) {
        const v16f y = row_load(x, i, n, -__builtin_inff());
        const v16u before = id >= i + 16 ? vu_set1(0xffffffffu) : id <= i ? vu_set1(0) : vu_first(id - i);
        count = vu_add(count, vu_or(v_gt(y, v), vu_and(v_eq(y, v), before)));
    }
    vu_store(t, count);
    for (int l = 0; l < 16; l++)
        rank += (int32_t)(0u - t[l]);
    return rank;
}

/* The n_top likeliest into ids, in order. */
static inline void row_top(const float *x, int n, int n_top, int32_t *ids) {
    int have = 0;
    for (int i = 0; i < n; i += 16) {
        const v16f v = row_load(x, i, n, -__builtin_inff());
        if (have == n_top && !vu_any(v_gt(v, v_set1(x[ids[have - 1]])))) continue;
        for (int j = i; j < i + 16 && j < n; j++) {
            int at = have;
            while (at > 0 && x[j] > x[ids[at - 1]])
                at--;
            if (at == n_top) continue;
            if (have < n_top) have++;
            for (int k = have - 1; k > at; k--)
                ids[k] = ids[k - 1];
            ids[at] = j;
        }
    }
}

static inline bool row_penalised(const sf_sample *s) {
    return s->repetition_penalty != 1.0f || s->frequency_penalty != 0.0f || s->presence_penalty != 0.0f;
}
static inline bool row_adjusted(const sf_sample *s) {
    return s->n_bias > 0 || s->n_banned > 0 || row_penalised(s);
}

enum { SEEN_DONE = 1u << 31, SEEN_PROMPT = 1u << 30, SEEN_COUNT = SEEN_PROMPT - 1 };

static inline void penalise(const sf_sample *s, float *z, uint32_t *seen, int32_t id) {
    const uint32_t c = seen[id];
    if (c & (uint32_t)SEEN_DONE) return;
    seen[id] = c | (uint32_t)SEEN_DONE;
    float v = z[id];
    v = v > 0.0f ? v / s->repetition_penalty : v * s->repetition_penalty;
    const uint32_t count = c & (uint32_t)SEEN_COUNT;
    v = v - s->frequency_penalty * (float)count;
    z[id] = count > 0 ? v - s->presence_penalty : v;
}

/* z = x after bias, bans and penalties, in this order. seen [n] is scratch. */
static inline void row_adjust(const sf_sample *s, const float *x, int n, float *z, uint32_t *seen) {
    memcpy(z, x, (size_t)n * sizeof *z);
    for (int i = 0; i < s->n_bias; i++)
        z[s->bias[i].token] = z[s->bias[i].token] + s->bias[i].bias;
    for (int i = 0; i < s->n_banned; i++)
        z[s->banned[i]] = -__builtin_inff();
    if (!row_penalised(s)) return;
    memset(seen, 0, (size_t)n * sizeof *seen);
    for (int i = 0; i < s->n_prompt; i++)
        seen[s->prompt[i]] |= (uint32_t)SEEN_PROMPT;
    for (int i = 0; i < s->n_output; i++)
        seen[s->output[i]]++;
    for (int i = 0; i < s->n_prompt; i++)
        penalise(s, z, seen, s->prompt[i]);
    for (int i = 0; i < s->n_output; i++)
        penalise(s, z, seen, s->output[i]);
}

#endif
