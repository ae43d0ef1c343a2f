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
    char name[SF_WNAME_SIZE], other[SF_WNAME_SIZE], expected[48];
    SF_TRY(look_up(f, p->tensor, w->layer, name, index, err));
    if (*index < 0 && p->fallback && f->absent_head_is_tied)
        SF_TRY(look_up(f, p->fallback, w->layer, other, index, err));
    if (*index >= 0) return check_tensor(f, w->desc, p, f->at(f->file, *index), err);
    expected_text(w->desc, p, expected);
    return SF_FAIL_AT(err, SF_FORMAT, ((sf_loc){f->path, 0, 0}), "tensor %s is missing, expected %s", name,
                      expected);
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
