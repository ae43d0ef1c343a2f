#include "engine/selftest.h"

#include "fake_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What a run reported: the names of failed checks, separated by ';'. */
typedef struct seen {
    char failed[512];
    char first[240];
    int lines, controls;
    int64_t control_rows;
} seen;

static void on_line(void *ctx, const sf_selftest_line *l) {
    seen *s = ctx;
    s->lines++;
    if (l->control) {
        s->controls++;
        s->control_rows = l->rows;
    }
    if (!l->failed) return;
    size_t at = strlen(s->failed);
    snprintf(s->failed + at, sizeof s->failed - at, "%s;", l->name);
    if (!s->first[0]) snprintf(s->first, sizeof s->first, "%s", l->first);
}

static sf_selftest_result run(fake_fault fault, seen *s) {
    *s = (seen){0};
    sf_device *d = fake_device(fault, sf_selftest_pages(&fake_plan), SF_ISA_GENERIC, 1);
    sf_selftest_config cfg = {.device = d,
                              .open = fake_open,
                              .open_ctx = &fault,
                              .n_isas = 2,
                              .isas = {SF_ISA_AVX2, SF_ISA_GENERIC},
                              .threads = 2,
                              .report = on_line,
                              .report_ctx = s};
    sf_selftest_result out;
    sf_err err;
    assert_int_equal(sf_selftest_run(&cfg, &out, &err), SF_OK);
    d->ops->destroy(d);
    return out;
}

static void a_sound_device_passes(void **state) {
    (void)state;
    seen s;
    sf_selftest_result r = run(FAKE_NONE, &s);
    assert_string_equal(s.failed, "");
    assert_int_equal(r.failed, 0);
    assert_in_range(r.rows, 1500, 10000);
    assert_true(r.checks >= 14);
}

static void the_control_differs(void **state) {
    (void)state;
    seen s;
    sf_selftest_result r = run(FAKE_NONE, &s);
    assert_int_equal(s.controls, 1);
    assert_true(s.control_rows > 0);
    assert_true(r.control_differs);
}

/* Each fault must be found by the check made for it. */
static void every_fault_is_named(void **state) {
    (void)state;
    static const struct {
        fake_fault fault;
        const char *check;
    } faults[] = {{FAKE_ROWS, "row buckets;"},     {FAKE_ROW_INDEX, "row positions;"},
                  {FAKE_NEIGHBOUR, "neighbours;"}, {FAKE_SAMPLING, "neighbours;"},
                  {FAKE_STALE, "stale drafts;"},   {FAKE_FRESH, "reused pages;"},
                  {FAKE_CHUNK, "verify windows;"}, {FAKE_FAR, "long context;"},
                  {FAKE_ISA, "isa avx2;"},         {FAKE_THREADS, "threads 3;"}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        seen s;
        sf_selftest_result r = run(faults[i].fault, &s);
        if (!strstr(s.failed, faults[i].check))
            print_error("fault %d: failed %s\n", (int)faults[i].fault, s.failed);
        assert_true(r.failed > 0);
        assert_non_null(strstr(s.failed, faults[i].check));
    }
}

static void only_the_faulty_isa_fails(void **state) {
    (void)state;
    seen s;
    sf_selftest_result r = run(FAKE_ISA, &s);
    assert_string_equal(s.failed, "isa avx2;");
    assert_int_equal(r.failed, 1);
}

static void the_first_difference_says_where(void **state) {
    (void)state;
    seen s;
    run(FAKE_ROWS, &s);
    assert_non_null(strstr(s.first, "log-probability at position 0 differs"));
    assert_non_null(strstr(s.first, "of a pass of"));
}

static void a_device_error_ends_the_run(void **state) {
    (void)state;
    sf_device *d = fake_device(FAKE_BROKEN, sf_selftest_pages(&fake_plan), SF_ISA_GENERIC, 1);
    sf_selftest_config cfg = {.device = d};
    sf_selftest_result out;
    sf_err err;
    assert_int_equal(sf_selftest_run(&cfg, &out, &err), SF_DEVICE);
    d->ops->destroy(d);
}

static void too_small_a_pool_is_an_error(void **state) {
    (void)state;
    sf_device *d = fake_device(FAKE_NONE, sf_selftest_pages(&fake_plan) - 1, SF_ISA_GENERIC, 1);
    sf_selftest_config cfg = {.device = d};
    sf_selftest_result out;
    sf_err err;
    assert_int_equal(sf_selftest_run(&cfg, &out, &err), SF_INVALID);
    assert_non_null(strstr(err.msg, "KV pages"));
    d->ops->destroy(d);
}

static void the_probe_passes_a_sound_device(void **state) {
    (void)state;
    char why[200] = "unchanged";
    sf_err err;
    sf_device *d = fake_device(FAKE_NONE, 8, SF_ISA_GENERIC, 1);
    assert_int_equal(sf_selftest_probe(d, why, sizeof why, &err), SF_OK);
    assert_string_equal(why, "unchanged");
    d->ops->destroy(d);
}

static void the_probe_says_what_disagrees(void **state) {
    (void)state;
    static const fake_fault faults[] = {FAKE_ROWS, FAKE_ROW_INDEX, FAKE_NEIGHBOUR, FAKE_CHUNK};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char why[300] = "";
        sf_err err;
        sf_device *d = fake_device(faults[i], 8, SF_ISA_GENERIC, 1);
        assert_int_equal(sf_selftest_probe(d, why, sizeof why, &err), SF_NONDET);
        assert_non_null(strstr(why, "differs"));
        d->ops->destroy(d);
    }
}

static void the_probe_passes_device_errors_on(void **state) {
    (void)state;
    char why[100] = "";
    sf_err err;
    sf_device *d = fake_device(FAKE_BROKEN, 8, SF_ISA_GENERIC, 1);
    assert_int_equal(sf_selftest_probe(d, why, sizeof why, &err), SF_DEVICE);
    assert_string_equal(why, "");
    d->ops->destroy(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_device_passes),
        cmocka_unit_test(the_control_differs),
        cmocka_unit_test(every_fault_is_named),
        cmocka_unit_test(only_the_faulty_isa_fails),
        cmocka_unit_test(the_first_difference_says_where),
        cmocka_unit_test(a_device_error_ends_the_run),
        cmocka_unit_test(too_small_a_pool_is_an_error),
        cmocka_unit_test(the_probe_passes_a_sound_device),
        cmocka_unit_test(the_probe_says_what_disagrees),
        cmocka_unit_test(the_probe_passes_device_errors_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
