#include "model/weights.h"
#include "model/weights_priv.h"

#include "base/hash.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE ((size_t)2 << 20) /* large pages spare the products many address look-ups */
#define PAGE ((size_t)4096)

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

static sf_code allocate(sf_weights *w, sf_err *err) {
    size_t align = w->bytes >= 2 * HUGE ? HUGE : w->align, size = round_up(w->bytes + 1, align);
    w->data = aligned_alloc(align, size);
    if (!w->data) return SF_FAIL(err, SF_NOMEM, "no memory for %zu bytes of weights", w->bytes);
    if (align == HUGE) (void)madvise(w->data, size, MADV_HUGEPAGE); /* a hint */
    return SF_OK;
}

typedef struct job {
    sf_weights *w;
    sf_wrows *rows; /* [threads] */
    const sf_wsource *source;
    const sf_weights_sink *sink; /* NULL: to w->data */
    uint8_t *staging;            /* sink: [threads][stride], where a thread packs */
    size_t stride;
    sf_progress *progress; /* NULL: none */
    atomic_int next;
    atomic_ullong done; /* bytes */
    pthread_mutex_t lock;
    /* The lowest unit that failed, so that the message is always the same (units are handed out in order,
     * hence all lower ones have been tried); -1 none. */
    atomic_int bad_unit;
    sf_err err; /* its error */
} job;

/* Whether the sink draws such weights itself. */
static bool sink_draws(const sf_weights_sink *sink, const sf_wsource *source, const sf_weight_desc *d) {
    return sink && sink->draw && source->describe && d->format == SF_W_BF16_MMA;
}

static sf_code draw_unit(const job *j, const sf_winst *inst, int part, size_t from, size_t bytes,
                         uint8_t *digest, sf_err *err) {
    sf_wdraw what;
    const void *data = NULL;
    j->source->describe(j->source, inst, &what);
    SF_TRY(j->sink->draw(j->sink->ctx, part, inst->offset + from, &what, from, bytes, &data, err));
    sf_wloops_best()->digest(data, bytes, digest);
    return SF_OK;
}

static sf_code do_unit(job *j, sf_wunit *u, int part, size_t *bytes, sf_err *err) {
    const sf_winst *inst = &j->w->insts[u->inst];
    sf_wlayout l;
    SF_TRY(sf_wformat_layout(inst->desc, &l, err));
    size_t from = sf_wlayout_offset(&l, u->block), to = sf_wlayout_offset(&l, u->block + u->blocks);
    if (sink_draws(j->sink, j->source, inst->desc)) { /* whole tiles: nothing is padded behind them */
        *bytes = to - from;
        return draw_unit(j, inst, part, from, *bytes, u->digest, err);
    }
    uint8_t *dst = j->sink ? j->staging + (size_t)part * j->stride : j->w->data + inst->offset + from;
    SF_TRY(sf_wformat_pack(j->source, inst, u->block, u->blocks, &j->rows[part], dst, err));
    sf_wloops_best()->digest(dst, to - from, u->digest);
    *bytes = (u->block + u->blocks == l.blocks ? sf_winst_round(j->w, to) : to) - from;
    memset(dst + (to - from), 0, *bytes - (to - from));
    return j->sink ? j->sink->put(j->sink->ctx, part, inst->offset + from, dst, *bytes, err) : SF_OK;
}

static void note_failure(job *j, int unit, const sf_err *err) {
    pthread_mutex_lock(&j->lock);
    int bad = atomic_load(&j->bad_unit);
    if (bad < 0 || unit < bad) {
        j->err = *err;
        atomic_store(&j->bad_unit, unit);
    }
    pthread_mutex_unlock(&j->lock);
}

static void work(void *ctx, int part, int parts) {
    job *j = ctx;
    (void)parts; /* units are handed out one by one: threads of unlike speed then end together */
    while (atomic_load(&j->bad_unit) < 0) {
        int i = atomic_fetch_add(&j->next, 1);
        if (i >= j->w->n_units) return;
        sf_err err = {0};
        size_t bytes = 0;
        sf_code rc = do_unit(j, &j->w->units[i], part, &bytes, &err);
        if (rc != SF_OK) {
            err.code = rc;
            note_failure(j, i, &err);
        }
        atomic_fetch_add(&j->done, bytes);
        if (part == 0 && j->progress) sf_progress_set(j->progress, atomic_load(&j->done));
    }
}

static sf_code hash_all(sf_weights *w, sf_err *err) {
    sf_sha256 *h = sf_sha256_create();
    if (!h) return SF_FAIL(err, SF_NOMEM, "no memory to hash the weights");
    for (int i = 0; i < w->n_units; i++) {
        const sf_winst *inst = &w->insts[w->units[i].inst];
        if (w->units[i].block == 0) sf_sha256_add_str(h, inst->desc->name);
        sf_sha256_add(h, w->units[i].digest, sizeof w->units[i].digest);
    }
    sf_sha256_hex(h, w->hash);
    sf_sha256_destroy(h);
    return SF_OK;
}

static sf_code run_job(job *j, sf_pool *pool, bool progress, sf_err *err) {
    sf_progress bar;
    j->rows = calloc((size_t)sf_pool_threads(pool), sizeof *j->rows);
    if (!j->rows) return SF_FAIL(err, SF_NOMEM, "no memory for %d threads", sf_pool_threads(pool));
    sf_progress_init(&bar, "loading weights", "B", j->w->bytes);
    j->progress = progress ? &bar : NULL;
    pthread_mutex_init(&j->lock, NULL);
    sf_pool_run(pool, work, j);
    pthread_mutex_destroy(&j->lock);
    if (progress) sf_progress_fini(&bar);
    for (int i = 0; i < sf_pool_threads(pool); i++)
        free(j->rows[i].bytes);
    free(j->rows);
    if (atomic_load(&j->bad_unit) < 0) return hash_all(j->w, err);
    if (err) *err = j->err;
    return j->err.code;
}

static bool draws(const sf_weights *w, const sf_wsource *source, const sf_weights_sink *sink) {
    bool any = false;
    for (int i = 0; i < w->plan->n_weights; i++)
        any = any || sink_draws(sink, source, &w->plan->weights[i]);
    return any;
}

static sf_code fill(sf_weights *w, const sf_wsource *source, sf_pool *pool, bool progress,
                    const sf_weights_sink *sink, sf_err *err) {
    job j = {.w = w, .source = source, .sink = sink, .bad_unit = -1};
    if (!sink) {
        SF_TRY(allocate(w, err));
        return run_job(&j, pool, progress, err);
    }
    /* whole pages: threads share no line, and each touches its own pages first */
    j.stride = round_up(w->unit_bytes + 1, PAGE);
    size_t size = (size_t)sf_pool_threads(pool) * j.stride;
    j.staging = aligned_alloc(PAGE, size);
    if (!j.staging) return SF_FAIL(err, SF_NOMEM, "no memory for %zu bytes to pack weights in", size);
    sf_code rc = sink->begin(sink->ctx, w->bytes, draws(w, source, sink), err);
    if (rc == SF_OK) rc = run_job(&j, pool, progress, err);
    free(j.staging);
    return rc;
}

static sf_code load_from(const sf_wsource *source, sf_pool *pool, bool progress, const sf_weights_sink *sink,
                         sf_weights **out, sf_err *err) {
    sf_weights *w = NULL;
    SF_TRY(sf_weights_create(source->plan, sink, &w, err));
    sf_code rc = sf_weights_find_tensors(source, w->insts, w->n_insts, err);
    if (rc == SF_OK) rc = fill(w, source, pool, progress, sink, err);
    if (rc != SF_OK) {
        sf_weights_destroy(w);
        return rc;
    }
    for (int i = 0; i < w->n_insts; i++)
        memset(w->insts[i].parts, 0, sizeof w->insts[i].parts); /* the checkpoint may go */
    *out = w;
    return SF_OK;
}

sf_code sf_weights_load(const sf_plan *plan, const sf_gguf *g, sf_pool *pool, bool progress,
                        const sf_weights_sink *sink, sf_weights **out, sf_err *err) {
    sf_wsource source = sf_wsource_gguf(plan, g);
    SF_TRY(sf_weights_check_metadata(plan, g, err));
    return load_from(&source, pool, progress, sink, out, err);
}

sf_code sf_weights_load_st(const sf_plan *plan, const sf_safetensors *st, const sf_hf_config *config,
                           sf_pool *pool, bool progress, const sf_weights_sink *sink, sf_weights **out,
                           sf_err *err) {
    sf_wsource source = sf_wsource_st(plan, st);
    SF_TRY(sf_weights_check_config(plan, config, err));
    return load_from(&source, pool, progress, sink, out, err);
}

sf_code sf_weights_random(const sf_plan *plan, uint64_t seed, sf_pool *pool, bool progress,
                          const sf_weights_sink *sink, sf_weights **out, sf_err *err) {
    sf_weights *w = NULL;
    sf_wsource source = sf_wsource_random(plan, seed);
    SF_TRY(sf_weights_create(plan, sink, &w, err));
    sf_code rc = fill(w, &source, pool, progress, sink, err);
    if (rc != SF_OK) {
        sf_weights_destroy(w);
        return rc;
    }
    *out = w;
    return SF_OK;
}

size_t sf_weights_offset(const sf_weights *w, int slot, int layer) {
    assert(slot >= 0 && slot < w->plan->n_weights && layer >= 0 && layer < sf_winst_count(w->plan, slot));
    return w->insts[w->first[slot] + layer].offset;
}

const void *sf_weights_get(const sf_weights *w, int slot, int layer) {
    assert(w->data); /* they went to a sink */
    return w->data + sf_weights_offset(w, slot, layer);
}

uint64_t sf_weights_bytes(const sf_weights *w) {
    return w->bytes;
}

const char *sf_weights_hash(const sf_weights *w) {
    return w->hash;
}
