#include "machine.h"

#include <string.h>

static const char *const isa_names[] = {"generic", "avx2", "avx512", "avx512bf16", NULL};

const char *sf_machine_isa_name(sf_isa isa) {
    return isa_names[isa];
}

int sf_machine_bucket(const sf_machine *m, int rows) {
    int i = 0;
    while (i < m->n_buckets - 1 && m->buckets[i] < rows)
        i++;
    return m->buckets[i];
}

int sf_machine_tile(const sf_machine *m, int n, int k, int tiles) {
    for (int i = 0; i < m->n_tiles; i++)
        if (m->tiles[i].n == n && m->tiles[i].k == k) return m->tiles[i].tile;
    int share = (tiles + m->sms - 1) / m->sms;
    return share < 1 ? 1 : share > SF_TILE_MAX ? SF_TILE_MAX : share;
}

/* A key of the other backend would be read by nobody. */
static sf_code refuse_key(const sf_yaml_node *root, const char *key, const char *backend, sf_err *err) {
    const sf_yaml_node *n = sf_yaml_find(root, key);
    if (!n) return SF_OK;
    return SF_FAIL_AT(err, SF_INVALID, n->key_loc, "%s stands with backend %s, expected it with %s only", key,
                      backend, strcmp(backend, "cpu") == 0 ? "cuda" : "cpu");
}

static sf_code read_isas(const sf_yaml_node *root, sf_machine *m, sf_err *err) {
    const sf_yaml_node *list = NULL;
    if (m->cuda) return refuse_key(root, "isa", m->backend, err);
    SF_TRY(sf_yaml_get_list(root, "isa", SF_ISA_COUNT, &list, err));
    for (const sf_yaml_node *n = list->first; n; n = n->next) {
        int isa = 0;
        SF_TRY(sf_yaml_word(n, "isa", isa_names, &isa, err));
        if (m->isa[isa])
            return SF_FAIL_AT(err, SF_INVALID, n->loc, "isa %s stands twice, expected once", isa_names[isa]);
        m->isa[isa] = true;
    }
    if (!m->isa[SF_ISA_GENERIC])
        return SF_FAIL_AT(err, SF_INVALID, list->loc,
                          "isa lacks generic, expected it (what every machine can run)");
    return SF_OK;
}

static sf_code read_tiles(const sf_yaml_node *root, sf_machine *m, sf_err *err) {
    static const char *const keys[] = {"n", "k", "tile", NULL};
    const sf_yaml_node *list = NULL;
    if (!sf_yaml_find(root, "tiles")) return SF_OK;
    SF_TRY(sf_yaml_get_list(root, "tiles", SF_MACHINE_TILES_MAX, &list, err));
    for (const sf_yaml_node *n = list->first; n; n = n->next) {
        sf_tile *t = &m->tiles[m->n_tiles];
        if (n->kind != SF_YAML_MAP)
            return SF_FAIL_AT(err, SF_INVALID, n->loc, "tiles has a value, expected mappings {n, k, tile}");
        SF_TRY(sf_yaml_check_keys(n, "tiles", keys, err));
        SF_TRY(sf_yaml_get_int(n, "n", 1, 1 << 20, &t->n, err));
        SF_TRY(sf_yaml_get_int(n, "k", 1, 1 << 20, &t->k, err));
        SF_TRY(sf_yaml_get_int(n, "tile", 1, SF_TILE_MAX, &t->tile, err));
        for (int i = 0; i < m->n_tiles; i++)
            if (m->tiles[i].n == t->n && m->tiles[i].k == t->k)
                return SF_FAIL_AT(err, SF_INVALID, n->loc, "tiles has [%d, %d] twice, expected it once", t->n,
                                  t->k);
        m->n_tiles++;
    }
    return SF_OK;
}

static sf_code read_gpu(const sf_yaml_node *root, sf_machine *m, sf_err *err) {
    static const char *const keys[] = {"arch", "sms", NULL};
    static const char *const archs[] = {"sm_90a", NULL};
    const sf_yaml_node *map = NULL;
    int arch = 0;
    if (!m->cuda) {
        SF_TRY(refuse_key(root, "gpu", m->backend, err));
        return refuse_key(root, "tiles", m->backend, err);
    }
    SF_TRY(sf_yaml_get_map(root, "gpu", keys, &map, err));
    SF_TRY(sf_yaml_get_word(map, "arch", archs, &arch, err));
    m->arch = archs[arch];
    SF_TRY(sf_yaml_get_int(map, "sms", 1, 1024, &m->sms, err));
    return read_tiles(root, m, err);
}

static sf_code read_measured(const sf_yaml_node *root, sf_machine *m, sf_err *err) {
    static const char *const keys[] = {"bandwidth_gbs", "gflops", "source", NULL};
    static const char *const classes[] = {"fast", "pinned", NULL};
    const sf_yaml_node *map = NULL, *rates = NULL;
    SF_TRY(sf_yaml_get_map(root, "measured", keys, &map, err));
    SF_TRY(sf_yaml_get_num(map, "bandwidth_gbs", 0.1, 100000, &m->bandwidth_gbs, err));
    SF_TRY(sf_yaml_get_map(map, "gflops", classes, &rates, err));
    for (int c = 0; c < SF_CLASS_COUNT; c++)
        SF_TRY(sf_yaml_get_num(rates, classes[c], 0.1, 1e8, &m->gflops[c], err));
    return sf_yaml_get_text(map, "source", &m->measured_source, err);
}

static sf_code read_rows(const sf_yaml_node *root, sf_machine *m, sf_err *err) {
    SF_TRY(sf_yaml_get_int(root, "max_rows", 2, 8192, &m->max_rows, err));
    SF_TRY(sf_yaml_get_int(root, "max_logit_rows", 2, m->max_rows, &m->max_logit_rows, err));
    SF_TRY(sf_yaml_get_ints(root, "row_buckets", 1, m->max_rows, SF_MACHINE_BUCKETS_MAX, m->buckets,
                            &m->n_buckets, err));
    int last = 0, i = 0;
    for (const sf_yaml_node *n = sf_yaml_find(root, "row_buckets")->first; n; n = n->next, i++) {
        if (m->buckets[i] <= last)
            return SF_FAIL_AT(err, SF_INVALID, n->loc, "row_buckets has %d after %d, expected ascending",
                              m->buckets[i], last);
        /* the kernels' boxes of activations are 8, 16 ... 256 rows */
        bool box = m->buckets[i] >= 8 && (m->buckets[i] & (m->buckets[i] - 1)) == 0;
        if (m->cuda && m->buckets[i] <= 256 && !box)
            return SF_FAIL_AT(err, SF_INVALID, n->loc,
                              "row_buckets has %d, expected 8, 16, 32, 64, 128, 256 or more", m->buckets[i]);
        last = m->buckets[i];
    }
    if (last != m->max_rows)
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(root, "row_buckets")->loc,
                          "row_buckets ends with %d, expected max_rows (%d)", last, m->max_rows);
    return SF_OK;
}

static sf_code read_kv(const sf_yaml_node *root, sf_machine *m, sf_err *err) {
    static const char *const keys[] = {"page", "pages", NULL};
    const sf_yaml_node *map = NULL;
    SF_TRY(sf_yaml_get_int(root, "context", 16, 1 << 20, &m->context, err));
    SF_TRY(sf_yaml_get_map(root, "kv", keys, &map, err));
    SF_TRY(sf_yaml_get_int(map, "page", 16, 1024, &m->kv_page, err));
    if (m->kv_page % 16)
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(map, "page")->loc,
                          "page is %d, expected a multiple of 16", m->kv_page);
    if (m->cuda && m->kv_page != 64)
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(map, "page")->loc,
                          "page is %d, expected 64 (a tile of the cuda kernels)", m->kv_page);
    return sf_yaml_get_int(map, "pages", 1, 1 << 24, &m->kv_pages, err);
}

static sf_code read_loop(const sf_yaml_node *root, sf_machine *m, sf_err *err) {
    static const char *const policies[] = {"verify", "pin", NULL};
    int policy = 0;
    SF_TRY(sf_yaml_get_int(root, "max_seqs", 1, 4096, &m->max_seqs, err));
    SF_TRY(sf_yaml_get_int(root, "window", 2, 64, &m->window, err));
    if (m->window > m->max_logit_rows)
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(root, "window")->loc,
                          "window is %d, expected at most max_logit_rows (%d)", m->window, m->max_logit_rows);
    SF_TRY(sf_yaml_get_int(root, "verify_wait", 0, 1000, &m->verify_wait, err));
    SF_TRY(sf_yaml_get_int(root, "prefill_chunk", 1, m->max_rows, &m->prefill_chunk, err));
    if (sf_yaml_find(root, "prefill_split"))
        SF_TRY(sf_yaml_get_int(root, "prefill_split", 0, 1 << 20, &m->prefill_split, err));
    SF_TRY(sf_yaml_get_word(root, "policy", policies, &policy, err));
    m->policy = policies[policy];
    return SF_OK;
}

/* What is planned and not there yet is refused by name. */
static sf_code read_reserved(const sf_yaml_node *root, sf_err *err) {
    static const char *const keys[] = {"fast", NULL};
    static const char *const formats[] = {"bf16", "int8", "int4", NULL};
    const sf_yaml_node *map = NULL;
    int format = 0, tp = 0;
    SF_TRY(sf_yaml_get_map(root, "weights", keys, &map, err));
    SF_TRY(sf_yaml_get_word(map, "fast", formats, &format, err));
    if (format != 0)
        return SF_FAIL_AT(err, SF_UNSUPPORTED, sf_yaml_find(map, "fast")->loc,
                          "%s weights for the fast class are not supported yet, expected bf16",
                          formats[format]);
    SF_TRY(sf_yaml_get_int(root, "tensor_parallel", 1, 64, &tp, err));
    if (tp != 1)
        return SF_FAIL_AT(err, SF_UNSUPPORTED, sf_yaml_find(root, "tensor_parallel")->loc,
                          "tensor_parallel %d is not supported yet, expected 1", tp);
    return SF_OK;
}

static sf_code read_libraries(const sf_yaml_node *root, sf_machine *m, sf_err *err) {
    static const char *const names[] = {"cublaslt", NULL};
    const sf_yaml_node *map = NULL, *list = NULL;
    if (!m->cuda) return refuse_key(root, "libraries", m->backend, err);
    if (!sf_yaml_find(root, "libraries")) return SF_OK;
    SF_TRY(sf_yaml_get_map(root, "libraries", names, &map, err));
    for (const sf_yaml_node *l = map->first; l; l = l->next) {
        SF_TRY(sf_yaml_get_list(map, l->key, SF_LIBRARY_USES_MAX, &list, err));
        for (const sf_yaml_node *op = list->first; op; op = op->next) {
            if (op->kind != SF_YAML_SCALAR)
                return SF_FAIL_AT(err, SF_INVALID, op->loc, "%s has a list or a mapping, expected ops",
                                  l->key);
            m->library_uses[m->n_library_uses++] = (sf_library_use){l->key, op->text, op->loc};
        }
    }
    return SF_OK;
}

static sf_code read_tunes(const sf_yaml_node *root, sf_machine *m, sf_err *err) {
    if (!sf_yaml_find(root, "tune")) return SF_OK;
    const sf_yaml_node *tune = NULL, *params = NULL;
    SF_TRY(sf_yaml_get_map(root, "tune", NULL, &tune, err));
    for (const sf_yaml_node *t = tune->first; t; t = t->next) {
        SF_TRY(sf_yaml_get_map(tune, t->key, NULL, &params, err));
        if (!params->n)
            return SF_FAIL_AT(err, SF_INVALID, params->loc, "%.64s is empty, expected parameters", t->key);
        for (const sf_yaml_node *p = params->first; p; p = p->next) {
            if (p->kind != SF_YAML_SCALAR)
                return SF_FAIL_AT(err, SF_INVALID, p->loc, "%.64s is a list or a mapping, expected a value",
                                  p->key);
            if (m->n_tunes == SF_MACHINE_TUNES_MAX)
                return SF_FAIL_AT(err, SF_FULL, p->key_loc, "over %d tuned values, expected fewer",
                                  SF_MACHINE_TUNES_MAX);
            m->tunes[m->n_tunes++] = (sf_tune){.template = t->key,
                                               .param = p->key,
                                               .value = p->text,
                                               .template_loc = t->key_loc,
                                               .param_loc = p->key_loc,
                                               .value_loc = p->loc};
        }
    }
    return SF_OK;
}

sf_code sf_machine_read(const sf_yaml_node *root, const char *file, sf_machine *out, sf_err *err) {
    static const char *const keys[] = {
        "name",    "backend",         "isa",  "measured", "row_buckets", "max_rows",      "max_logit_rows",
        "context", "max_seqs",        "kv",   "window",   "verify_wait", "prefill_chunk", "policy",
        "weights", "tensor_parallel", "tune", "gpu",      "tiles",       "libraries",     "prefill_split",
        NULL};
    static const char *const backends[] = {"cpu", "cuda", NULL};
    sf_machine m = {.file = file};
    int backend = 0;
    SF_TRY(sf_yaml_check_keys(root, "a build configuration", keys, err));
    SF_TRY(sf_yaml_get_name(root, "name", &m.name, err));
    SF_TRY(sf_yaml_get_word(root, "backend", backends, &backend, err));
    m.backend = backends[backend];
    m.cuda = backend == 1;
    m.backend_loc = sf_yaml_find(root, "backend")->loc;
    SF_TRY(read_isas(root, &m, err));
    SF_TRY(read_gpu(root, &m, err));
    SF_TRY(read_measured(root, &m, err));
    SF_TRY(read_rows(root, &m, err));
    SF_TRY(read_kv(root, &m, err));
    SF_TRY(read_loop(root, &m, err));
    SF_TRY(read_reserved(root, err));
    SF_TRY(read_libraries(root, &m, err));
    SF_TRY(read_tunes(root, &m, err));
    *out = m;
    return SF_OK;
}
