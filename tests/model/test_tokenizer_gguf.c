/* Tokenizers from a GGUF file's keys: which must be there, what they make, byte-level and SentencePiece's
 * kind. */
#include "model/gguf_make.h"
#include "model/gguf_priv.h"
#include "model/tokenizer_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void encode(const sf_tokenizer *t, const char *text, size_t len, const uint8_t *plain, sf_ids *out) {
    sf_err err;
    out->len = 0;
    assert_int_equal(sf_tokenizer_encode(t, text, len, plain, out, &err), SF_OK);
}

/* A tokenizer's keys in a GGUF file; `without` is left out, `wrong` has another type. Returns how many keys.
 */
static uint64_t put_keys(gm *m, const char *without, const char *wrong) {
    static const char *const keys[] = {"model",      "pre",          "tokens",       "merges",
                                       "token_type", "bos_token_id", "add_bos_token"};
    uint64_t n = 0;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        char key[60];
        if (!strcmp(keys[k], without)) continue;
        snprintf(key, sizeof key, "tokenizer.ggml.%s", keys[k]);
        n++;
        if (!strcmp(keys[k], wrong)) {
            gm_kv_f32(m, key, 1);
        } else if (k < 2) {
            gm_kv_str(m, key, k ? "smollm" : "gpt2");
        } else if (k == 2) {
            gm_array(m, key, 8, 3);
            gm_str(m, "a");
            gm_str(m, "b");
            gm_str(m, "ab");
        } else if (k == 3) {
            gm_array(m, key, 8, 1);
            gm_str(m, "a b");
        } else if (k == 4) {
            gm_array(m, key, 5, 3);
            for (int i = 0; i < 3; i++)
                gm_uint(m, 1, 4);
        } else if (k == 5) {
            gm_kv_u32(m, key, 2);
        } else {
            gm_key(m, key, 7);
            gm_uint(m, 1, 1);
        }
    }
    return n;
}

static sf_code open_keys(const char *without, const char *wrong, sf_tokenizer **t, sf_err *err) {
    gm keys = {0}, file = {0};
    sf_gguf *g = NULL;
    uint64_t n = put_keys(&keys, without, wrong);
    gm_head(&file, 3, 0, n);
    gm_bytes(&file, keys.data, keys.len);
    gm_pad(&file, 32);
    assert_int_equal(sf_gguf_open_bytes("keys.gguf", file.data, file.len, &g, err), SF_OK);
    sf_code rc = sf_tokenizer_open(g, t, err);
    sf_gguf_close(g);
    gm_fini(&keys);
    gm_fini(&file);
    return rc;
}

static void a_gguf_s_keys_make_a_tokenizer(void **state) {
    (void)state;
    sf_tokenizer *t;
    sf_ids ids = {0};
    assert_int_equal(open_keys("", "", &t, NULL), SF_OK);
    assert_int_equal(sf_tokenizer_bos(t), 2);
    assert_int_equal(sf_tokenizer_eos(t), -1);
    assert_true(sf_tokenizer_add_bos(t));
    encode(t, "aab", 3, NULL, &ids);
    assert_int_equal(ids.len, 2);
    assert_int_equal(ids.data[0], 0);
    assert_int_equal(ids.data[1], 2);
    sf_ids_fini(&ids);
    sf_tokenizer_close(t);
}

/* SentencePiece's kind: byte tokens, then "_", "a", "_a"; `scores` of them. */
static sf_code open_pieces(uint64_t scores, const char *flag, bool value, sf_tokenizer **t, sf_err *err) {
    static const char *const more[] = {"<s>", "\xe2\x96\x81", "a", "\xe2\x96\x81\x61"};
    enum { N = 256 + sizeof more / sizeof *more };
    gm m = {0};
    sf_gguf *g = NULL;
    gm_head(&m, 3, 0, flag ? 6 : 5);
    gm_kv_str(&m, "tokenizer.ggml.model", "llama");
    gm_array(&m, "tokenizer.ggml.tokens", 8, N);
    for (int i = 0; i < N; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i & 255);
        gm_str(&m, i < 256 ? name : more[i - 256]);
    }
    gm_array(&m, "tokenizer.ggml.scores", 6, scores);
    for (uint64_t i = 0; i < scores; i++)
        gm_uint(&m, 0, 4);
    gm_array(&m, "tokenizer.ggml.token_type", 5, N);
    for (int i = 0; i < N; i++)
        gm_uint(&m, i < 256 ? SF_TOKEN_BYTE : i == 256 ? SF_TOKEN_CONTROL : SF_TOKEN_NORMAL, 4);
    gm_kv_u32(&m, "tokenizer.ggml.bos_token_id", 256);
    if (flag) {
        gm_key(&m, flag, 7);
        gm_uint(&m, value, 1);
    }
    gm_pad(&m, 32);
    assert_int_equal(sf_gguf_open_bytes("pieces.gguf", m.data, m.len, &g, err), SF_OK);
    sf_code rc = sf_tokenizer_open(g, t, err);
    sf_gguf_close(g);
    gm_fini(&m);
    return rc;
}

static void a_gguf_s_scores_make_a_tokenizer(void **state) {
    (void)state;
    sf_tokenizer *t = NULL;
    sf_ids ids = {0};
    sf_err err;
    assert_int_equal(open_pieces(260, NULL, false, &t, &err), SF_OK);
    assert_true(sf_tokenizer_add_bos(t)); /* where the file does not say */
    assert_int_equal(sf_tokenizer_check_split(t, "x", "sentencepiece", &err), SF_OK);
    encode(t, "a a", 3, NULL, &ids);
    assert_int_equal(ids.len, 2);
    assert_int_equal(ids.data[0], 259);
    assert_int_equal(ids.data[1], 259);
    sf_tokenizer_close(t);
    assert_int_equal(open_pieces(260, "tokenizer.ggml.add_space_prefix", false, &t, &err), SF_OK);
    encode(t, "a a", 3, NULL, &ids);
    assert_int_equal(ids.data[0], 258);
    sf_tokenizer_close(t);
    assert_int_equal(open_pieces(260, "tokenizer.ggml.add_bos_token", false, &t, &err), SF_OK);
    assert_false(sf_tokenizer_add_bos(t));
    sf_tokenizer_close(t);
    t = NULL;
    assert_int_equal(open_pieces(259, NULL, false, &t, &err), SF_FORMAT);
    assert_non_null(strstr(err.msg, "tokenizer.ggml.scores has 259 items, expected 260"));
    assert_int_equal(open_pieces(260, "tokenizer.ggml.remove_extra_whitespaces", true, &t, &err),
                     SF_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "remove_extra_whitespaces"));
    assert_null(t);
    sf_ids_fini(&ids);
}

static void missing_and_mistyped_keys_are_named(void **state) {
    (void)state;
    static const char *const keys[] = {"model",      "pre",          "tokens",       "merges",
                                       "token_type", "bos_token_id", "add_bos_token"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        sf_tokenizer *t = NULL;
        sf_err err;
        bool optional = k >= 5;
        assert_int_equal(open_keys(keys[k], "", &t, &err), optional ? SF_OK : SF_NOT_FOUND);
        if (!optional) assert_non_null(strstr(err.msg, keys[k]));
        sf_tokenizer_close(t);
        t = NULL;
        assert_int_equal(open_keys("", keys[k], &t, &err), SF_FORMAT);
        assert_non_null(strstr(err.msg, keys[k]));
        assert_null(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gguf_s_keys_make_a_tokenizer),
        cmocka_unit_test(a_gguf_s_scores_make_a_tokenizer),
        cmocka_unit_test(missing_and_mistyped_keys_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
