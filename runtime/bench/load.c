#include "bench/load.h"

#include "bench/draw.h"

#include <math.h>
#include <stdlib.h>

static double draw_normal(sf_bench_draw *d) {
    const double u = sf_bench_draw_unit(d), v = sf_bench_draw_unit(d);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

/* Gamma(shape, 1) by Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26
 * (2000); shapes under 1 by their section 6. */
static double draw_gamma(sf_bench_draw *d, double shape) {
    if (shape == 1) return -log(sf_bench_draw_unit(d));
    if (shape < 1) return draw_gamma(d, shape + 1) * pow(sf_bench_draw_unit(d), 1 / shape);
    const double a = shape - 1.0 / 3, c = 1 / sqrt(9 * a);
    for (;;) {
        const double x = draw_normal(d), t = 1 + c * x, v = t * t * t;
        if (t <= 0) continue;
        if (log(sf_bench_draw_unit(d)) < 0.5 * x * x + a - a * v + a * log(v)) return a * v;
    }
}

static void set_times(const sf_bench_load_config *c, sf_bench_send *sends, int n) {
    sf_bench_draw d = sf_bench_draw_init(c->seed, SF_BENCH_DRAW_ARRIVALS);
    double sum = 0;
    if (isinf(c->rate)) return;
    for (int i = 0; i < n; i++) {
        sum += isinf(c->burstiness) ? 1 : draw_gamma(&d, c->burstiness);
        sends[i].at_s = sum;
    }
    const double scale = sum > 0 ? n / c->rate / sum : 0;
    for (int i = 0; i < n; i++)
        sends[i].at_s *= scale;
}

/* Every 1 / ratio-th prompt, from an offset that the seed chooses: spread out, and of the right number. */
static sf_bench_kind kind_of(const sf_bench_load_config *c, int prompt, double offset) {
    if (c->deterministic_ratio < 0) return SF_BENCH_UNMARKED;
    const double before = floor(prompt * c->deterministic_ratio + offset),
                 after = floor((prompt + 1) * c->deterministic_ratio + offset);
    return after > before ? SF_BENCH_DETERMINISTIC : SF_BENCH_ORDINARY;
}

static void shuffle(const sf_bench_load_config *c, sf_bench_send *sends, int n) {
    sf_bench_draw d = sf_bench_draw_init(c->seed, SF_BENCH_DRAW_COPIES);
    for (int i = n - 1; i > 0; i--) {
        const int k = (int)sf_bench_draw_below(&d, i + 1);
        const sf_bench_send other = sends[k];
        sends[k] = sends[i];
        sends[i] = other;
    }
}

sf_code sf_bench_load_make(const sf_bench_load_config *c, sf_bench_send **out, sf_err *err) {
    const int n = c->n_prompts * c->copies;
    sf_bench_draw d = sf_bench_draw_init(c->seed, SF_BENCH_DRAW_KINDS);
    const double offset = sf_bench_draw_unit(&d);
    sf_bench_send *sends = calloc((size_t)n, sizeof *sends);
    if (!sends) return SF_FAIL(err, SF_NOMEM, "out of memory for %d requests", n);
    for (int i = 0; i < n; i++) {
        const int prompt = i % c->n_prompts;
        sends[i] =
            (sf_bench_send){.prompt = prompt, .copy = i / c->n_prompts, .kind = kind_of(c, prompt, offset)};
    }
    if (c->copies > 1) shuffle(c, sends, n);
    set_times(c, sends, n);
    *out = sends;
    return SF_OK;
}
