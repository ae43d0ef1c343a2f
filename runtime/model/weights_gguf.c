/* A GGUF checkpoint as a source of rows: which tensors make up a slot, and where a row of the slot lies in
 * them. */
#include "model/weights_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(g, code, ...) SF_FAIL_AT(err, code, ((sf_loc){sf_gguf_path(g), 0, 0}), __VA_ARGS__)

#define NAME_MAX_BYTES 128

/* The canonical name, its %d replaced by the layer. */
static void tensor_name(const char *pattern, int layer, char out[NAME_MAX_BYTES]) {
    const char *d = strstr(pattern, "%d");
    if (d) {
        snprintf(out, NAME_MAX_BYTES, "%.*s%d%s", (int)(d - pattern), pattern, layer, d + 2);
    } else {
        snprintf(out, NAME_MAX_BYTES, "%s", pattern);
    }
}

/* "[rows, cols]", the slowest dimension first. */
static void shape_text(const sf_gguf_tensor *t, char out[96]) {
    size_t at = 0;
    for (int i = t->n_dims - 1; i >= 0; i--)
        at += (size_t)snprintf(out + at, 96 - at, "%s%llu", i == t->n_dims - 1 ? "[" : ", ",
                               (unsigned long long)t->dims[i]);
    snprintf(out + at, 96 - at, "]");
}

static bool is_vector(const sf_weight_desc *d) {
    return d->format == SF_W_F32;
}

static sf_code check_tensor(const sf_gguf *g, const sf_weight_desc *d, const sf_wpart *part,
                            const sf_gguf_tensor *t, sf_err *err) {
    uint64_t cols = (uint64_t)(is_vector(d) ? part->rows : d->k),
             rows = is_vector(d) ? 1 : (uint64_t)part->rows;
    if (t->dims[0] != cols || t->dims[1] != rows || t->dims[2] != 1 || t->dims[3] != 1) {
        char found[96], expected[48];
        shape_text(t, found);
        if (is_vector(d)) {
            snprintf(expected, sizeof expected, "[%d]", part->rows);
        } else {
            snprintf(expected, sizeof expected, "[%d, %d]", part->rows, d->k);
        }
        return FAIL(g, SF_FORMAT, "tensor %s is %s %s, expected %s", t->name, found,
                    sf_ggml_type_name(t->type), expected);
    }
    if (!sf_ggml_type_readable(t->type)) {
        return FAIL(
            g, SF_UNSUPPORTED,
            "tensor %s is %s (%u), expected F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K",
            t->name, sf_ggml_type_name(t->type), t->type);
    }
    bool plain = t->type == SF_GGML_F32 || t->type == SF_GGML_F16 || t->type == SF_GGML_BF16;
    if (is_vector(d) && !plain) {
        return FAIL(g, SF_UNSUPPORTED, "tensor %s is %s, expected F32, F16 or BF16 for a vector", t->name,
                    sf_ggml_type_name(t->type));
    }
    return SF_OK;
}

static sf_code find_part(const sf_gguf *g, const sf_winst *w, int part, const sf_gguf_tensor **out,
                         sf_err *err) {
    const sf_wpart *p = &w->desc->parts[part];
    char name[NAME_MAX_BYTES], fallback[NAME_MAX_BYTES];
    tensor_name(p->tensor, w->layer, name);
    const sf_gguf_tensor *t = sf_gguf_find_tensor(g, name);
    if (!t && p->fallback) {
        tensor_name(p->fallback, w->layer, fallback);
        t = sf_gguf_find_tensor(g, fallback);
    }
    if (!t && is_vector(w->desc))
        return FAIL(g, SF_FORMAT, "tensor %s is missing, expected [%d]", name, p->rows);
    if (!t) return FAIL(g, SF_FORMAT, "tensor %s is missing, expected [%d, %d]", name, p->rows, w->desc->k);
    *out = t;
    return check_tensor(g, w->desc, p, t, err);
}

sf_code sf_weights_find_tensors(const sf_plan *plan, const sf_gguf *g, sf_winst *insts, int n_insts,
                                sf_err *err) {
    sf_code rc = SF_OK;
    int n = sf_gguf_n_tensors(g);
    bool *used = calloc((size_t)n + 1, sizeof *used);
    if (!used) return FAIL(g, SF_NOMEM, "no memory for %d tensors", n);
    for (int i = 0; rc == SF_OK && i < n_insts; i++) {
        for (int p = 0; rc == SF_OK && p < insts[i].desc->n_parts; p++) {
            const sf_gguf_tensor *t = NULL;
            rc = find_part(g, &insts[i], p, &t, err);
            insts[i].parts[p] = t;
            if (rc == SF_OK) used[t - sf_gguf_tensor_at(g, 0)] = true;
        }
    }
    for (int i = 0; rc == SF_OK && i < n; i++) {
        if (!used[i]) {
            rc = FAIL(g, SF_UNSUPPORTED, "tensor %s has no place in model %s", sf_gguf_tensor_at(g, i)->name,
                      plan->model.name);
        }
    }
    free(used);
    return rc;
}

/* llama.cpp's conversion of this family stores the rows of a head of q and k so that the two of a rotary pair
 * are neighbours (2i, 2i+1); the kernels want halves (i, i + head_dim/2). Other families are stored as
 * halves. */
static int source_row(const sf_plan *plan, const sf_wpart *p, int row) {
    if (p->role == SF_ROLE_PLAIN || strcmp(plan->model.family, "llama") != 0) return row;
    int dim = plan->model.head_dim, in_head = row % dim, half = dim / 2;
    return row - in_head + (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1);
}

/* A packed row (of a vector: an element) in the checkpoint. */
static const sf_gguf_tensor *locate(const sf_wsource *s, const sf_winst *w, int packed, int *row) {
    int part = sf_wrow_locate(w->desc, packed, row);
    *row = source_row(s->plan, &w->desc->parts[part], *row);
    return w->parts[part];
}

static sf_code read_gguf(const sf_wsource *s, const sf_winst *w, int row, int from, int count, float *out,
                         sf_err *err) {
    int at = 0;
    if (!is_vector(w->desc)) {
        const sf_gguf_tensor *t = locate(s, w, row, &at);
        return sf_gguf_dequant(t, (uint64_t)at, (uint64_t)from, (uint64_t)count, out, err);
    }
    for (int i = 0; i < count; i++) {
        const sf_gguf_tensor *t = locate(s, w, from + i, &at);
        SF_TRY(sf_gguf_dequant(t, 0, (uint64_t)at, 1, &out[i], err));
    }
    return SF_OK;
}

static sf_code not_finite(const sf_wsource *s, const sf_winst *w, int row, sf_err *err) {
    int at = 0;
    const sf_gguf_tensor *t = locate(s, w, row, &at);
    if (is_vector(w->desc)) return FAIL(s->g, SF_FORMAT, "tensor %s: element %d is not finite", t->name, at);
    return FAIL(s->g, SF_FORMAT, "tensor %s: row %d has a value that is not finite in bf16", t->name, at);
}

sf_wsource sf_wsource_gguf(const sf_plan *plan, const sf_gguf *g) {
    return (sf_wsource){.plan = plan, .read = read_gguf, .not_finite = not_finite, .g = g};
}
