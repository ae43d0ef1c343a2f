/* The n-th allocation fails, for every n: building kernels through the cache says so, or does without the
 * cache, and leaks nothing (a sanitizer's word). The compiler is made up: its table of functions is ours. */
#include "cuda/cuda_test.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/hash.h"
#include "device/cuda/build.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static atomic_int countdown = -1; /* allocations until the one that fails; negative: none fails */
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

/* ---- a compiler that makes the same of everything ---- */

static const char code[] = "made-up code",
                  report[] = "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n";

static const char *error_text(int r) {
    return r == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR";
}
static int create(sf_nvrtc_handle *p, const char *text, const char *name, int n, const char *const *headers,
                  const char *const *names) {
    (void)text, (void)name, (void)n, (void)headers, (void)names;
    *p = (sf_nvrtc_handle)(uintptr_t)code;
    return 0;
}
static int destroy(sf_nvrtc_handle *p) {
    *p = NULL;
    return 0;
}
static int compile(sf_nvrtc_handle p, int n, const char *const *options) {
    (void)p, (void)n, (void)options;
    return 0;
}
static int code_size(sf_nvrtc_handle p, size_t *size) {
    (void)p;
    *size = sizeof code;
    return 0;
}
static int code_get(sf_nvrtc_handle p, char *to) {
    (void)p;
    memcpy(to, code, sizeof code);
    return 0;
}
static int log_size(sf_nvrtc_handle p, size_t *size) {
    (void)p;
    *size = sizeof report;
    return 0;
}
static int log_get(sf_nvrtc_handle p, char *to) {
    (void)p;
    memcpy(to, report, sizeof report);
    return 0;
}

static const sf_nvrtc compiler = {.nvrtcGetErrorString = error_text,
                                  .nvrtcCreateProgram = create,
                                  .nvrtcDestroyProgram = destroy,
                                  .nvrtcCompileProgram = compile,
                                  .nvrtcGetCUBINSize = code_size,
                                  .nvrtcGetCUBIN = code_get,
                                  .nvrtcGetProgramLogSize = log_size,
                                  .nvrtcGetProgramLog = log_get,
                                  .major = 13,
                                  .build = "made up"};

/* One build of two kernels over a cache directory; the first of them may be there already. */
static sf_code build(const char *dir, sf_err *err) {
    static const sf_cuda_header headers[] = {{"a.cuh", "int a;"}};
    static const sf_cuda_source sources[] = {{"k", "k.cu", NULL, "int k;"}, {"l", "l.cu", NULL, "int l;"}};
    sf_cubin out[2] = {0};
    sf_cubin_cache *cache = NULL;
    SF_TRY(sf_cubin_cache_create(dir, &cache, err));
    const sf_cuda_build b = {&compiler, cache, "sm_90a", headers, 1, 2};
    const sf_code rc = sf_cuda_build_all(&b, sources, 2, out, err);
    for (int i = 0; i < 2; i++) {
        if (rc == SF_OK) assert_memory_equal(out[i].code.data, code, sizeof code);
        sf_cubin_fini(out + i);
    }
    sf_cubin_cache_destroy(cache);
    return rc;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    char dir[] = "/tmp/sf_nomem_XXXXXX", line[64], warm_up[65];
    int refused = 0;
    assert_non_null(mkdtemp(dir));
    assert_true(sf_sha256_of("", 0, warm_up)); /* libcrypto's own beginnings */
    snprintf(line, sizeof line, "rm -rf %s/*", dir);
    for (int n = 0;; n++) {
        sf_err err = {0};
        if (n % 2 == 0)
            assert_int_equal(system(line), 0); /* with an empty cache, and with what the run before left */
        atomic_store(&failed, false);
        atomic_store(&countdown, n / 2);
        const sf_code rc = build(dir, &err);
        atomic_store(&countdown, -1);
        if (rc == SF_NOMEM && err.msg[0]) refused++;
        assert_true(rc == SF_OK || (rc == SF_NOMEM && err.msg[0]));
        if (!atomic_load(&failed)) {
            assert_int_equal(rc, SF_OK);
            if (n % 2 == 0) break; /* the longer way */
        }
        assert_true(n < 10000);
    }
    assert_true(refused > 10);
    snprintf(line, sizeof line, "rm -r %s", dir);
    assert_int_equal(system(line), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
