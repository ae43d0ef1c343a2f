/* Ops that a library serves, over a driver and a library that record. */
#include "cuda/fake_cublaslt.h"
#include "cuda/tiny_device.h"

enum { QKV = 2, ROPE = 3, ROWS_MIN = 9 };
static sf_library_route by_library;
static sf_op_desc own_ops[sizeof ops / sizeof *ops];
static sf_plan served_plan;
static sf_weights *loaded;
static const sf_bucket wide_buckets[] = {{8, {1, 1}}, {200, {1, 1}}, {256, {1, 1}}, {ROUTED, {1, 1}}};

static void not_a_graph(void) {
    fake.last_was_graph = false;
}

/* A device whose op qkv cuBLASLt may serve; graph_ms and eager_ms are what own kernels and the library take.
 */
static sf_cuda *begin(double graph_ms, double eager_ms) {
    memcpy(own_ops, ops, sizeof ops);
    by_library = (sf_library_route){"cublaslt", ROWS_MIN, K_GEMM, -1, false};
    own_ops[QKV].library = &by_library;
    served_plan = plan;
    served_plan.ops = own_ops;
    sf_cuda *d = make(&served_plan, (size_t)128 << 20);
    fake_cublaslt_init(&d->library.lt);
    fake_blas.on_product = not_a_graph;
    fake.graph_ms = graph_ms;
    fake.eager_ms = eager_ms;
    return d;
}

static sf_cuda *ready(double graph_ms, double eager_ms) {
    sf_cuda *d = begin(graph_ms, eager_ms);
    make_ready(d, &served_plan, &loaded);
    return d;
}

/* The plan with larger passes, which launching one by one gains less. */
static sf_cuda *begin_wide(double graph_ms, double eager_ms) {
    sf_cuda *d = begin(graph_ms, eager_ms);
    served_plan.buckets = wide_buckets;
    served_plan.n_buckets = 4;
    served_plan.max_rows = ROUTED;
    served_plan.max_context = ROUTED;
    return d;
}

static void end(sf_cuda *d) {
    d->base.ops->destroy(&d->base);
    sf_weights_destroy(loaded);
    no_leaks();
    assert_int_equal(fake_blas.handles + fake_blas.descs + fake_blas.layouts + fake_blas.preferences, 0);
}

static void run(sf_cuda *d, sf_class cls, int rows) {
    made m;
    sf_err err = {.msg = ""};
    double us;
    pass_of(&m, cls, rows, 1);
    assert_int_equal(d->base.ops->launch(&d->base, &m.pass, &err), SF_OK);
    assert_int_equal(d->base.ops->sync(&d->base, &us, &err), SF_OK);
}

static void a_faster_library_serves_the_fast_class(void **state) {
    (void)state;
    sf_cuda *d = ready(2, 1);
    const int before = fake_blas.products, launches = fake.launches, allocs = fake.allocs;
    run(d, SF_CLASS_FAST, 20);
    assert_int_equal(fake_blas.products - before, LAYERS);
    assert_true(fake_blas.n == 3 * HIDDEN && fake_blas.k == HIDDEN && fake_blas.rows == ROWS);
    assert_ptr_equal(fake_blas.in, d->buf[SF_BUF_H]);
    assert_ptr_equal(fake_blas.out, d->buf[SF_BUF_QKV]);
    assert_ptr_equal(fake_blas.weight, d->library.offers[0].copy + d->library.offers[0].layer_bytes);
    assert_int_equal(fake.launches - launches, 1 + LAYERS * LAYER_OPS + HEAD_OPS); /* the rest, one by one */
    const sf_cuda_counts c = sf_cuda_counts_get(&d->base);
    assert_int_equal(c.library, LAYERS);
    assert_int_equal(c.launches, 1 + LAYERS * (LAYER_OPS + 1) + HEAD_OPS);
    assert_int_equal(fake.allocs, allocs);
    end(d);
}

static void a_product_may_be_finished_by_a_kernel(void **state) {
    (void)state;
    sf_cuda *d = begin(2, 1);
    by_library.finish = K_NORM;
    make_ready(d, &served_plan, &loaded);
    const int before = fake_blas.products, launches = fake.launches;
    run(d, SF_CLASS_FAST, 20);
    assert_int_equal(fake_blas.products - before, LAYERS);
    assert_int_equal(fake.launches - launches, 1 + LAYERS * (LAYER_OPS + 1) + HEAD_OPS);
    assert_int_equal(sf_cuda_counts_get(&d->base).launches,
                     1 + LAYERS * (LAYER_OPS + 2) + HEAD_OPS); /* the products, too */
    assert_int_equal(fake_blas.out_type, CUDA_R_16BF);
    assert_ptr_equal(fake_blas.out, d->library.offers[0].scratch);
    const sf_cuda_shape *s = sf_cuda_shape_find(d, SF_CLASS_FAST, 20, 1);
    const sf_cuda_step *qkv = s->served + QKV;
    assert_ptr_equal(qkv->kernel, d->kernels + K_NORM);
    assert_ptr_equal(qkv->args.in, d->library.offers[0].scratch);
    assert_ptr_equal(qkv->args.out, d->buf[SF_BUF_QKV]);
    assert_ptr_equal(qkv->args.block, d->block);
    assert_true(sf_cuda_start_get(&d->base).library_bytes > (size_t)ROWS * 3 * HIDDEN * 2);
    end(d);
}

static void pinned_passes_and_few_rows_are_our_own(void **state) {
    (void)state;
    sf_cuda *d = ready(2, 1);
    const int before = fake_blas.products;
    run(d, SF_CLASS_PINNED, 20);
    run(d, SF_CLASS_FAST, 8);
    sf_cuda_library_use(&d->base, false);
    run(d, SF_CLASS_FAST, 20);
    assert_int_equal(fake_blas.products, before);
    assert_int_equal(sf_cuda_counts_get(&d->base).library, 0);
    sf_cuda_library_use(&d->base, true);
    run(d, SF_CLASS_FAST, 20);
    assert_int_equal(fake_blas.products, before + LAYERS);
    end(d);
}

static void what_was_measured_is_told(void **state) {
    (void)state;
    sf_cuda *d = ready(2, 1);
    sf_cuda_library_info i;
    assert_true(sf_cuda_library_get(&d->base, 0, &i));
    assert_string_equal(i.library, "cublaslt");
    assert_string_equal(i.op, "qkv");
    assert_true(i.used && i.rows == ROWS);
    assert_true(i.own_us == 2000.0 / LAYERS && i.library_us == 1000.0 / LAYERS);
    assert_false(sf_cuda_library_get(&d->base, 1, &i)); /* the bucket of 8 is below rows_min */
    assert_false(sf_cuda_library_get(&d->base, -1, &i));
    const sf_cuda_start s = sf_cuda_start_get(&d->base);
    assert_int_equal(s.library_version, 130001);
    assert_true(s.library_bytes > (size_t)3 * HIDDEN * HIDDEN * 2 * LAYERS);
    assert_string_equal(s.library_note, "");
    sf_cuda_shape_info shape;
    int served = 0;
    for (int k = 0; sf_cuda_shape_get(&d->base, k, &shape); k++) {
        if (shape.library == 0) continue;
        served++;
        assert_true(shape.cls == SF_CLASS_FAST && shape.rows == ROWS && shape.library == LAYERS &&
                    !shape.graph);
    }
    assert_int_equal(served, 3);
    end(d);
}

static void a_slower_library_keeps_no_copy(void **state) {
    (void)state;
    sf_cuda *without = make(&plan, (size_t)128 << 20);
    make_ready(without, &plan, &loaded);
    const int allocs = fake.allocs;
    without->base.ops->destroy(&without->base);
    sf_weights_destroy(loaded);
    sf_cuda *d = ready(1, 0.995); /* by a hair is not enough */
    sf_cuda_library_info i;
    assert_true(sf_cuda_library_get(&d->base, 0, &i) && !i.used);
    assert_int_equal(fake.allocs, allocs);
    assert_int_equal(sf_cuda_start_get(&d->base).library_bytes, 0);
    assert_int_equal(sf_cuda_start_get(&d->base).library_version, 0);
    const int before = fake_blas.products;
    run(d, SF_CLASS_FAST, 20);
    assert_int_equal(fake_blas.products, before);
    end(d);
}

/* Passes that may have fewer rows than the library serves, and others of the same number of rows. */
static void a_bucket_is_served_whole_or_not(void **state) {
    (void)state;
    static const struct {
        int rows, products;
    } passes[] = {{20, 0}, {128, 0}, {129, 0}, {200, 0}, {201, LAYERS}, {256, LAYERS}, {500, LAYERS}};
    sf_cuda *d = begin_wide(2, 1);
    sf_cuda_library_info i;
    by_library.rows_min = SF_PRODUCT_ROWS + 1;
    make_ready(d, &served_plan, &loaded);
    assert_true(sf_cuda_library_get(&d->base, 0, &i) && i.rows == 256 && i.used);
    assert_true(sf_cuda_library_get(&d->base, 1, &i) && i.rows == ROUTED && i.used);
    assert_false(sf_cuda_library_get(&d->base, 2, &i));
    for (size_t p = 0; p < sizeof passes / sizeof *passes; p++) {
        const int before = fake_blas.products;
        run(d, SF_CLASS_FAST, passes[p].rows);
        assert_int_equal(fake_blas.products - before, passes[p].products);
    }
    assert_string_equal(sf_cuda_start_get(&d->base).library_note, "");
    end(d);
}

static void no_bucket_of_the_library_s_is_told(void **state) {
    (void)state;
    sf_cuda *d = begin(2, 1);
    by_library.rows_min = 100;
    make_ready(d, &served_plan, &loaded);
    assert_string_equal(sf_cuda_start_get(&d->base).library_note,
                        "qkv: no row bucket lies at 100 rows and more");
    assert_int_equal(sf_cuda_start_get(&d->base).library_bytes, 0);
    run(d, SF_CLASS_FAST, 20);
    assert_int_equal(fake_blas.products, 0);
    end(d);
}

/* 0.985: an op's margin is 1 %, a pass's 2 %. */
static void what_a_graph_beats_is_not_kept(void **state) {
    (void)state;
    sf_cuda *without = make(&plan, (size_t)128 << 20);
    make_ready(without, &plan, &loaded);
    const int allocs = fake.allocs;
    without->base.ops->destroy(&without->base);
    sf_weights_destroy(loaded);
    sf_cuda *d = ready(1, 0.985);
    sf_cuda_library_info i;
    assert_true(sf_cuda_library_get(&d->base, 0, &i) && !i.used);
    assert_int_equal(fake.allocs, allocs);
    assert_int_equal(sf_cuda_start_get(&d->base).library_bytes, 0);
    assert_int_equal(sf_cuda_start_get(&d->base).library_version, 0);
    assert_string_equal(sf_cuda_start_get(&d->base).library_note, "");
    run(d, SF_CLASS_FAST, 20);
    assert_false(sf_cuda_counts_get(&d->base).library);
    end(d);
}

static void only_buckets_that_a_graph_beats_are_our_own(void **state) {
    (void)state;
    sf_cuda *d = begin_wide(1, 0.985);
    sf_cuda_library_info i;
    make_ready(d, &served_plan, &loaded);
    assert_true(sf_cuda_library_get(&d->base, 0, &i) && i.rows == 200 && !i.used);
    assert_true(sf_cuda_library_get(&d->base, 1, &i) && i.rows == 256 && !i.used);
    assert_true(sf_cuda_library_get(&d->base, 2, &i) && i.rows == ROUTED && i.used);
    assert_true(sf_cuda_start_get(&d->base).library_bytes > (size_t)3 * HIDDEN * HIDDEN * 2 * LAYERS);
    assert_int_equal(sf_cuda_start_get(&d->base).library_version, 130001);
    run(d, SF_CLASS_FAST, 256);
    assert_int_equal(sf_cuda_counts_get(&d->base).library, 0);
    run(d, SF_CLASS_FAST, 257);
    assert_int_equal(sf_cuda_counts_get(&d->base).library, LAYERS);
    end(d);
}

static void buffers_are_left_as_they_were(void **state) {
    (void)state;
    sf_cuda *d = begin(2, 1);
    make_ready(d, &served_plan, &loaded);
    const char *h = (const char *)(uintptr_t)d->buf[SF_BUF_H];
    for (int i = 0; i < ROWS * HIDDEN * 2; i++)
        assert_int_equal(h[i], 0);
    end(d);
}

static void without_the_library_the_engine_runs(void **state) {
    (void)state;
    sf_cuda *d = begin(2, 1);
    own_ops[ROPE].library = &by_library;
    fake_blas.create = 1;
    make_ready(d, &served_plan, &loaded);
    const sf_cuda_start s = sf_cuda_start_get(&d->base);
    assert_ptr_equal(
        s.library_note,
        strstr(s.library_note, "qkv, rope: cublasLtCreate: CUBLAS_STATUS_SOMETHING (1)")); /* its beginning */
    run(d, SF_CLASS_FAST, 20);
    assert_int_equal(fake_blas.products, 0);
    end(d);
}

static void a_copy_that_does_not_fit_is_told_and_left(void **state) {
    (void)state;
    sf_cuda *d = ready(2, 1);
    const size_t all = fake.taken;
    end(d);
    d = begin(2, 1);
    fake.memory = all - 1;
    make_ready(d, &served_plan, &loaded);
    const sf_cuda_start s = sf_cuda_start_get(&d->base);
    assert_non_null(strstr(s.library_note, "cuMemAlloc of a library's w"));
    assert_int_equal(s.library_version, 0);
    run(d, SF_CLASS_FAST, 20);
    assert_int_equal(fake_blas.products, 0);
    end(d);
}

static void a_product_that_the_library_does_not_know_is_told(void **state) {
    (void)state;
    sf_cuda *d = begin(2, 1);
    fake_blas.unknown = ROWS;
    make_ready(d, &served_plan, &loaded);
    assert_non_null(strstr(sf_cuda_start_get(&d->base).library_note, "cuBLASLt knows no product"));
    run(d, SF_CLASS_FAST, 20);
    assert_int_equal(fake_blas.products, 0);
    end(d);
}

/* rope plays a second product here, with qkv's weight. */
static void what_failed_is_told_beside_what_is_served(void **state) {
    (void)state;
    sf_cuda *d = ready(2, 1);
    const size_t all = fake.taken;
    end(d);
    d = begin(2, 1);
    own_ops[ROPE].library = &by_library;
    own_ops[ROPE].weight = own_ops[QKV].weight;
    fake.memory = all;
    make_ready(d, &served_plan, &loaded);
    const sf_cuda_start s = sf_cuda_start_get(&d->base);
    assert_int_equal(s.library_version, 130001);
    assert_ptr_equal(s.library_note, strstr(s.library_note, "rope: cuMemAlloc of a library's weights"));
    run(d, SF_CLASS_FAST, 20);
    assert_int_equal(sf_cuda_counts_get(&d->base).library, LAYERS);
    end(d);
}

static void an_op_is_timed_as_it_is_launched(void **state) {
    (void)state;
    sf_cuda *d = ready(2, 1);
    made m;
    sf_err err = {.msg = ""};
    sf_cuda_op_time t;
    pass_of(&m, SF_CLASS_FAST, 20, 1);
    assert_int_equal(sf_cuda_op_time_get(&d->base, &m.pass, QKV, 3, &t, &err), SF_OK);
    assert_string_equal(t.kernel, "cublaslt");
    sf_cuda_library_use(&d->base, false);
    assert_int_equal(sf_cuda_op_time_get(&d->base, &m.pass, QKV, 3, &t, &err), SF_OK);
    assert_string_equal(t.kernel, "k");
    end(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_faster_library_serves_the_fast_class),
        cmocka_unit_test(a_product_may_be_finished_by_a_kernel),
        cmocka_unit_test(pinned_passes_and_few_rows_are_our_own),
        cmocka_unit_test(what_was_measured_is_told),
        cmocka_unit_test(a_slower_library_keeps_no_copy),
        cmocka_unit_test(a_bucket_is_served_whole_or_not),
        cmocka_unit_test(no_bucket_of_the_library_s_is_told),
        cmocka_unit_test(what_a_graph_beats_is_not_kept),
        cmocka_unit_test(only_buckets_that_a_graph_beats_are_our_own),
        cmocka_unit_test(buffers_are_left_as_they_were),
        cmocka_unit_test(without_the_library_the_engine_runs),
        cmocka_unit_test(a_copy_that_does_not_fit_is_told_and_left),
        cmocka_unit_test(a_product_that_the_library_does_not_know_is_told),
        cmocka_unit_test(what_failed_is_told_beside_what_is_served),
        cmocka_unit_test(an_op_is_timed_as_it_is_launched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
