/* Which tensors of a checkpoint make up a slot, whatever its format: found, their shapes and types checked.
 */
#include "model/weights_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The canonical name, its %d replaced by the layer. */
static void canonical_name(const char *pattern, int layer, char out[SF_WNAME_SIZE]) {
    const char *d = strstr(pattern, "%d");
    if (d) {
        snprintf(out, SF_WNAME_SIZE, "%.*s%d%s", (int)(d - pattern), pattern, layer, d + 2);
    } else {
        snprintf(out, SF_WNAME_SIZE, "%s", pattern);
    }
}

/* "[rows, cols]", the slowest dimension first. */
static void shape_text(const sf_gguf_tensor *t, char out[96]) {
    size_t at = (size_t)snprintf(out, 96, "[");
    for (int i = t->n_dims - 1; i >= 0; i--)
        at += (size_t)snprintf(out + at, 96 - at, "%s%llu", i == t->n_dims - 1 ? "" : ", ",
                               (unsigned long long)t->dims[i]);
    snprintf(out + at, 96 - at, "]");
}

static bool is_vector(const sf_weight_desc *d) {
    return d->format == SF_W_F32;
}

static void expected_text(const sf_weight_desc *d, const sf_wpart *part, char out[48]) {
    if (is_vector(d)) {
        snprintf(out, 48, "[%d]", part->rows);
    } else {
        snprintf(out, 48, "[%d, %d]", part->rows, d->k);
    }
}

static sf_code check_tensor(const sf_wfile *f, const sf_weight_desc *d, const sf_wpart *part,
                            const sf_gguf_tensor *t, sf_err *err) {
    uint64_t cols = (uint64_t)(is_vector(d) ? part->rows : d->k),
             rows = is_vector(d) ? 1 : (uint64_t)part->rows;
    if (t->dims[0] != cols || t->dims[1] != rows || t->dims[2] != 1 || t->dims[3] != 1) {
        char found[96], expected[48];
        shape_text(t, found);
        expected_text(d, part, expected);
        return SF_WFILE_FAIL(f, t, SF_FORMAT, " is %s %s, expected %s", found, sf_ggml_type_name(t->type),
                             expected);
    }
    if (!sf_ggml_type_readable(t->type)) {
        return SF_WFILE_FAIL(
            f, t, SF_UNSUPPORTED,
            " is %s (%u), expected F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K",
            sf_ggml_type_name(t->type), t->type);
    }
    bool plain = t->type == SF_GGML_F32 || t->type == SF_GGML_F16 || t->type == SF_GGML_BF16;
    if (is_vector(d) && !plain) {
        return SF_WFILE_FAIL(f, t, SF_UNSUPPORTED, " is %s, expected F32, F16 or BF16 for a vector",
                             sf_ggml_type_name(t->type));
    }
    return SF_OK;
}

/* Index of the tensor of that canonical pattern; -1: absent. name: as the file spells it. */
static sf_code look_up(const sf_wfile *f, const char *pattern, int layer, char name[SF_WNAME_SIZE],
                       int *index, sf_err *err) {
    char canonical[SF_WNAME_SIZE];
    canonical_name(pattern, layer, canonical);
    if (!f->spell(canonical, name)) {
        return SF_FAIL_AT(err, SF_UNSUPPORTED, ((sf_loc){f->path, 0, 0}),
                          "tensor %s has no name in files of this format", canonical);
    }
    *index = f->find(f->file, name);
    return SF_OK;
}

static sf_code find_part(const sf_wfile *f, const sf_winst *w, int part, int *index, sf_err *err) {
    const sf_wpart *p = &w->desc->parts[part];
    char name[SF_WNAME_SIZE], expected[48];
    SF_TRY(look_up(f, p->tensor, w->layer, name, index, err));
    if (*index >= 0) return check_tensor(f, w->desc, p, f->at(f->file, *index), err);
    expected_text(w->desc, p, expected);
    return SF_FAIL_AT(err, SF_FORMAT, ((sf_loc){f->path, 0, 0}), "tensor %s is missing, expected %s%s", name,
                      expected, p->fallback ? " (the model's head is a matrix of its own)" : "");
}

/* Of two tensors of one size. */
static sf_code compare(const sf_wfile *f, const sf_gguf_tensor *a, const sf_gguf_tensor *b, bool *same,
                       sf_err *err) {
    enum { STEP = 32 << 10 };
    uint8_t x[STEP], y[STEP];
    *same = true;
    for (uint64_t at = 0; *same && at < a->bytes; at += STEP) {
        size_t n = a->bytes - at < STEP ? (size_t)(a->bytes - at) : STEP;
        SF_TRY(sf_wfile_read(f, a, at, n, x, err));
        SF_TRY(sf_wfile_read(f, b, at, n, y, err));
        *same = memcmp(x, y, n) == 0;
    }
    return SF_OK;
}

sf_code sf_wfile_tied_head(const sf_wsource *s, const sf_gguf_tensor *t, const char *head, const char *embed,
                           bool *harmless, sf_err *err) {
    const sf_wfile *f = &s->file;
    *harmless = false;
    if (!s->plan->model.tied_embeddings || strcmp(t->name, head) != 0) return SF_OK;
    int at = f->find(f->file, embed);
    const sf_gguf_tensor *e = at < 0 ? NULL : f->at(f->file, at);
    if (e && e->type == t->type && e->dims[0] == t->dims[0] && e->bytes == t->bytes)
        SF_TRY(compare(f, e, t, harmless, err));
    if (*harmless) return SF_OK;
    return SF_WFILE_FAIL(f, t, SF_FORMAT,
                         " differs from %s, which model %s uses in its place (tied embeddings)", embed,
                         s->plan->model.name);
}

sf_code sf_weights_find_tensors(const sf_wsource *s, sf_winst *insts, int n_insts, sf_err *err) {
    const sf_wfile *f = &s->file;
    sf_code rc = SF_OK;
    bool *used = calloc((size_t)f->n + 1, sizeof *used);
    if (!used) return SF_FAIL_AT(err, SF_NOMEM, ((sf_loc){f->path, 0, 0}), "no memory for %d tensors", f->n);
    for (int i = 0; rc == SF_OK && i < n_insts; i++) {
        for (int p = 0; rc == SF_OK && p < insts[i].desc->n_parts; p++) {
            int index = -1;
            rc = find_part(f, &insts[i], p, &index, err);
            if (rc != SF_OK) break;
            insts[i].parts[p] = f->at(f->file, index);
            used[index] = true;
        }
    }
    for (int i = 0; rc == SF_OK && i < f->n; i++) {
        const sf_gguf_tensor *t = f->at(f->file, i);
        bool harmless = false;
        if (used[i]) continue;
        if (f->surplus) rc = f->surplus(s, t, &harmless, err);
        if (rc == SF_OK && !harmless)
            rc = SF_WFILE_FAIL(f, t, SF_UNSUPPORTED, " has no place in model %s", s->plan->model.name);
    }
    free(used);
    return rc;
}
