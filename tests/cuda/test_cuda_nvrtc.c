/* The real NVRTC; every test is skipped where it is not on the machine. */
#include "cuda/cuda_test.h"

#include "device/cuda/build.h"
#include "device/cuda/draw.h"
#include "device/cuda/nvrtc.h"

static sf_nvrtc nvrtc;
static const sf_cuda_header headers[] = {
    {"part/twice.cuh", "#include \"part/base.cuh\"\n"},
    {"part/base.cuh", "__device__ int twice(int x) { return 2 * x; }\n"}};

static int open_nvrtc(void **state) {
    (void)state;
    sf_err err;
    if (sf_nvrtc_open(&nvrtc, &err) != SF_OK) printf("skipped: %s\n", err.msg);
    return 0;
}

static int close_nvrtc(void **state) {
    (void)state;
    sf_nvrtc_close(&nvrtc);
    return 0;
}

static sf_code compile(const char *text, sf_cubin *out, sf_err *err) {
    static const char *const file = "kernels/k.cu", *const template = "templates/cuda/t.cu";
    const sf_cuda_source source = {"k", file, template, text};
    if (!nvrtc.lib) skip();
    return sf_nvrtc_compile(&nvrtc, "sm_90a", &source, headers, 2, out, err);
}

static void a_kernel_compiles_with_its_headers(void **state) {
    (void)state;
    sf_cubin a = {0}, b = {0};
    sf_err err;
    const char *text =
        "#include \"part/twice.cuh\"\n"
        "extern \"C\" __global__ void k(int *o) { __shared__ int s[8]; s[threadIdx.x & 7] = o[1]; "
        "__syncthreads(); *o = twice(s[o[2] & 7]); }\n";
    assert_int_equal(compile(text, &a, &err), SF_OK);
    assert_int_equal(compile(text, &b, &err), SF_OK);
    assert_int_equal(a.report.n_entries, 1);
    assert_string_equal(a.report.entries[0].name, "k");
    assert_true(a.report.entries[0].registers > 0);
    assert_int_equal(a.report.entries[0].shared, 32);
    assert_memory_equal(a.code.data, "\177ELF", 4);
    assert_int_equal(a.code.len, b.code.len);
    assert_memory_equal(a.code.data, b.code.data, a.code.len);
    assert_true(a.seconds > 0 && !a.cached);
    sf_cubin_fini(&a);
    sf_cubin_fini(&b);
}

static void the_kernel_that_draws_weights_compiles(void **state) {
    (void)state;
    sf_cubin c = {0};
    sf_err err = {.msg = ""};
    if (!nvrtc.lib) skip();
    if (sf_nvrtc_compile(&nvrtc, "sm_90a", &sf_cuda_draw_source, sf_cuda_draw_headers, SF_CUDA_DRAW_HEADERS,
                         &c, &err) != SF_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(sf_cuda_report_check(&c.report, "draw", &err), SF_OK);
    assert_string_equal(c.report.entries[0].name, "draw");
    sf_cubin_fini(&c);
}

static void the_build_is_told_exactly(void **state) {
    (void)state;
    char minor[32];
    if (!nvrtc.lib) skip();
    snprintf(minor, sizeof minor, "%d.%d, V%d.%d.", nvrtc.major, nvrtc.minor, nvrtc.major, nvrtc.minor);
    assert_int_equal(strncmp(nvrtc.build, minor, strlen(minor)), 0);
    assert_non_null(strstr(nvrtc.build, ", CL-"));
}

static void an_error_has_its_place_in_the_source(void **state) {
    (void)state;
    sf_cubin out = {0};
    sf_err err;
    assert_fails(
        compile("extern \"C\" __global__ void k(int *o) {\n *o = nosuch; \n missing(1); }", &out, &err), &err,
        SF_FORMAT,
        "kernel k does not compile for sm_90a (NVRTC_ERROR_COMPILATION): identifier \"nosuch\" is undefined; "
        "kernels/k.cu(3): error: identifier \"missing\" is undefined");
    assert_string_equal(err.user.file, "kernels/k.cu");
    assert_int_equal(err.user.line, 2);
    assert_null(out.code.data);
}

static void an_error_has_its_place_in_the_template(void **state) {
    (void)state;
    sf_cubin out = {0};
    sf_err err;
    assert_fails(compile("#line 40 \"templates/cuda/t.cu\"\nint x = ;\n", &out, &err), &err, SF_FORMAT,
                 "expected an expression");
    assert_string_equal(err.user.file, "templates/cuda/t.cu");
    assert_int_equal(err.user.line, 40);
}

static void an_error_in_a_header_names_the_header(void **state) {
    (void)state;
    static const sf_cuda_header bad[] = {{"part/bad.cuh", "\n\nint x = nosuch;\n"}};
    const sf_cuda_source source = {"k", "k.cu", NULL, "#include \"part/bad.cuh\"\n"};
    sf_cubin out = {0};
    sf_err err;
    if (!nvrtc.lib) skip();
    assert_fails(sf_nvrtc_compile(&nvrtc, "sm_90a", &source, bad, 1, &out, &err), &err, SF_FORMAT, "nosuch");
    assert_string_equal(err.user.file, "part/bad.cuh");
    assert_int_equal(err.user.line, 3);
}

static void errors_without_a_place_are_told(void **state) {
    (void)state;
    sf_cubin out = {0};
    sf_err err;
    assert_fails(compile("#include \"nosuch.cuh\"\n", &out, &err), &err, SF_FORMAT, "nosuch.cuh");
    assert_int_equal(err.user.line, 1);
    assert_fails(compile("extern \"C\" __global__ void k() { asm volatile(\"foo.bar;\"); }", &out, &err),
                 &err, SF_FORMAT, "ptxas");
    assert_null(err.user.file);
    assert_fails(compile("extern \"C\" __global__ void k(int *o) { __shared__ int s[100000]; s[*o] = 1; "
                         "__syncthreads(); *o = s[3]; }",
                         &out, &err),
                 &err, SF_FORMAT, "400000 bytes smem");
    const sf_cuda_source source = {"k", "k.cu", NULL, ""};
    assert_fails(sf_nvrtc_compile(&nvrtc, "sm_1", &source, NULL, 0, &out, &err), &err, SF_FORMAT,
                 "does not compile for sm_1 (NVRTC_ERROR_INVALID_OPTION)");
}

static void a_list_is_built_in_parallel_and_its_first_failure_told(void **state) {
    (void)state;
    enum { N = 6 };
    sf_cuda_source sources[N];
    char names[N][16];
    sf_cubin out[N] = {0};
    sf_err err;
    if (!nvrtc.lib) skip();
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        sources[i] =
            (sf_cuda_source){names[i], names[i], NULL, "extern \"C\" __global__ void k(int *o) { *o = 1; }"};
    }
    const sf_cuda_build b = {&nvrtc, NULL, "sm_90a", headers, 2, 3};
    assert_int_equal(sf_cuda_build_all(&b, sources, N, out, &err), SF_OK);
    for (int i = 0; i < N; i++) {
        assert_int_equal(out[i].report.n_entries, 1);
        sf_cubin_fini(out + i);
    }
    sources[2].text = "int x = nosuch;";
    sources[4].text = "int y = nosuch;";
    assert_fails(sf_cuda_build_all(&b, sources, N, out, &err), &err, SF_FORMAT, "kernel k2 does not compile");
    assert_ptr_equal(err.user.file, names[2]);
    for (int i = 0; i < N; i++)
        sf_cubin_fini(out + i);
    assert_int_equal(sf_cuda_build_all(&b, sources, 0, out, &err), SF_OK);
}

static void a_kernel_that_spills_is_refused(void **state) {
    (void)state;
    const sf_cuda_source source = {
        "greedy", "greedy.cu", NULL,
        "extern \"C\" __global__ void __launch_bounds__(1024, 2) k(float *o) { float v[64];\n"
        "for (int j = 0; j < 64; j++) v[j] = o[j * 1024 + threadIdx.x]; __syncthreads();\n"
        "for (int j = 0; j < 64; j++) for (int i = 0; i < 64; i++) v[j] = v[j] * v[i];\n"
        "for (int j = 0; j < 64; j++) o[j * 1024 + threadIdx.x] = v[j]; }"};
    sf_cubin out = {0};
    sf_err err;
    if (!nvrtc.lib) skip();
    const sf_cuda_build b = {&nvrtc, NULL, "sm_90a", NULL, 0, 1};
    assert_fails(sf_cuda_build_all(&b, &source, 1, &out, &err), &err, SF_UNSUPPORTED,
                 "kernel greedy spills registers");
    sf_cubin_fini(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_compiles_with_its_headers),
        cmocka_unit_test(the_kernel_that_draws_weights_compiles),
        cmocka_unit_test(the_build_is_told_exactly),
        cmocka_unit_test(an_error_has_its_place_in_the_source),
        cmocka_unit_test(an_error_has_its_place_in_the_template),
        cmocka_unit_test(an_error_in_a_header_names_the_header),
        cmocka_unit_test(errors_without_a_place_are_told),
        cmocka_unit_test(a_list_is_built_in_parallel_and_its_first_failure_told),
        cmocka_unit_test(a_kernel_that_spills_is_refused),
    };
    return cmocka_run_group_tests(tests, open_nvrtc, close_nvrtc);
}
