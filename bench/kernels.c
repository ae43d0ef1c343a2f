/* Each kernel of the plan alone, by rows, pinned against fast: microseconds, GB/s (weights and rows),
 * GFLOP/s. Weights come from one layer after another, as in a pass, so that they are not in a core's own
 * cache. Usage: bench-kernels [--threads N] [--isa NAME] [--context N] [--op NAME] [--cpu-time] [rows ...]
 * --cpu-time counts the process's time on a core instead of the clock's: for one thread on a busy machine. */
#include "device/cpu/cpu.h"
#include "device/cpu/cpu_priv.h"
#include "model/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS_MAX = 24 };

typedef struct options {
    int threads, context, n_rows, rows[ROWS_MAX];
    const char *isa, *op;
    bool cpu_time;
} options;

/* A kernel and what it is to be run on. */
typedef struct job {
    sf_cpu *d;
    const sf_op_desc *op;
    sf_cpu_kernel_fn *fn;
    sf_cpu_args args;
    int repeats, layer; /* launches of one run; the layer of the first */
    bool cpu_time;
} job;

static void run_part(void *ctx, int part, int parts) {
    const job *j = ctx;
    const sf_plan *p = j->d->base.plan;
    for (int i = 0; i < j->repeats; i++) {
        const int layer = (j->layer + i) % p->model.layers;
        sf_cpu_args a = j->args;
        if (j->op->weight >= 0) a.weight = j->d->weights[j->op->weight * p->model.layers + layer];
        if (j->op->bias >= 0) a.bias = j->d->weights[j->op->bias * p->model.layers + layer];
        a.kv += (size_t)layer * j->d->layer_bytes;
        j->fn(&a, part, parts);
        sf_pool_barrier(j->d->pool);
    }
}

static double now_us(bool cpu_time) {
    struct timespec t;
    (void)clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* The best of some runs, per launch. A run is kept short, so that on a busy machine some are undisturbed. */
static double time_us(job *j) {
    double best = 1e30, total = 0;
    j->repeats = 1;
    for (int run = 0; run < 400 && (run < 5 || total < 0.3e6); run++) {
        const double start = now_us(j->cpu_time);
        sf_pool_run(j->d->pool, run_part, j);
        const double us = now_us(j->cpu_time) - start;
        total += us;
        j->layer += j->repeats;
        if (run > 0 && us / j->repeats < best) best = us / j->repeats;
        if (run == 1) j->repeats = us < 100 ? 10 : 1;
    }
    return best;
}

static sf_cpu_kernel_fn *find(const sf_cpu *d, const sf_op_desc *op, sf_class cls, int rows,
                              const char **name) {
    const sf_route *r = op->routes[cls];
    while (r->rows_max < rows)
        r++;
    *name = d->base.plan->kernels[r->kernel].name;
    return d->base.plan->kernels[r->kernel].cpu[d->isa];
}

static void show(sf_cpu *d, const options *o, const sf_op_desc *op, int rows, int32_t *gather,
                 sf_sample *samples, sf_row_out *results) {
    const sf_plan *p = d->base.plan;
    double us[SF_CLASS_COUNT];
    const char *name[SF_CLASS_COUNT];
    if (rows > (op->scope == SF_SCOPE_HEAD ? p->max_logit_rows : p->max_rows)) return;
    for (int c = 0; c < SF_CLASS_COUNT; c++) {
        job j = {.d = d, .op = op, .cpu_time = o->cpu_time};
        j.fn = find(d, op, (sf_class)c, rows, &name[c]);
        j.args = (sf_cpu_args){.rows = rows,
                               .in = d->buf[op->in],
                               .out = d->buf[op->out],
                               .gather = gather,
                               .row = d->rows,
                               .kv = d->kv,
                               .page_stride = d->page_bytes,
                               .rope = d->rope,
                               .samples = samples,
                               .results = results,
                               .scratch = d->scratch,
                               .scratch_stride = d->scratch_stride};
        us[c] = time_us(&j);
    }
    const double bytes = (double)op->weight_bytes + (double)op->row_bytes * rows;
    const double flops = (double)op->row_flops * rows;
    printf("%-12s %5d", op->name, rows);
    for (int c = SF_CLASS_PINNED; c >= SF_CLASS_FAST; c--)
        printf("  %9.1f us %6.1f GB/s %6.1f GFLOP/s", us[c], bytes / us[c] * 1e-3, flops / us[c] * 1e-3);
    printf("  %s | %s\n", name[SF_CLASS_PINNED], name[SF_CLASS_FAST]);
    fflush(stdout);
}

/* Rows of one sequence at positions context .., each segment as long as the pass. */
static void set_rows(sf_cpu *d, const options *o, const int32_t *pages, int rows) {
    const int last =
        o->context + rows > d->base.plan->max_context ? d->base.plan->max_context : o->context + rows;
    for (int r = 0; r < rows; r++)
        d->rows[r] = (sf_cpu_row){.pos = last - rows + r, .seg = 0, .pages = pages};
}

static int fail(const sf_err *err) {
    char text[600];
    fprintf(stderr, "bench-kernels: %s\n", sf_err_format(err, text, sizeof text));
    return 1;
}

static void parse(int argc, char **argv, options *o) {
    static const int usual[] = {1, 2, 3, 4, 5, 8, 12, 16, 24, 32, 64, 128, 512};
    *o = (options){.threads = 2, .context = 256, .isa = "auto"};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            o->threads = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--context") == 0 && i + 1 < argc)
            o->context = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--isa") == 0 && i + 1 < argc)
            o->isa = argv[++i];
        else if (strcmp(argv[i], "--op") == 0 && i + 1 < argc)
            o->op = argv[++i];
        else if (strcmp(argv[i], "--cpu-time") == 0)
            o->cpu_time = true;
        else if (o->n_rows < ROWS_MAX)
            o->rows[o->n_rows++] = (int)strtol(argv[i], NULL, 10);
    }
    for (size_t i = 0; o->n_rows == 0 || (i > 0 && i < sizeof usual / sizeof *usual); i++)
        o->rows[o->n_rows++] = usual[i];
}

static void show_all(sf_cpu *d, const options *o) {
    const sf_plan *p = d->base.plan;
    const int n = p->max_rows, pages = (p->max_context + p->page_size - 1) / p->page_size;
    int32_t *page = calloc((size_t)pages, sizeof *page), *gather = calloc((size_t)n, sizeof *gather);
    sf_sample *samples = calloc((size_t)n, sizeof *samples);
    sf_row_out *results = calloc((size_t)n, sizeof *results);
    for (int i = 0; page && i < pages; i++)
        page[i] = i;
    for (int i = 0; gather && samples && i < n; i++) {
        gather[i] = i;
        samples[i] = (sf_sample){.top_p = 1, .repetition_penalty = 1, .target = -1, .draw = true};
    }
    printf("%s, context %d; left pinned, right fast\n", d->base.desc, o->context);
    for (int i = 0; page && gather && samples && results && i < p->n_ops; i++) {
        if (o->op && strcmp(o->op, p->ops[i].name) != 0) continue;
        for (int r = 0; r < o->n_rows; r++) {
            if (o->rows[r] < 1 || o->rows[r] > n) continue;
            set_rows(d, o, page, o->rows[r]);
            show(d, o, p->ops + i, o->rows[r], gather, samples, results);
        }
    }
    free(page);
    free(gather);
    free(samples);
    free(results);
}

int main(int argc, char **argv) {
    options o;
    sf_err err = {0};
    sf_pool *pool = NULL;
    sf_weights *weights = NULL;
    sf_device *device = NULL;
    const sf_plan *p = &sf_the_plan;
    parse(argc, argv, &o);
    const sf_cpu_config cfg = {
        .threads = o.threads, .isa = o.isa, .n_pages = (p->max_context + p->page_size - 1) / p->page_size};
    int rc = 1;
    if (sf_pool_create(o.threads, &pool, &err) != SF_OK ||
        sf_weights_random(p, 1, pool, false, NULL, &weights, &err) != SF_OK ||
        sf_cpu_open(p, weights, &cfg, &device, &err) != SF_OK) {
        rc = fail(&err);
    } else {
        show_all((sf_cpu *)device, &o);
        rc = 0;
    }
    if (device) device->ops->destroy(device);
    sf_weights_destroy(weights);
    sf_pool_destroy(pool);
    return rc;
}
