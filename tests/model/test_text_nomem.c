/* The n-th allocation fails, for every n: tokenizer and chat template say so and leak nothing (a sanitizer's
 * word). */
#include "model/chat.h"
#include "model/tokenizer_json_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static int countdown = -1; /* allocations until the one that fails; negative: none fails */
static bool failed;

static bool fails(void) {
    if (countdown < 0 || countdown-- != 0) return false;
    failed = true;
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

typedef sf_code step_fn(sf_err *err);

/* Runs step with each allocation failing in turn, until one run meets no failure. A library may do without
 * what it was refused; then the step has checked its result. */
static void each_allocation(step_fn *step, int at_least) {
    int refused = 0;
    for (int n = 0;; n++) {
        sf_err err = {0};
        failed = false;
        countdown = n;
        sf_code rc = step(&err);
        countdown = -1;
        if (!failed) {
            assert_int_equal(rc, SF_OK);
            break;
        }
        if (rc == SF_OK) continue;
        assert_int_equal(rc, SF_NOMEM);
        assert_int_equal(err.code, SF_NOMEM);
        assert_true(strlen(err.msg) > 0);
        refused++;
        assert_true(n < 1000);
    }
    assert_true(refused >= at_least);
}

static sf_code tokenizer_step(sf_err *err) {
    static const sf_str tokens[] = {{"a", 1}, {"b", 1}, {"ab", 2}, {"<|x|>", 5}};
    static const sf_str merges[] = {{"a b", 3}};
    static const int32_t types[] = {1, 1, 1, 3};
    static const uint8_t zeros[40] = {0};
    sf_tokenizer_parts p = {.path = "t",
                            .split = {"smollm", 6},
                            .tokens = tokens,
                            .n_tokens = 4,
                            .merges = merges,
                            .n_merges = 1,
                            .types = types,
                            .n_types = 4,
                            .bos = -1,
                            .eos = -1};
    sf_tokenizer *t = NULL;
    sf_ids ids = {0};
    sf_buf text = {0};
    sf_code rc = sf_tokenizer_build(&p, &t, err);
    assert_true((rc == SF_OK) == (t != NULL));
    if (rc == SF_OK) rc = sf_tokenizer_encode(t, "abab<|x|>a", 10, zeros, &ids, err);
    if (rc == SF_OK) rc = sf_tokenizer_decode(t, ids.data, ids.len, true, &text, err);
    if (rc == SF_OK) assert_string_equal(text.data, "abab<|x|>a");
    sf_buf_fini(&text);
    sf_ids_fini(&ids);
    sf_tokenizer_close(t);
    return rc;
}

static json_t *file; /* a tokenizer.json, with NFC and a token that is looked for after it */

static sf_code json_step(sf_err *err) {
    static const char text[] = "abab<n>e\xcc\x81"
                               "ab";
    static const uint8_t zeros[sizeof text] = {0};
    sf_tokenizer *t = NULL;
    sf_ids ids = {0};
    sf_code rc = sf_tokenizer_json_build("d", file, NULL, &t, err);
    assert_true((rc == SF_OK) == (t != NULL));
    if (rc == SF_OK) {
        rc = sf_tokenizer_encode(t, text, sizeof text - 1, zeros, &ids, err);
        assert_int_equal(ids.len,
                         rc == SF_OK ? 4 : 0); /* two, the added token, one; e and its mark are none */
    }
    sf_ids_fini(&ids);
    sf_tokenizer_close(t);
    return rc;
}

static void tokenizer_json_survives_every_failing_allocation(void **state) {
    (void)state;
    file =
        json_loads("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]},"
                   "\"added_tokens\":[{\"id\":3,\"content\":\"<n>\",\"normalized\":true}],\"normalizer\":{"
                   "\"type\":\"NFC\"},"
                   "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{"
                   "\"type\":\"ByteLevel\"}}",
                   0, NULL);
    assert_non_null(file);
    each_allocation(json_step, 15);
    json_decref(file);
}

static json_t *messages;

static sf_code chat_step(sf_err *err) {
    static const char source[] =
        "{% for m in messages %}<{{ m.role }}>{{ m | tojson }}{{ 'x' * 20000 }}{% endfor %}";
    sf_chat *c = NULL;
    sf_buf text = {0}, plain = {0};
    sf_code rc = sf_chat_open("t", source, sizeof source - 1, "<s>", NULL, &c, err);
    assert_true((rc == SF_OK) == (c != NULL));
    if (rc == SF_OK) {
        rc = sf_chat_render(c, &(sf_chat_vars){.messages = messages}, &text, &plain, err);
        assert_true(rc == SF_OK ? text.len > 20000 && text.len == plain.len : !text.len && !plain.len);
    }
    sf_chat_close(c);
    sf_buf_fini(&text);
    sf_buf_fini(&plain);
    return rc;
}

static void tokenizer_survives_every_failing_allocation(void **state) {
    (void)state;
    sf_err err;
    assert_int_equal(tokenizer_step(&err),
                     SF_OK); /* libcrypto sets itself up once, and remembers a failure */
    each_allocation(tokenizer_step, 10);
}

static void chat_survives_every_failing_allocation(void **state) {
    (void)state;
    messages = json_pack("[{s:s}]", "role", "user");
    assert_non_null(messages);
    each_allocation(chat_step, 8);
    json_decref(messages);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokenizer_survives_every_failing_allocation),
        cmocka_unit_test(tokenizer_json_survives_every_failing_allocation),
        cmocka_unit_test(chat_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
