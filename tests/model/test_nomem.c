/* The n-th allocation fails, for every n: opening a checkpoint and loading weights say so, and leak nothing
 * (a sanitizer's or valgrind's word). The linker sends the allocations of our code and of the libraries
 * linked statically through here. */
#include "model/weights.h"

#include "base/hash.h"
#include "model/gguf_priv.h"
#include "model/hf_config_priv.h"
#include "model/safetensors_priv.h"
#include "model/tiny_st.h"
#include "model/tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <cmocka.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

static atomic_int countdown; /* allocations until the one that fails; negative: none fails */
static atomic_bool failed;

static bool fails(void) {
    if (atomic_load(&countdown) < 0 || atomic_fetch_sub(&countdown, 1) != 0) return false;
    atomic_store(&failed, true);
    return true;
}

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}
void *__wrap_calloc(size_t n, size_t size) {
    return fails() ? NULL : __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t size) {
    return fails() ? NULL : __real_realloc(p, size);
}
void *__wrap_aligned_alloc(size_t align, size_t size) {
    return fails() ? NULL : __real_aligned_alloc(align, size);
}

typedef sf_code step_fn(void *ctx, sf_err *err);

/* Runs step with the first, second... allocation failing, until one run meets no failure. Returns how many
 * runs said that memory was out; a library may also do without what it was refused, then step checks the
 * result. */
static int each_allocation(step_fn *step, void *ctx) {
    int refused = 0;
    for (int n = 0;; n++) {
        sf_err err = {0};
        atomic_store(&failed, false);
        atomic_store(&countdown, n);
        sf_code rc = step(ctx, &err);
        atomic_store(&countdown, -1);
        assert_true(rc == SF_OK || rc == SF_NOMEM);
        if (!atomic_load(&failed)) {
            assert_int_equal(rc, SF_OK);
            return refused;
        }
        if (rc == SF_NOMEM) {
            assert_int_equal(err.code, SF_NOMEM);
            assert_true(strlen(err.msg) > 0);
            refused++;
        }
        assert_true(n < 10000);
    }
}

static sf_code step_open(void *ctx, sf_err *err) {
    const gm *m = ctx;
    sf_gguf *g = NULL;
    sf_code rc = sf_gguf_open_bytes("tiny.gguf", m->data, m->len, &g, err);
    assert_true((rc == SF_OK) == (g != NULL));
    sf_gguf_close(g);
    return rc;
}

/* A sink that needs no memory: it only counts. */
static sf_code sink_begin(void *ctx, size_t bytes, bool draws, sf_err *err) {
    (void)draws, (void)err;
    atomic_store((atomic_size_t *)ctx, bytes);
    return SF_OK;
}

static sf_code sink_put(void *ctx, int part, size_t offset, const void *data, size_t bytes, sf_err *err) {
    (void)part, (void)offset, (void)data, (void)err;
    atomic_fetch_sub((atomic_size_t *)ctx, bytes);
    return SF_OK;
}

typedef struct load_ctx {
    const sf_plan *plan;
    const sf_gguf *g;         /* NULL: st or random weights */
    const sf_safetensors *st; /* with its config */
    const sf_hf_config *config;
    bool sink;
    sf_pool *pool;
    char hash[65]; /* of the first good run */
} load_ctx;

static sf_code step_weights(void *ctx, sf_err *err) {
    load_ctx *c = ctx;
    atomic_size_t left = 0;
    const sf_weights_sink to = {&left, sink_begin, sink_put, NULL}, *sink = c->sink ? &to : NULL;
    sf_weights *w = NULL;
    sf_code rc;
    if (c->st) {
        rc = sf_weights_load_st(c->plan, c->st, c->config, c->pool, false, sink, &w, err);
    } else {
        rc = c->g ? sf_weights_load(c->plan, c->g, c->pool, false, sink, &w, err)
                  : sf_weights_random(c->plan, 1, c->pool, false, sink, &w, err);
    }
    if (w) assert_int_equal(atomic_load(&left), 0); /* nothing is left out quietly */
    assert_true((rc == SF_OK) == (w != NULL));
    if (w && !c->hash[0]) snprintf(c->hash, sizeof c->hash, "%s", sf_weights_hash(w));
    if (w) assert_string_equal(c->hash, sf_weights_hash(w));
    sf_weights_destroy(w);
    return rc;
}

static sf_code step_arrays(void *ctx, sf_err *err) {
    const sf_gguf *g = ctx;
    sf_str *strs = NULL;
    int32_t *ints = NULL;
    size_t n = 0;
    sf_code rc = sf_gguf_get_strs(g, "strs", &strs, &n, err);
    if (rc == SF_OK) rc = sf_gguf_get_i32s(g, "ints", &ints, &n, err);
    free(strs);
    free(ints);
    return rc;
}

static void opening_a_checkpoint(void **state) {
    (void)state;
    gm m = tiny_file(&(tiny_change){0});
    assert_int_equal(each_allocation(step_open, &m), 7); /* object, 2 for keys, 4 for tensors */
    gm_fini(&m);
}

/* jansson calls a word that it has no memory for broken. */
static sf_code json_refused(sf_code rc, sf_err *err) {
    if (rc != SF_FORMAT || !strstr(err->msg, "broken JSON")) return rc;
    return err->code = SF_NOMEM;
}

static sf_code step_open_shards(void *ctx, sf_err *err) {
    sf_safetensors *s = NULL;
    sf_code rc = sf_safetensors_open(ctx, &s, err);
    assert_true((rc == SF_OK) == (s != NULL));
    if (s) assert_int_equal(sf_safetensors_n_tensors(s), 2);
    sf_safetensors_close(s);
    return json_refused(rc, err);
}

/* Words under 16 bytes: jansson's buffer begins so large, and it doesn't see when it can't grow. */
static void opening_shards(void **state) {
    (void)state;
    char dir[64];
    st_directory(dir);
    st_write_text(dir, "model.safetensors.index.json", "{\"weight_map\":{\"a\":\"one\",\"b\":\"two\"}}");
    st_save(dir, "one", st_file("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4));
    st_save(dir, "two", st_file("{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4));
    assert_true(each_allocation(step_open_shards, dir) > 20);
    st_remove(dir);
}

static void reading_arrays(void **state) {
    (void)state;
    gm m = {0};
    gm_head(&m, 3, 0, 2);
    gm_array(&m, "strs", 8, 1);
    gm_str(&m, "a");
    gm_array(&m, "ints", 0, 2);
    gm_uint(&m, 1, 2);
    sf_gguf *g = NULL;
    assert_int_equal(sf_gguf_open_bytes("a.gguf", m.data, m.len, &g, NULL), SF_OK);
    assert_int_equal(each_allocation(step_arrays, g), 2);
    sf_gguf_close(g);
    gm_fini(&m);
}

static void loading_weights(void **state) {
    (void)state;
    gm m = tiny_file(&(tiny_change){0});
    load_ctx c = {.plan = &tiny_plan};
    sf_gguf *g = NULL;
    assert_int_equal(sf_gguf_open_bytes("tiny.gguf", m.data, m.len, &g, NULL), SF_OK);
    c.g = g;
    for (int threads = 1; threads <= 2; threads++) {
        assert_int_equal(sf_pool_create(threads, &c.pool, NULL), SF_OK);
        assert_int_equal(step_weights(&c, NULL), SF_OK);
        assert_true(each_allocation(step_weights, &c) >= 6);
        sf_pool_destroy(c.pool);
    }
    sf_gguf_close(g);
    gm_fini(&m);
}

static void loading_weights_from_safetensors(void **state) {
    (void)state;
    const sf_plan plan = tiny_st_plan();
    gm m = tiny_st_file(&(tiny_st_change){0});
    load_ctx c = {.plan = &plan};
    sf_safetensors *st = NULL;
    sf_hf_config *config = NULL;
    assert_int_equal(sf_safetensors_open_bytes("tiny", m.data, m.len, &st, NULL), SF_OK);
    assert_int_equal(sf_hf_config_open_text("tiny", TINY_CONFIG, strlen(TINY_CONFIG), &config, NULL), SF_OK);
    c.st = st;
    c.config = config;
    assert_int_equal(sf_pool_create(2, &c.pool, NULL), SF_OK);
    assert_int_equal(step_weights(&c, NULL), SF_OK);
    assert_true(each_allocation(step_weights, &c) >= 6);
    sf_pool_destroy(c.pool);
    sf_hf_config_close(config);
    sf_safetensors_close(st);
    gm_fini(&m);
}

/* Of a long word jansson may also drop the end when it can't grow: then a key is missing, or says another
 * thing. */
static sf_code step_config(void *ctx, sf_err *err) {
    sf_hf_config *c = NULL;
    sf_code rc = sf_hf_config_open(ctx, &c, err);
    assert_true((rc == SF_OK) == (c != NULL));
    if (c) assert_int_equal(sf_hf_config_model(c)->intermediate, 20);
    sf_hf_config_close(c);
    if (rc == SF_FORMAT || rc == SF_UNSUPPORTED) rc = err->code = SF_NOMEM;
    return rc;
}

static void reading_a_config(void **state) {
    (void)state;
    char dir[64];
    st_directory(dir);
    st_write_text(dir, "config.json", TINY_CONFIG);
    assert_int_equal(step_config(dir, NULL), SF_OK);
    assert_true(each_allocation(step_config, dir) > 20);
    st_remove(dir);
}

static void drawing_weights(void **state) {
    (void)state;
    load_ctx c = {.plan = &tiny_plan};
    assert_int_equal(sf_pool_create(2, &c.pool, NULL), SF_OK);
    assert_int_equal(step_weights(&c, NULL), SF_OK);
    assert_true(each_allocation(step_weights, &c) >= 6);
    sf_pool_destroy(c.pool);
}

static void sending_weights_to_a_sink(void **state) {
    (void)state;
    gm m = tiny_file(&(tiny_change){0});
    sf_weight_desc slots[TINY_SLOTS];
    sf_plan plan = tiny_plan;
    sf_gguf *g = NULL;
    tiny_as_mma(2, slots);
    plan.weights = slots;
    assert_int_equal(sf_gguf_open_bytes("tiny.gguf", m.data, m.len, &g, NULL), SF_OK);
    for (int threads = 1; threads <= 2; threads++) {
        load_ctx c = {.plan = &plan, .g = g, .sink = true};
        assert_int_equal(sf_pool_create(threads, &c.pool, NULL), SF_OK);
        assert_int_equal(step_weights(&c, NULL), SF_OK);
        assert_true(each_allocation(step_weights, &c) >= 6);
        sf_pool_destroy(c.pool);
    }
    sf_gguf_close(g);
    gm_fini(&m);
}

/* libcrypto's own start-up is not what is tested. */
static int warm_up(void **state) {
    (void)state;
    char hex[65];
    atomic_store(&countdown, -1);
    return sf_sha256_of("", 0, hex) ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_a_checkpoint), cmocka_unit_test(opening_shards),
        cmocka_unit_test(reading_a_config),     cmocka_unit_test(reading_arrays),
        cmocka_unit_test(loading_weights),      cmocka_unit_test(loading_weights_from_safetensors),
        cmocka_unit_test(drawing_weights),      cmocka_unit_test(sending_weights_to_a_sink),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
