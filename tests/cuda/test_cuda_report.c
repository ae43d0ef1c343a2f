#include "cuda/cuda_test.h"

#include "device/cuda/report.h"

static void registers_and_shared_memory_are_read(void **state) {
    (void)state;
    sf_cuda_report r;
    sf_err err;
    sf_cuda_report_parse(
        &r, "ptxas info    : 20 bytes gmem\n"
            "ptxas info    : Compiling entry function 'rms' for 'sm_90a'\n"
            "ptxas info    : Function properties for rms\n"
            "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
            "ptxas info    : Used 38 registers, used 2 barriers, 32 bytes smem, 16 bytes cmem[4]\n"
            "ptxas info    : Compile time = 44.741 ms\n");
    assert_int_equal(r.n_entries, 1);
    const sf_cuda_entry *e = r.entries;
    assert_string_equal(e->name, "rms");
    assert_int_equal(e->registers, 38);
    assert_int_equal(e->barriers, 2);
    assert_int_equal(e->shared, 32);
    assert_int_equal(e->stack + e->spill_stores + e->spill_loads + r.notes + r.warnings, 0);
    assert_int_equal(sf_cuda_report_check(&r, "rms", &err), SF_OK);
}

static void spills_and_local_memory_are_refused(void **state) {
    (void)state;
    sf_cuda_report r;
    sf_err err;
    sf_cuda_report_parse(
        &r, "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
            "ptxas         .     1024 bytes stack frame, 804 bytes spill stores, 808 bytes spill loads\n"
            "ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes cumulative stack size");
    assert_int_equal(r.entries[0].stack, 1024);
    assert_fails(sf_cuda_report_check(&r, "gemm_x", &err), &err, SF_UNSUPPORTED,
                 "kernel gemm_x spills registers (804 bytes stored, 808 loaded)");
    r.entries[0].spill_stores = r.entries[0].spill_loads = 0;
    assert_fails(sf_cuda_report_check(&r, "gemm_x", &err), &err, SF_UNSUPPORTED,
                 "1024 bytes of local memory");
}

static void a_wgmma_note_is_refused(void **state) {
    (void)state;
    sf_cuda_report r;
    sf_err err;
    sf_cuda_report_parse(
        &r, "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
            "serialized due to x in function 'k'\n"
            "ptxas info    : (C7519) another\n"
            "ptxas info    : (C7400) none of these\n"
            "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n");
    assert_int_equal(r.notes, 2);
    assert_fails(sf_cuda_report_check(&r, "k", &err), &err, SF_UNSUPPORTED, "ptxas says (C7510) Potential");
}

static void every_kernel_of_a_source_is_listed(void **state) {
    (void)state;
    char log[4096] = "";
    sf_cuda_report r;
    for (int i = 0; i < SF_CUDA_ENTRIES_MAX + 2; i++) {
        const size_t used = strlen(log);
        snprintf(log + used, sizeof log - used,
                 "ptxas info    : Compiling entry function 'k%d' for 'sm_90a'\nptxas info    : Used %d "
                 "registers\n",
                 i, 10 + i);
    }
    sf_cuda_report_parse(&r, log);
    assert_int_equal(r.n_entries, SF_CUDA_ENTRIES_MAX);
    assert_string_equal(r.entries[1].name, "k1");
    assert_int_equal(r.entries[1].registers, 11);
    assert_int_equal(r.entries[SF_CUDA_ENTRIES_MAX - 1].registers, 10 + SF_CUDA_ENTRIES_MAX + 1);
}

static void warnings_are_counted(void **state) {
    (void)state;
    sf_cuda_report r;
    sf_cuda_report_parse(&r, "n(1): warning #177-D: variable \"unused\" was declared but never referenced\n");
    assert_int_equal(r.warnings, 1);
    assert_non_null(strstr(r.warning, "unused"));
}

static void odd_logs_are_harmless(void **state) {
    (void)state;
    sf_cuda_report r;
    sf_err err;
    char line[3000];
    sf_cuda_report_parse(&r, "");
    assert_fails(sf_cuda_report_check(&r, "k", &err), &err, SF_UNSUPPORTED, "reports no kernel");
    sf_cuda_report_parse(&r, "registers\nbytes smem\n(C75\n(C75x1)\nCompiling entry function 'unended\n\n\n");
    assert_int_equal(r.n_entries, 1);
    memset(line, 'x', sizeof line);
    memcpy(line, "Compiling entry function '", 26);
    line[sizeof line - 1] = 0;
    sf_cuda_report_parse(&r, line);
    assert_int_equal(strlen(r.entries[0].name), sizeof r.entries[0].name - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_and_shared_memory_are_read),
        cmocka_unit_test(spills_and_local_memory_are_refused),
        cmocka_unit_test(a_wgmma_note_is_refused),
        cmocka_unit_test(every_kernel_of_a_source_is_listed),
        cmocka_unit_test(warnings_are_counted),
        cmocka_unit_test(odd_logs_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
