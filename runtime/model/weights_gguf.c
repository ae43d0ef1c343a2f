/* A GGUF file's tensors by their canonical names. */
#include "model/gguf_priv.h"
#include "model/gguf_rope.h"
#include "model/weights_priv.h"

#include <stdio.h>
#include <string.h>

static const sf_gguf_tensor *tensor_at(const void *file, int i) {
    return sf_gguf_tensor_at(file, i);
}

static bool spell(const char *canonical, char out[SF_WNAME_SIZE]) {
    snprintf(out, SF_WNAME_SIZE, "%s", canonical);
    return true;
}

static int find(const void *file, const char *name) {
    const sf_gguf_tensor *t = sf_gguf_find_tensor(file, name);
    return t ? (int)(t - sf_gguf_tensor_at(file, 0)) : -1;
}

static const char *label(const void *file, const sf_gguf_tensor *t) {
    (void)file, (void)t;
    return "";
}

static int place(const void *file, const sf_gguf_tensor *t, uint64_t *offset) {
    const sf_gguf *g = file;
    *offset = (uint64_t)(t->data - g->base);
    return g->map.fd;
}

/* The factors of RoPE have been compared with the plan's (gguf_rope.h). */
static sf_code surplus(const sf_wsource *s, const sf_gguf_tensor *t, bool *harmless, sf_err *err) {
    *harmless = strcmp(t->name, SF_GGUF_ROPE_FREQS) == 0;
    if (*harmless) return SF_OK;
    return sf_wfile_tied_head(s, t, "output.weight", "token_embd.weight", harmless, err);
}

/* llama.cpp's conversion of the llama family stores the rows of a head of q and k so that the two of a rotary
 * pair are neighbours; those of others are halves. */
sf_wsource sf_wsource_gguf(const sf_plan *plan, const sf_gguf *g) {
    return sf_wsource_file(plan, (sf_wfile){.path = sf_gguf_path(g),
                                            .file = g,
                                            .n = sf_gguf_n_tensors(g),
                                            .neighbours = strcmp(plan->model.family, "llama") == 0,
                                            .at = tensor_at,
                                            .spell = spell,
                                            .find = find,
                                            .label = label,
                                            .surplus = surplus,
                                            .place = place});
}
