/* The CUDA device over a driver whose GPU is host memory: shapes, flights, weights, what runs out. */
#include "cuda/tiny_device.h"

static sf_cuda *device; /* the tests' own */
static sf_weights *loaded;

static int open_device(void **state) {
    (void)state;
    device = make(&plan, (size_t)64 << 20);
    make_ready(device, &plan, &loaded);
    return 0;
}

static int close_device(void **state) {
    (void)state;
    device->base.ops->destroy(&device->base);
    sf_weights_destroy(loaded);
    no_leaks();
    return 0;
}

/* ---- passes ---- */

static sf_code launch(const made *m, sf_err *err) {
    return device->base.ops->launch(&device->base, &m->pass, err);
}
static sf_code sync_device(sf_err *err) {
    double us;
    return device->base.ops->sync(&device->base, &us, err);
}

/* Launches of one pass, run one by one. */
static int eager_launches(int rows, int logits) {
    made m;
    sf_err err;
    pass_of(&m, SF_CLASS_PINNED, rows, logits);
    sf_cuda_force_eager(&device->base, true);
    const int before = fake.launches;
    assert_int_equal(launch(&m, &err), SF_OK);
    assert_int_equal(sync_device(&err), SF_OK);
    sf_cuda_force_eager(&device->base, false);
    return fake.launches - before;
}

static void a_pass_is_the_plan_s_ops_once_a_layer(void **state) {
    (void)state;
    assert_int_equal(eager_launches(3, 3), 1 + LAYERS * LAYER_OPS + HEAD_OPS);
    assert_int_equal(eager_launches(3, 0), 1 + LAYERS * LAYER_OPS);
    assert_int_equal(eager_launches(9, 1), 1 + LAYERS * (LAYER_OPS + 1) + HEAD_OPS); /* the bucket of 128 */
}

static void a_steady_pass_is_one_launch_and_takes_no_memory(void **state) {
    (void)state;
    made m;
    sf_err err;
    pass_of(&m, SF_CLASS_FAST, 4, 4);
    const int allocs = fake.allocs, host_allocs = fake.host_allocs, launches = fake.launches;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(launch(&m, &err), SF_OK);
        assert_int_equal(sync_device(&err), SF_OK);
    }
    const sf_cuda_counts c = sf_cuda_counts_get(&device->base);
    assert_int_equal(c.passes, 5);
    assert_int_equal(c.launches, 5);
    assert_int_equal(c.copies, 10);
    assert_int_equal(c.waits, 5);
    assert_int_equal(c.allocations, 0);
    assert_int_equal(fake.allocs + fake.host_allocs, allocs + host_allocs);
    assert_int_equal(fake.launches, launches);
}

static void fewer_rows_get_fewer_blocks(void **state) {
    (void)state;
    (void)eager_launches(2, 2);
    assert_int_equal(fake.grids[fake.launches + fake.captured - 1], 64); /* 8 a row of the bucket of 8 */
    (void)eager_launches(16, 16);
    assert_int_equal(fake.grids[fake.launches + fake.captured - 1], 100); /* the kernel's own most */
}

static void weights_lie_where_the_kernels_look(void **state) {
    (void)state;
    const sf_cuda_shape *s = sf_cuda_shape_find(device, SF_CLASS_PINNED, 8, 8);
    assert_non_null(s);
    for (int layer = 0; layer < LAYERS; layer++) {
        const sf_cuda_args *a = &s->steps[1 + layer * LAYER_OPS + 1].args;
        assert_ptr_equal(a->weight, device->weights + sf_weights_offset(loaded, 2, layer));
        assert_ptr_equal(a->kv, device->kv + device->kv_layer_bytes * (size_t)layer);
        assert_ptr_equal(a->extra, device->maps[SF_BUF_H]);
    }
    float norm;
    memcpy(&norm, s->steps[1].args.weight, sizeof norm); /* host memory, here */
    assert_true(norm > 0.5f && norm < 1.5f);             /* norms are 1 + N(0, 0.01) */
}

static void random_weights_are_drawn_on_the_gpu_as_on_the_host(void **state) {
    (void)state;
    sf_weights *host = NULL;
    sf_pool *pool = NULL;
    sf_err err = {.msg = ""};
    size_t matrices = 0;
    assert_int_equal(sf_pool_create(1, &pool, &err), SF_OK);
    assert_int_equal(sf_weights_random(&plan, 7, pool, false, NULL, &host, &err), SF_OK);
    sf_pool_destroy(pool);
    for (int slot = 0; slot < plan.n_weights; slot++) {
        const sf_weight_desc *w = &plan.weights[slot];
        const size_t steps = (size_t)sf_wmma_steps(HIDDEN); /* of 16 columns, padded */
        const size_t bytes = w->format == SF_W_F32 ? sizeof(float) * HIDDEN : (size_t)w->n * steps * 16 * 2;
        for (int layer = 0; layer < (w->per_layer ? LAYERS : 1); layer++) {
            const size_t at = sf_weights_offset(loaded, slot, layer);
            assert_memory_equal((const char *)(uintptr_t)device->weights + at,
                                sf_weights_get(host, slot, layer), bytes);
            matrices += w->format == SF_W_F32 ? 0 : bytes;
        }
    }
    assert_int_equal(fake.drawn, matrices);
    assert_string_equal(sf_weights_hash(loaded), sf_weights_hash(host));
    sf_weights_destroy(host);
}

static void two_passes_fly_and_come_back_in_order(void **state) {
    (void)state;
    made a, b, c;
    sf_err err;
    pass_of(&a, SF_CLASS_FAST, 2, 2);
    pass_of(&b, SF_CLASS_FAST, 2, 2);
    pass_of(&c, SF_CLASS_FAST, 2, 2);
    b.pass.n_fed = 2;
    b.tokens[0] = -1, b.tokens[1] = -2;
    sf_row_out *results = (sf_row_out *)(uintptr_t)device->results;
    results[1].token = 11;
    assert_int_equal(launch(&a, &err), SF_OK);
    results[1].token = 12;
    assert_int_equal(launch(&b, &err), SF_OK);
    assert_fails(launch(&c, &err), &err, SF_INVALID, "2 passes are in flight");
    assert_int_equal(sync_device(&err), SF_OK);
    assert_int_equal(a.out[1].token, 11);
    assert_int_equal(b.out[1].token, 0);
    assert_int_equal(launch(&c, &err), SF_OK);
    assert_int_equal(sync_device(&err), SF_OK);
    assert_int_equal(b.out[1].token, 12);
    assert_int_equal(sync_device(&err), SF_OK);
}

static void a_pass_is_fed_by_the_one_in_flight_alone(void **state) {
    (void)state;
    made a, b;
    sf_err err;
    pass_of(&a, SF_CLASS_FAST, 3, 3);
    pass_of(&b, SF_CLASS_FAST, 2, 2);
    b.tokens[1] = -2;
    b.pass.n_fed = 2;
    assert_fails(launch(&b, &err), &err, SF_INVALID, "the one in flight has 0");
    assert_int_equal(launch(&a, &err), SF_OK);
    assert_fails(launch(&b, &err), &err, SF_INVALID, "the one in flight has 3");
    b.pass.n_fed = 3;
    b.tokens[1] = -4;
    assert_fails(launch(&b, &err), &err, SF_INVALID, "token 1 is -4, expected -3..");
    b.tokens[1] = -3;
    assert_int_equal(launch(&b, &err), SF_OK);
    assert_int_equal(sync_device(&err), SF_OK);
    assert_int_equal(sync_device(&err), SF_OK);
}

static void a_lost_gpu_is_told_and_stays_lost(void **state) {
    (void)state;
    made m;
    sf_err err;
    pass_of(&m, SF_CLASS_FAST, 1, 1);
    assert_int_equal(launch(&m, &err), SF_OK);
    fake.wait = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_fails(sync_device(&err), &err, SF_DEVICE, "the GPU is lost to this process");
    assert_int_equal(launch(&m, &err), SF_OK); /* queued by a driver that does not know yet */
    assert_fails(sync_device(&err), &err, SF_DEVICE, "the GPU is lost since cuEventSynchronize of a pass");
}

/* ---- start ---- */

static void the_faster_way_to_launch_is_kept(void **state) {
    (void)state;
    sf_cuda_shape_info i;
    int timed = 0;
    for (int k = 0; sf_cuda_shape_get(&device->base, k, &i); k++) {
        assert_true(i.graph);
        timed += i.timed;
        if (i.timed) assert_true(i.graph_us == 1000 && i.eager_us == 2000);
    }
    assert_true(timed == 2 * SF_CLASS_COUNT); /* 8 rows with 8 logit rows, 128 with 16 */
    assert_int_equal(device->n_shapes, SF_CLASS_COUNT * (2 + 3));
}

static void what_does_not_fit_is_told_with_its_size(void **state) {
    (void)state;
    sf_err err;
    sf_cuda *d = make(&plan, (size_t)1 << 19);
    assert_fails(sf_cuda_memory_open(d, &err), &err, SF_NOMEM, "GPU Fake has");
    assert_non_null(strstr(err.msg, "--kv-pages"));
    d->base.ops->destroy(&d->base);
    assert_int_equal(fake.allocs + fake.host_allocs + fake.events, 0);
}

static void weights_outside_the_memory_taken_are_refused(void **state) {
    (void)state;
    sf_err err;
    char data[64] = {0};
    const sf_weights_sink sink = sf_cuda_sink(&device->base);
    const size_t end = device->start.weight_bytes;
    assert_fails(sink.put(sink.ctx, 0, end, data, 64, &err), &err, SF_INVALID, "of weights at");
    assert_fails(sink.put(sink.ctx, 0, end - 32, data, 64, &err), &err, SF_INVALID, "of weights at");
    assert_fails(sink.put(sink.ctx, 2, 0, data, 64, &err), &err, SF_INVALID, "by part 2");
    assert_fails(sink.put(sink.ctx, -1, 0, data, 64, &err), &err, SF_INVALID, "by part -1");
    const sf_wdraw what = {.rows = 16, .k = 64, .tile = 1};
    const void *drawn = NULL;
    assert_fails(sink.draw(sink.ctx, 0, end, &what, 0, 512, &drawn, &err), &err, SF_INVALID, "of weights at");
    assert_fails(sink.draw(sink.ctx, 2, 0, &what, 0, 512, &drawn, &err), &err, SF_INVALID, "by part 2");
    assert_fails(sink.draw(sink.ctx, 0, 0, &what, 0, (size_t)1 << 40, &drawn, &err), &err, SF_INVALID,
                 "to draw at once");
    assert_null(drawn);
}

#define ON_DEVICE(test) cmocka_unit_test_setup_teardown(test, open_device, close_device)
int main(void) {
    const struct CMUnitTest tests[] = {
        ON_DEVICE(a_pass_is_the_plan_s_ops_once_a_layer),
        ON_DEVICE(a_steady_pass_is_one_launch_and_takes_no_memory),
        ON_DEVICE(fewer_rows_get_fewer_blocks),
        ON_DEVICE(weights_lie_where_the_kernels_look),
        ON_DEVICE(random_weights_are_drawn_on_the_gpu_as_on_the_host),
        ON_DEVICE(two_passes_fly_and_come_back_in_order),
        ON_DEVICE(a_pass_is_fed_by_the_one_in_flight_alone),
        ON_DEVICE(a_lost_gpu_is_told_and_stays_lost),
        ON_DEVICE(the_faster_way_to_launch_is_kept),
        ON_DEVICE(weights_outside_the_memory_taken_are_refused),
        cmocka_unit_test(what_does_not_fit_is_told_with_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
