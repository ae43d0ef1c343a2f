#include "sched/kv_priv.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static void open_pool(sf_kv *kv, int pages) {
    sf_err err;
    assert_int_equal(sf_kv_init(kv, pages, 16, &err), SF_OK);
}

static void pages_cover_positions_rounded_up(void **state) {
    (void)state;
    sf_kv kv;
    open_pool(&kv, 4);
    assert_int_equal(sf_kv_pages_for(&kv, 0), 0);
    assert_int_equal(sf_kv_pages_for(&kv, 1), 1);
    assert_int_equal(sf_kv_pages_for(&kv, 16), 1);
    assert_int_equal(sf_kv_pages_for(&kv, 17), 2);
    sf_kv_fini(&kv);
}

static void what_is_promised_to_one_is_refused_to_another(void **state) {
    (void)state;
    sf_kv kv;
    open_pool(&kv, 4);
    assert_true(sf_kv_reserve(&kv, 3));
    assert_false(sf_kv_reserve(&kv, 2));
    assert_int_equal(kv.n_free, 4); /* a promise takes nothing yet */
    int32_t page = sf_kv_take(&kv);
    assert_int_equal(kv.n_free, 3);
    assert_false(sf_kv_reserve(&kv, 2));
    sf_kv_release(&kv, &page, 1, 3);
    assert_true(sf_kv_reserve(&kv, 4));
    assert_int_equal(kv.n_free, 4);
    sf_kv_fini(&kv);
}

static void no_page_is_given_twice(void **state) {
    (void)state;
    sf_kv kv;
    open_pool(&kv, 8);
    assert_true(sf_kv_reserve(&kv, 8));
    unsigned seen = 0;
    for (int i = 0; i < 8; i++)
        seen |= 1u << sf_kv_take(&kv);
    assert_int_equal(seen, 0xff);
    sf_kv_fini(&kv);
}

static void a_page_taken_again_is_fast_until_it_is_committed(void **state) {
    (void)state;
    sf_kv kv;
    open_pool(&kv, 1);
    assert_true(sf_kv_reserve(&kv, 1));
    int32_t page = sf_kv_take(&kv);
    assert_int_equal(kv.pages[page].cls, SF_CLASS_FAST);
    sf_kv_mark_pinned(&kv, page);
    assert_int_equal(kv.pages[page].cls, SF_CLASS_PINNED);
    sf_kv_release(&kv, &page, 1, 1);
    assert_true(sf_kv_reserve(&kv, 1));
    page = sf_kv_take(&kv);
    assert_int_equal(kv.pages[page].cls, SF_CLASS_FAST);
    sf_kv_fini(&kv);
}

static void an_empty_pool_is_refused(void **state) {
    (void)state;
    sf_kv kv;
    sf_err err;
    assert_int_equal(sf_kv_init(&kv, 0, 16, &err), SF_INVALID);
    assert_int_equal(sf_kv_init(&kv, 4, 0, &err), SF_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_cover_positions_rounded_up),
        cmocka_unit_test(what_is_promised_to_one_is_refused_to_another),
        cmocka_unit_test(no_page_is_given_twice),
        cmocka_unit_test(a_page_taken_again_is_fast_until_it_is_committed),
        cmocka_unit_test(an_empty_pool_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
