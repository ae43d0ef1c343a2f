/* What is said of a CUDA device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "cli/info_cuda.h"

#include <stdlib.h>

static void assert_noted(const sf_cuda_start *s, const char *expected) {
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    assert_non_null(f);
    sf_info_cuda_library_note(s, f);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, expected);
    free(text);
}

static void a_library_that_failed_is_told_by_what_it_still_serves(void **state) {
    (void)state;
    assert_noted(&(sf_cuda_start){.library_version = 130100}, "");
    assert_noted(&(sf_cuda_start){.library_version = 0}, "");
    assert_noted(&(sf_cuda_start){.library_version = 130100, .library_note = "down: too large"},
                 "steadfast: cuBLASLt serves the fast class, but not down: too large\n");
    assert_noted(
        &(sf_cuda_start){.library_note = "o, down: not there"},
        "steadfast: cuBLASLt serves nothing, our own kernels make all products: o, down: not there\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_that_failed_is_told_by_what_it_still_serves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
