#include "ref.h"

#include "base/philox.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sf_ref_log_softmax(const float *x, int n, float *lp) {
    double max = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        max = fmax(max, x[i]);
    for (int i = 0; i < n; i++)
        sum += exp(x[i] - max);
    for (int i = 0; i < n; i++)
        lp[i] = (float)(x[i] - max - log(sum));
}

static int count(const int32_t *ids, int n, int32_t id) {
    int c = 0;
    for (int i = 0; i < n; i++)
        c += ids[i] == id;
    return c;
}

void sf_ref_adjust(const sf_sample *s, const float *x, int n, float *z) {
    memcpy(z, x, (size_t)n * sizeof *z);
    for (int i = 0; i < s->n_bias; i++)
        z[s->bias[i].token] += s->bias[i].bias;
    for (int i = 0; i < s->n_banned; i++)
        z[s->banned[i]] = -INFINITY;
    for (int i = 0; i < n; i++) {
        const int out = count(s->output, s->n_output, i);
        if (out + count(s->prompt, s->n_prompt, i) > 0)
            z[i] = z[i] > 0 ? z[i] / s->repetition_penalty : z[i] * s->repetition_penalty;
        z[i] -= s->frequency_penalty * (float)out;
        if (out > 0) z[i] -= s->presence_penalty;
    }
}

typedef struct entry {
    double p;
    float z;
    int id;
} entry;

static int by_logit(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->z != y->z) return x->z > y->z ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

int sf_ref_filter(const sf_sample *s, const float *z, int n, unsigned char *kept) {
    if (n < 1) return 0;
    entry *e = malloc((size_t)n * sizeof *e);
    int m = n, left = 0;
    double total = 0, above = 0;
    if (!e) return 0;
    for (int i = 0; i < n; i++)
        e[i] = (entry){.z = z[i], .id = i};
    qsort(e, (size_t)n, sizeof *e, by_logit);
    if (s->top_k > 0 && s->top_k < n)
        for (m = s->top_k; m < n && e[m].z == e[s->top_k - 1].z;)
            m++;
    for (int i = 0; i < m; i++)
        total += e[i].p = exp(((double)e[i].z - (double)e[0].z) / (double)s->temperature);
    memset(kept, 0, (size_t)n);
    for (int i = 0; i < m; i++) {
        const int in =
            (s->top_p >= 1 || i == 0 || above < (double)s->top_p * total) && e[i].p >= (double)s->min_p;
        above += e[i].p;
        kept[e[i].id] = (unsigned char)in;
        left += in;
    }
    free(e);
    return left;
}

int32_t sf_ref_draw(const sf_sample *s, const float *z, int n, const unsigned char *kept) {
    int32_t arg = -1;
    double best = -INFINITY, max = -INFINITY;
    for (int i = 0; i < n; i++)
        max = fmax(max, z[i]);
    for (int i = 0; i < n; i++) {
        double score = z[i];
        if (s->temperature > 0) {
            const uint32_t counter[4] = {(uint32_t)i / 4, s->position, s->choice, 0x53464731};
            const uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};
            uint32_t w[4];
            if (!kept[i]) continue;
            sf_philox4x32(counter, key, w);
            const double v = fmin(((double)w[i % 4] + 0.5) * 0x1p-32, 1 - 0x1p-24);
            score = ((double)z[i] - max) / (double)s->temperature - log(-log1p(-v));
        }
        if (score > best) {
            best = score;
            arg = i;
        }
    }
    return arg;
}
