#include "model/weights.h"
#include "model/weights_priv.h"

#include "base/hash.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN      64
#define HUGE       ((size_t)2 << 20) /* large pages spare the products many address look-ups */
#define UNIT_BYTES ((size_t)512 << 10)

/* Work of one thread at a time: consecutive blocks of one instance. The cut depends on the plan alone, and
 * the digests of the units make up the hash, which so doesn't depend on the number of threads. */
typedef struct unit {
    int inst, block, blocks;
    char digest[65];
} unit;

struct sf_weights {
    const sf_plan *plan;
    int n_insts, n_units;
    int *first;      /* [plan->n_weights], first instance of a slot */
    sf_winst *insts; /* [n_insts] */
    unit *units;     /* [n_units] */
    uint8_t *data;   /* [bytes] */
    size_t bytes;
    char hash[65];
};

static int instances(const sf_plan *plan, int slot) {
    return plan->weights[slot].per_layer ? plan->model.layers : 1;
}

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

static int unit_blocks(const sf_wlayout *l) {
    size_t n = UNIT_BYTES / l->block_bytes;
    return n < 1 ? 1 : n > (size_t)l->blocks ? l->blocks : (int)n;
}

static sf_code check_slot(const sf_plan *plan, const sf_weight_desc *d, sf_err *err) {
    int head_dim = plan->model.head_dim;
    bool matrix = d->format != SF_W_F32;
    int64_t sum = 0;
    bool good = d->n >= 1 && d->k >= 1 && d->n_parts >= 1 && d->n_parts <= 3 &&
                (matrix || (d->n == 1 && !d->interleave));
    for (int i = 0; good && i < d->n_parts; i++) {
        const sf_wpart *p = &d->parts[i];
        sum += p->rows;
        good = p->rows >= 1 && p->tensor;
        if (d->interleave) good = good && p->rows == d->parts[0].rows && p->role == SF_ROLE_PLAIN;
        if (p->role != SF_ROLE_PLAIN)
            good = good && head_dim >= 2 && head_dim % 2 == 0 && p->rows % head_dim == 0;
    }
    if (!good || sum != (matrix ? d->n : d->k)) {
        return SF_FAIL(err, SF_INVALID, "plan %s: weight %s does not fit together", plan->engine, d->name);
    }
    return SF_OK;
}

/* Counts instances, units and bytes; the second time, with the arrays there, fills them. */
static sf_code lay_out(sf_weights *w, sf_err *err) {
    const sf_plan *plan = w->plan;
    size_t bytes = 0;
    int64_t n_insts = 0, n_units = 0;
    for (int slot = 0; slot < plan->n_weights; slot++) {
        const sf_weight_desc *d = &plan->weights[slot];
        sf_wlayout l;
        SF_TRY(check_slot(plan, d, err));
        SF_TRY(sf_wformat_layout(d, &l, err));
        if (w->first) w->first[slot] = (int)n_insts;
        for (int layer = 0; layer < instances(plan, slot); layer++, n_insts++) {
            if (w->insts)
                w->insts[n_insts] = (sf_winst){.slot = slot, .layer = layer, .desc = d, .offset = bytes};
            int step = unit_blocks(&l);
            for (int b = 0; b < l.blocks; b += step, n_units++) {
                int n = l.blocks - b < step ? l.blocks - b : step;
                if (w->units) w->units[n_units] = (unit){.inst = (int)n_insts, .block = b, .blocks = n};
            }
            size_t more = 0;
            if (__builtin_mul_overflow((size_t)l.blocks, l.block_bytes, &more) || more > SIZE_MAX / 4 ||
                bytes > SIZE_MAX / 4 || n_units > INT32_MAX || n_insts > INT32_MAX) {
                return SF_FAIL(err, SF_INVALID, "plan %s: the weights are too large", plan->engine);
            }
            bytes += round_up(more, ALIGN);
        }
    }
    w->n_insts = (int)n_insts;
    w->n_units = (int)n_units;
    w->bytes = bytes;
    return SF_OK;
}

static sf_code create(const sf_plan *plan, sf_weights **out, sf_err *err) {
    sf_weights *w = calloc(1, sizeof *w);
    if (!w) return SF_FAIL(err, SF_NOMEM, "no memory for the weights");
    w->plan = plan;
    sf_code rc = lay_out(w, err);
    if (rc != SF_OK) goto done;
    w->first = calloc((size_t)plan->n_weights + 1, sizeof *w->first);
    w->insts = calloc((size_t)w->n_insts + 1, sizeof *w->insts);
    w->units = calloc((size_t)w->n_units + 1, sizeof *w->units);
    if (!w->first || !w->insts || !w->units) {
        rc = SF_FAIL(err, SF_NOMEM, "no memory for %d weights", w->n_insts);
        goto done;
    }
    rc = lay_out(w, err);
done:
    if (rc != SF_OK) {
        sf_weights_destroy(w);
        return rc;
    }
    *out = w;
    return SF_OK;
}

static sf_code allocate(sf_weights *w, sf_err *err) {
    size_t align = w->bytes >= 2 * HUGE ? HUGE : ALIGN, size = round_up(w->bytes + 1, align);
    w->data = aligned_alloc(align, size);
    if (!w->data) return SF_FAIL(err, SF_NOMEM, "no memory for %zu bytes of weights", w->bytes);
    if (align == HUGE) (void)madvise(w->data, size, MADV_HUGEPAGE); /* a hint */
    return SF_OK;
}

typedef struct job {
    sf_weights *w;
    const sf_wsource *source;
    sf_progress *progress; /* NULL: none */
    atomic_int next;
    atomic_ullong done; /* bytes */
    pthread_mutex_t lock;
    int bad_unit; /* the lowest unit that failed, so that the message is always the same; -1 none */
    sf_err err;   /* its error */
} job;

static sf_code pack_unit(job *j, unit *u, size_t *bytes, sf_err *err) {
    const sf_winst *inst = &j->w->insts[u->inst];
    sf_wlayout l;
    SF_TRY(sf_wformat_layout(inst->desc, &l, err));
    uint8_t *dst = j->w->data + inst->offset + (size_t)u->block * l.block_bytes;
    *bytes = (size_t)u->blocks * l.block_bytes;
    for (int b = 0; b < u->blocks; b++)
        SF_TRY(sf_wformat_pack(j->source, inst, u->block + b, dst + (size_t)b * l.block_bytes, err));
    size_t end = (size_t)(u->block + u->blocks), used = end * l.block_bytes;
    if (end == (size_t)l.blocks) memset(dst + *bytes, 0, round_up(used, ALIGN) - used);
    if (!sf_sha256_of(dst, *bytes, u->digest)) return SF_FAIL(err, SF_NOMEM, "no memory to hash the weights");
    return SF_OK;
}

static void work(void *ctx, int part, int parts) {
    job *j = ctx;
    (void)parts; /* units are handed out one by one: threads of unlike speed then end together */
    for (;;) {
        int i = atomic_fetch_add(&j->next, 1);
        if (i >= j->w->n_units) return;
        sf_err err = {0};
        size_t bytes = 0;
        if (pack_unit(j, &j->w->units[i], &bytes, &err) != SF_OK) {
            pthread_mutex_lock(&j->lock);
            if (j->bad_unit < 0 || i < j->bad_unit) {
                j->bad_unit = i;
                j->err = err;
            }
            pthread_mutex_unlock(&j->lock);
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
        sf_sha256_add_str(h, w->units[i].digest);
    }
    sf_sha256_hex(h, w->hash);
    sf_sha256_destroy(h);
    return SF_OK;
}

static sf_code fill(sf_weights *w, const sf_wsource *source, sf_pool *pool, bool progress, sf_err *err) {
    SF_TRY(allocate(w, err));
    sf_progress bar;
    sf_progress_init(&bar, "loading weights", "B", w->bytes);
    job j = {.w = w, .source = source, .progress = progress ? &bar : NULL, .bad_unit = -1};
    pthread_mutex_init(&j.lock, NULL);
    sf_pool_run(pool, work, &j);
    pthread_mutex_destroy(&j.lock);
    if (progress) sf_progress_fini(&bar);
    if (j.bad_unit >= 0) {
        if (err) *err = j.err;
        return j.err.code;
    }
    return hash_all(w, err);
}

sf_code sf_weights_load(const sf_plan *plan, const sf_gguf *g, sf_pool *pool, bool progress, sf_weights **out,
                        sf_err *err) {
    sf_weights *w = NULL;
    sf_wsource source = sf_wsource_gguf(plan, g);
    SF_TRY(sf_weights_check_metadata(plan, g, err));
    SF_TRY(create(plan, &w, err));
    sf_code rc = sf_weights_find_tensors(plan, g, w->insts, w->n_insts, err);
    if (rc == SF_OK) rc = fill(w, &source, pool, progress, err);
    if (rc != SF_OK) {
        sf_weights_destroy(w);
        return rc;
    }
    for (int i = 0; i < w->n_insts; i++)
        memset(w->insts[i].parts, 0, sizeof w->insts[i].parts); /* the checkpoint may go */
    *out = w;
    return SF_OK;
}

sf_code sf_weights_random(const sf_plan *plan, uint64_t seed, sf_pool *pool, sf_weights **out, sf_err *err) {
    sf_weights *w = NULL;
    sf_wsource source = sf_wsource_random(plan, seed);
    SF_TRY(create(plan, &w, err));
    sf_code rc = fill(w, &source, pool, false, err);
    if (rc != SF_OK) {
        sf_weights_destroy(w);
        return rc;
    }
    *out = w;
    return SF_OK;
}

void sf_weights_destroy(sf_weights *w) {
    if (!w) return;
    free(w->first);
    free(w->insts);
    free(w->units);
    free(w->data);
    free(w);
}

const void *sf_weights_get(const sf_weights *w, int slot, int layer) {
    assert(slot >= 0 && slot < w->plan->n_weights && layer >= 0 && layer < instances(w->plan, slot));
    return w->data + w->insts[w->first[slot] + layer].offset;
}

uint64_t sf_weights_bytes(const sf_weights *w) {
    return w->bytes;
}

const char *sf_weights_hash(const sf_weights *w) {
    return w->hash;
}
