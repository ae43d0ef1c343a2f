/* Packed weights that go to a sink: what it is given, and its errors. */
#include "model/weights.h"

#include "model/gguf_priv.h"
#include "model/tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <cmocka.h>

/* A memory that notes how often each byte came. */
typedef struct memory {
    uint8_t *data, *times; /* [bytes] */
    size_t bytes;
    int threads, begun;
    atomic_int puts, bad; /* bad: a put outside of the contract */
    atomic_int inside[4]; /* puts that each part is in */
    bool begin_fails;
    int put_fails; /* the put that fails, from 1; 0: none */
    bool draws;    /* it can draw */
    bool asked;    /* what begin was told */
    atomic_int drawn;
    int draw_fails;      /* the draw that fails, from 1; 0: none */
    uint32_t *copies[4]; /* of a part's last draw */
} memory;

static sf_code begin(void *ctx, size_t bytes, bool draws, sf_err *err) {
    memory *m = ctx;
    m->begun++;
    m->asked = draws;
    if (m->begin_fails) return SF_FAIL(err, SF_DEVICE, "no room for %zu bytes", bytes);
    m->bytes = bytes;
    m->data = calloc(bytes, 1);
    m->times = calloc(bytes, 1);
    assert_true(m->data && m->times);
    return SF_OK;
}

static sf_code put(void *ctx, int part, size_t offset, const void *data, size_t bytes, sf_err *err) {
    memory *m = ctx;
    bool good = part >= 0 && part < m->threads && offset % 64 == 0 && bytes % 64 == 0 && bytes > 0 &&
                (uintptr_t)data % 64 == 0 && offset <= m->bytes && bytes <= m->bytes - offset;
    int n = atomic_fetch_add(&m->puts, 1) + 1;
    if (!good) {
        atomic_fetch_add(&m->bad, 1);
        return SF_OK;
    }
    if (atomic_fetch_add(&m->inside[part], 1) != 0) atomic_fetch_add(&m->bad, 1); /* a part is one thread */
    memcpy(m->data + offset, data, bytes);
    for (size_t i = 0; i < bytes; i++)
        m->times[offset + i]++;
    atomic_fetch_sub(&m->inside[part], 1);
    if (n == m->put_fails) return SF_FAIL(err, SF_DEVICE, "put %d was refused", n);
    return SF_OK;
}

/* Draws as weights_draw.h says, which test_weights_draw.c holds against the host's packing. */
static sf_code draw_unit(void *ctx, int part, size_t offset, const sf_wdraw *what, size_t first, size_t bytes,
                         const void **data, sf_err *err) {
    memory *m = ctx;
    const int n = atomic_fetch_add(&m->drawn, 1) + 1;
    if (first % 512 != 0 || bytes % 512 != 0) atomic_fetch_add(&m->bad, 1);
    free(m->copies[part]);
    m->copies[part] = aligned_alloc(64, bytes);
    assert_non_null(m->copies[part]);
    for (size_t i = 0; i < bytes / 16; i++)
        sf_wdraw_lane(what, first / 16 + i, m->copies[part] + 4 * i);
    *data = m->copies[part];
    if (n == m->draw_fails) return SF_FAIL(err, SF_DEVICE, "draw %d was refused", n);
    return put(ctx, part, offset, *data, bytes, err);
}

static void memory_fini(memory *m) {
    for (int i = 0; i < 4; i++)
        free(m->copies[i]);
    free(m->data);
    free(m->times);
}

enum { WIDE_N = 700, WIDE_K = 5001 };

/* A matrix of several pieces and units in each format, and vectors whose sizes are no multiple of 256 bytes.
 */
static const sf_weight_desc wide_weights[] = {
    {"odd", SF_W_F32, true, false, 1, 7, 1, {{"o", 7, SF_ROLE_PLAIN, NULL}}, 0},
    {"mma", SF_W_BF16_MMA, true, false, WIDE_N, WIDE_K, 1, {{"m", WIDE_N, SF_ROLE_PLAIN, NULL}}, 3},
    {"rows", SF_W_BF16, false, false, WIDE_N, WIDE_K, 1, {{"r", WIDE_N, SF_ROLE_PLAIN, NULL}}, 0},
    {"last", SF_W_F32, false, false, 1, 65, 1, {{"l", 65, SF_ROLE_PLAIN, NULL}}, 0},
};
enum { WIDE_SLOTS = sizeof wide_weights / sizeof *wide_weights };

static const sf_plan wide_plan = {
    .engine = "wide",
    .model = {.layers = 2, .head_dim = 4},
    .n_weights = WIDE_SLOTS,
    .weights = wide_weights,
};

/* Random weights of the wide plan; sink NULL: host memory. */
static sf_code draw(memory *m, int threads, sf_weights **out, sf_err *err) {
    const sf_weights_sink sink = {m, begin, put, m && m->draws ? draw_unit : NULL};
    sf_pool *pool = NULL;
    assert_int_equal(sf_pool_create(threads, &pool, err), SF_OK);
    if (m) m->threads = threads;
    sf_code rc = sf_weights_random(&wide_plan, 11, pool, false, m ? &sink : NULL, out, err);
    sf_pool_destroy(pool);
    return rc;
}

/* The tiny checkpoint. */
static sf_code load(const tiny_change *c, memory *m, sf_weights **out, sf_err *err) {
    const sf_weights_sink sink = {m, begin, put, m && m->draws ? draw_unit : NULL};
    gm file = tiny_file(c);
    sf_gguf *g = NULL;
    sf_pool *pool = NULL;
    assert_int_equal(sf_gguf_open_bytes("tiny.gguf", file.data, file.len, &g, err), SF_OK);
    assert_int_equal(sf_pool_create(2, &pool, err), SF_OK);
    if (m) m->threads = 2;
    sf_code rc = sf_weights_load(&tiny_plan, g, pool, false, m ? &sink : NULL, out, err);
    sf_pool_destroy(pool);
    sf_gguf_close(g);
    gm_fini(&file);
    return rc;
}

static void expect_every_byte_once(const memory *m, const sf_weights *w) {
    assert_int_equal(m->begun, 1);
    assert_int_equal(m->bad, 0);
    assert_int_equal(m->bytes, sf_weights_bytes(w));
    for (size_t i = 0; i < m->bytes; i++) {
        if (m->times[i] != 1) fail_msg("byte %zu came %d times", i, m->times[i]);
    }
}

/* Each instance stands in the sink at its offset as it does on the host, and zeros follow up to the next. */
static void expect_same(const sf_plan *plan, const memory *m, const sf_weights *sunk,
                        const sf_weights *host) {
    size_t at = 0, host_at = 0;
    for (int slot = 0; slot < plan->n_weights; slot++) {
        int layers = plan->weights[slot].per_layer ? plan->model.layers : 1;
        for (int layer = 0; layer < layers; layer++) {
            bool last = layer == layers - 1;
            int next = last ? slot + 1 : slot, next_layer = last ? 0 : layer + 1;
            bool end = next == plan->n_weights;
            size_t from = sf_weights_offset(sunk, slot, layer),
                   host_from = sf_weights_offset(host, slot, layer);
            size_t to = end ? m->bytes : sf_weights_offset(sunk, next, next_layer);
            size_t host_to = end ? (size_t)sf_weights_bytes(host) : sf_weights_offset(host, next, next_layer);
            assert_true(from == at && host_from == host_at && from % 256 == 0);
            assert_true(to - from >= host_to - host_from && to - from < host_to - host_from + 256);
            assert_memory_equal(m->data + from, sf_weights_get(host, slot, layer), host_to - host_from);
            for (size_t i = from + (host_to - host_from); i < to; i++)
                assert_int_equal(m->data[i], 0);
            at = to;
            host_at = host_to;
        }
    }
    assert_int_equal(at, m->bytes);
}

/* On one, two and three threads: what went to a sink is what the host would hold, and so is the hash. */
static void expect_as_on_the_host(bool draws) {
    sf_weights *host = NULL;
    sf_err err = {0};
    assert_int_equal(draw(NULL, 2, &host, &err), SF_OK);
    for (int threads = 1; threads <= 3; threads++) {
        memory m = {.draws = draws};
        sf_weights *w = NULL;
        if (draw(&m, threads, &w, &err) != SF_OK) fail_msg("%s", err.msg);
        assert_true(draws ? m.asked && m.drawn > 2 && m.puts > m.drawn : m.puts > 10);
        expect_every_byte_once(&m, w);
        expect_same(&wide_plan, &m, w, host);
        assert_string_equal(sf_weights_hash(w), sf_weights_hash(host));
        sf_weights_destroy(w);
        memory_fini(&m);
    }
    sf_weights_destroy(host);
}

static void every_byte_comes_once_and_equals_the_hosts(void **state) {
    (void)state;
    expect_as_on_the_host(false);
}

/* The two layers of the one slot in SF_W_BF16_MMA are drawn, all else is put; the hash is of what was drawn.
 */
static void a_sink_draws_random_matrices_itself(void **state) {
    (void)state;
    expect_as_on_the_host(true);
}

static void a_checkpoint_is_never_drawn(void **state) {
    (void)state;
    memory m = {.draws = true};
    sf_weights *w = NULL;
    sf_err err = {0};
    if (load(&(tiny_change){0}, &m, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    assert_false(m.asked);
    assert_int_equal(m.drawn, 0);
    expect_every_byte_once(&m, w);
    sf_weights_destroy(w);
    memory_fini(&m);
}

static void an_error_of_draw_ends_loading(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads += 2) {
        memory m = {.draws = true, .draw_fails = 2};
        sf_weights *w = NULL;
        sf_err err = {0};
        assert_int_equal(draw(&m, threads, &w, &err), SF_DEVICE);
        assert_string_equal(err.msg, "draw 2 was refused");
        assert_null(w);
        memory_fini(&m);
    }
}

static void a_checkpoint_goes_to_the_sink_too(void **state) {
    (void)state;
    memory m = {0};
    sf_weights *w = NULL, *host = NULL;
    sf_err err = {0};
    assert_int_equal(load(&(tiny_change){0}, NULL, &host, &err), SF_OK);
    if (load(&(tiny_change){0}, &m, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    expect_every_byte_once(&m, w);
    expect_same(&tiny_plan, &m, w, host);
    assert_string_equal(sf_weights_hash(w), sf_weights_hash(host));
    sf_weights_destroy(w);
    sf_weights_destroy(host);
    memory_fini(&m);
}

static void an_error_of_begin_ends_loading(void **state) {
    (void)state;
    memory m = {.begin_fails = true};
    sf_weights *w = NULL;
    sf_err err = {0};
    assert_int_equal(draw(&m, 2, &w, &err), SF_DEVICE);
    assert_int_equal(err.code, SF_DEVICE);
    assert_non_null(strstr(err.msg, "no room for "));
    assert_null(w);
    assert_int_equal(m.begun, 1);
    assert_int_equal(m.puts, 0);
    memory_fini(&m);
}

static void an_error_of_put_ends_loading(void **state) {
    (void)state;
    memory whole = {0};
    sf_weights *w = NULL;
    sf_err err = {0};
    assert_int_equal(draw(&whole, 1, &w, &err), SF_OK);
    sf_weights_destroy(w);
    memory_fini(&whole);
    for (int threads = 1; threads <= 3; threads += 2) {
        const int fails[] = {1, 2, whole.puts / 2, whole.puts};
        for (int i = 0; i < 4; i++) {
            memory m = {.put_fails = fails[i]};
            char text[64];
            w = NULL;
            err = (sf_err){0};
            snprintf(text, sizeof text, "put %d was refused", fails[i]);
            assert_int_equal(draw(&m, threads, &w, &err), SF_DEVICE);
            assert_int_equal(err.code, SF_DEVICE);
            assert_string_equal(err.msg, text);
            assert_null(w);
            if (threads == 1) assert_int_equal(m.puts, fails[i]); /* nothing after it */
            assert_int_equal(m.bad, 0);
            memory_fini(&m);
        }
    }
}

static void a_bad_checkpoint_never_reaches_the_sink(void **state) {
    (void)state;
    memory m = {0};
    sf_weights *w = NULL;
    sf_err err = {0};
    assert_int_equal(load(&(tiny_change){.without = "blk.1.attn_k.weight"}, &m, &w, &err), SF_FORMAT);
    assert_non_null(strstr(err.msg, "blk.1.attn_k.weight is missing"));
    assert_null(w);
    assert_int_equal(m.begun, 0);
    assert_int_equal(m.puts, 0);
    memory_fini(&m);
}

static void a_value_that_is_not_finite_is_not_put(void **state) {
    (void)state;
    const tiny_change c = {.value_tensor = "blk.0.ffn_down.weight", .value_at = 139, .value = 3.4e38f};
    memory m = {0};
    sf_weights *w = NULL;
    sf_err err = {0};
    assert_int_equal(load(&c, &m, &w, &err), SF_FORMAT);
    assert_string_equal(err.msg,
                        "tensor blk.0.ffn_down.weight: row 6 has a value that is not finite in bf16");
    assert_null(w);
    assert_int_equal(m.begun, 1);
    assert_true(m.bytes > 0 && memchr(m.times, 0, m.bytes) != NULL);
    memory_fini(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_comes_once_and_equals_the_hosts),
        cmocka_unit_test(a_checkpoint_goes_to_the_sink_too),
        cmocka_unit_test(a_sink_draws_random_matrices_itself),
        cmocka_unit_test(a_checkpoint_is_never_drawn),
        cmocka_unit_test(an_error_of_draw_ends_loading),
        cmocka_unit_test(an_error_of_begin_ends_loading),
        cmocka_unit_test(an_error_of_put_ends_loading),
        cmocka_unit_test(a_bad_checkpoint_never_reaches_the_sink),
        cmocka_unit_test(a_value_that_is_not_finite_is_not_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
