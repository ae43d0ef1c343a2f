/* A checkpoint as a source of rows, whatever its format: where a row of a slot lies in its tensors. Their
 * bytes are read, not mapped: reading costs no page tables, leaves no copy in the process, and a file that
 * has been cut meanwhile is an error. */
#include "model/weights_priv.h"

#include "model/gguf_priv.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

sf_code sf_wfile_read(const sf_wfile *f, const sf_gguf_tensor *t, uint64_t offset, size_t n, uint8_t *out,
                      sf_err *err) {
    uint64_t at = 0;
    int fd = f->place(f->file, t, &at);
    if (fd < 0) {
        memcpy(out, t->data + offset, n);
        return SF_OK;
    }
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, out + done, n - done, (off_t)(at + offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return SF_WFILE_FAIL(f, t, SF_IO, ": reading it: %s", strerror(errno));
        if (got == 0) {
            return SF_WFILE_FAIL(f, t, SF_IO,
                                 ": the file now ends at byte %llu of its %llu (it has been cut)",
                                 (unsigned long long)(offset + done), (unsigned long long)t->bytes);
        }
        done += (size_t)got;
    }
    return SF_OK;
}

/* The kernels want the rows of a head of q and k as halves: i and i + head_dim/2 are a rotary pair. */
static int source_row(const sf_wsource *s, const sf_wpart *p, int row) {
    if (p->role == SF_ROLE_PLAIN || !s->file.neighbours) return row;
    int dim = s->plan->model.head_dim, in_head = row % dim, half = dim / 2;
    return row - in_head + (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1);
}

/* A packed row (of a vector: an element) in the checkpoint; NULL: padding. */
static const sf_gguf_tensor *locate(const sf_wsource *s, const sf_winst *w, int packed, int *row) {
    int part = sf_wrow_locate(w->desc, packed, row);
    if (part < 0) return NULL;
    *row = source_row(s, &w->desc->parts[part], *row);
    return w->parts[part];
}

static sf_code reserve(sf_wrows *x, size_t size, sf_err *err) {
    if (size <= x->size) return SF_OK;
    uint8_t *more = realloc(x->bytes, size);
    if (!more) return SF_FAIL(err, SF_NOMEM, "no memory for %zu bytes of a checkpoint", size);
    x->bytes = more;
    x->size = size;
    return SF_OK;
}

/* x's rows of one tensor, to x->bytes from *used on. They mostly lie close together, in another order at
 * most: then they are read at once. */
static sf_code fetch_tensor(const sf_wsource *s, const sf_winst *w, const sf_gguf_tensor *t, sf_wrows *x,
                            const int *source, size_t *used, sf_err *err) {
    const size_t stride = sf_ggml_bytes(t->type, t->dims[0]),
                 skip = sf_ggml_bytes(t->type, (uint64_t)x->from);
    size_t row = sf_ggml_bytes(t->type, (uint64_t)(x->to - x->from));
    int n = 0, low = INT_MAX, high = 0;
    for (int i = 0; i < x->n; i++) {
        if (x->tensor[i] != t) continue;
        n++;
        low = source[i] < low ? source[i] : low;
        high = source[i] > high ? source[i] : high;
    }
    if (n == 0) return SF_OK;
    bool together = x->from == 0 && x->to == w->desc->k && high - low < 2 * n;
    size_t bytes = together ? (size_t)(high - low + 1) * stride : (size_t)n * row;
    SF_TRY(reserve(x, *used + bytes, err));
    if (together) SF_TRY(sf_wfile_read(&s->file, t, (uint64_t)low * stride, bytes, x->bytes + *used, err));
    for (int i = 0, k = 0; i < x->n; i++) {
        if (x->tensor[i] != t) continue;
        x->at[i] = *used + (together ? (size_t)(source[i] - low) * stride : (size_t)k++ * row);
        if (together) continue;
        const uint64_t from = (uint64_t)source[i] * stride + skip;
        SF_TRY(sf_wfile_read(&s->file, t, from, row, x->bytes + x->at[i], err));
    }
    *used += bytes;
    return SF_OK;
}

static sf_code fetch_file(const sf_wsource *s, const sf_winst *w, sf_wrows *x, sf_err *err) {
    int source[SF_WROWS_MAX];
    size_t used = 0;
    for (int i = 0; i < x->n; i++)
        x->tensor[i] = locate(s, w, x->row[i], &source[i]);
    for (int p = 0; p < w->desc->n_parts; p++)
        SF_TRY(fetch_tensor(s, w, w->parts[p], x, source, &used, err));
    return SF_OK;
}

static void read_file(const sf_wsource *s, const sf_winst *w, const sf_wrows *x, int i, int from, int count,
                      float *out) {
    (void)s, (void)w;
    uint32_t type = x->tensor[i]->type;
    sf_ggml_dequant(type, x->bytes + x->at[i] + sf_ggml_bytes(type, (uint64_t)(from - x->from)),
                    (uint64_t)count, out);
}

static sf_code vector_file(const sf_wsource *s, const sf_winst *w, sf_wrows *x, float *out, sf_err *err) {
    for (int p = 0; p < w->desc->n_parts; p++) {
        const sf_wpart *part = &w->desc->parts[p];
        sf_gguf_tensor t = *w->parts[p];
        SF_TRY(reserve(x, (size_t)t.bytes, err));
        SF_TRY(sf_wfile_read(&s->file, w->parts[p], 0, (size_t)t.bytes, x->bytes, err));
        t.data = x->bytes;
        for (int i = 0; i < part->rows; i++)
            SF_TRY(sf_gguf_dequant(&t, 0, (uint64_t)source_row(s, part, i), 1, out++, err));
    }
    return SF_OK;
}

static sf_code not_finite(const sf_wsource *s, const sf_winst *w, int row, sf_err *err) {
    int at = 0;
    const sf_gguf_tensor *t = locate(s, w, row, &at);
    if (w->desc->format == SF_W_F32)
        return SF_WFILE_FAIL(&s->file, t, SF_FORMAT, ": element %d is not finite", at);
    return SF_WFILE_FAIL(&s->file, t, SF_FORMAT, ": row %d has a value that is not finite in bf16", at);
}

sf_wsource sf_wsource_file(const sf_plan *plan, sf_wfile file) {
    return (sf_wsource){.plan = plan,
                        .fetch = fetch_file,
                        .read = read_file,
                        .vector = vector_file,
                        .not_finite = not_finite,
                        .file = file};
}
