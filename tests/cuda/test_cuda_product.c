/* A product by cuBLASLt, over one that records. */
#include "cuda/cuda_test.h"
#include "cuda/fake_cublaslt.h"

#include "device/cuda/product.h"

static sf_cublaslt lt;
static const sf_product_config wide = {.n = 96, .k = 64, .rows_min = 129, .rows_max = 1000};

static int setup(void **state) {
    (void)state;
    fake_cublaslt_init(&lt);
    return 0;
}

static void assert_nothing_is_left(void) {
    assert_int_equal(fake_blas.descs + fake_blas.layouts + fake_blas.preferences, 0);
}

static sf_product opened(const sf_product_config *cfg) {
    sf_product p = {0};
    sf_err err = {.msg = ""};
    assert_int_equal(sf_product_open(&lt, NULL, cfg, &p, &err), SF_OK);
    return p;
}

static void each_row_count_is_looked_up_once(void **state) {
    (void)state;
    static const uint64_t rows[] = {256, 384, 512, 640, 768, 896, 1000};
    sf_product p = opened(&wide);
    assert_int_equal(fake_blas.lookups, 7);
    assert_memory_equal(fake_blas.looked_up, rows, sizeof rows);
    sf_product_close(&p);
    sf_product_close(&p);
    assert_nothing_is_left();
}

static void rows_are_rounded_up_to_what_was_looked_up(void **state) {
    (void)state;
    static const int asked[] = {129, 256, 257, 896, 897, 1000}, made[] = {256, 256, 384, 896, 1000, 1000};
    static const float in, out, weight;
    const sf_cuda_args args = {.in = &in, .out = (void *)(uintptr_t)&out, .weight = &weight};
    const CUstream stream = (CUstream)(uintptr_t)&lt;
    sf_product p = opened(&wide);
    sf_err err = {.msg = ""};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        assert_int_equal(sf_product_run(&p, asked[i], &args, stream, &err), SF_OK);
        assert_int_equal(fake_blas.rows, made[i]);
        assert_int_equal(fake_blas.algo, made[i]);
    }
    assert_int_equal(fake_blas.lookups, 7);
    assert_true(fake_blas.n == 96 && fake_blas.k == 64);
    assert_true(fake_blas.in_type == CUDA_R_16BF && fake_blas.out_type == CUDA_R_32F);
    assert_true(fake_blas.alpha == 1 && fake_blas.beta == 0 && fake_blas.epilogue == 0);
    assert_ptr_equal(fake_blas.in, &in);
    assert_ptr_equal(fake_blas.out, &out);
    assert_ptr_equal(fake_blas.weight, &weight);
    assert_ptr_equal(fake_blas.stream, stream);
    assert_fails(sf_product_run(&p, 128, &args, stream, &err), &err, SF_INVALID,
                 "128 rows, expected 129..1000");
    assert_fails(sf_product_run(&p, 1001, &args, stream, &err), &err, SF_INVALID, "1001 rows");
    assert_fails(sf_product_run(&p, 1025, &args, stream, &err), &err, SF_INVALID, "1025 rows");
    sf_product_close(&p);
}

static void a_sum_is_added_to_and_a_bias_is_the_layer_s(void **state) {
    (void)state;
    static const float biases[2];
    sf_product_config cfg = wide;
    sf_err err = {.msg = ""};
    cfg.adds = true;
    sf_product p = opened(&cfg);
    assert_int_equal(sf_product_run(&p, 200, &(sf_cuda_args){0}, NULL, &err), SF_OK);
    assert_true(fake_blas.beta == 1);
    sf_product_close(&p);
    cfg = wide;
    cfg.has_bias = true;
    p = opened(&cfg);
    for (int layer = 0; layer < 2; layer++) {
        assert_int_equal(sf_product_run(&p, 200, &(sf_cuda_args){.bias = biases + layer}, NULL, &err), SF_OK);
        assert_int_equal(fake_blas.epilogue, CUBLASLT_EPILOGUE_BIAS);
        assert_ptr_equal(fake_blas.bias, biases + layer);
    }
    sf_product_close(&p);
    assert_nothing_is_left();
}

static void what_the_library_does_not_know_is_told(void **state) {
    (void)state;
    sf_product p = {0};
    sf_err err;
    fake_blas.unknown = 640;
    assert_fails(sf_product_open(&lt, NULL, &wide, &p, &err), &err, SF_UNSUPPORTED,
                 "cuBLASLt knows no product [640, 64] x [96, 64]^T");
    assert_null(p.shapes);
    assert_nothing_is_left();
}

static void a_failed_product_names_the_call(void **state) {
    (void)state;
    sf_product p = opened(&wide);
    sf_err err;
    fake_blas.matmul = 13;
    assert_fails(sf_product_run(&p, 200, &(sf_cuda_args){0}, NULL, &err), &err, SF_DEVICE,
                 "cublasLtMatmul: CUBLAS_STATUS_SOMETHING (13)");
    sf_product_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_row_count_is_looked_up_once, setup),
        cmocka_unit_test_setup(rows_are_rounded_up_to_what_was_looked_up, setup),
        cmocka_unit_test_setup(a_sum_is_added_to_and_a_bias_is_the_layer_s, setup),
        cmocka_unit_test_setup(what_the_library_does_not_know_is_told, setup),
        cmocka_unit_test_setup(a_failed_product_names_the_call, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
