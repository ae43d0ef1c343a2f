/* Text as it is streamed (sched/text): random ids of real tokenizers, byte tokens among them, pushed one by
 * one. */
#include "model/tokenizer_json_priv.h"
#include "sched/text_priv.h"

#include "base/utf8.h"
#include "model/golden_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROUNDS = 3000, MOST = 40 };

static uint32_t draw(uint64_t *seed, uint32_t below) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % below;
}

/* Every second id stands for a single byte, so that most characters are cut and many are never whole. */
static int32_t random_id(const sf_tokenizer *t, uint64_t *seed) {
    int32_t byte = t->byte_id[draw(seed, 4) ? 0x80 + draw(seed, 0x75) : draw(seed, 0x80)];
    return byte >= 0 && draw(seed, 2) ? byte : (int32_t)draw(seed, (uint32_t)t->n);
}

typedef struct seen {
    size_t held, replaced,
        wide; /* pushes that showed nothing, texts with U+FFFD, characters of several tokens */
} seen;

static void check_push(const sf_text_state *st, const char *out, size_t before, seen *s) {
    assert_true(st->shown >= before);
    assert_true(sf_utf8_valid(out, st->shown)); /* ends with a whole character */
    s->held += st->shown == before;
    s->wide += st->shown > before && st->n_pend == 0 && (unsigned char)out[before] >= 0xc0;
}

static void one_sequence(const sf_tokenizer *t, uint64_t *seed, seen *s) {
    int32_t ids[MOST];
    size_t n = 1 + draw(seed, MOST), bytes = 0, len;
    sf_stops none = {0};
    sf_text_state st = {0};
    sf_buf whole = {0};
    for (size_t i = 0; i < n; i++) {
        ids[i] = random_id(t, seed);
        (void)sf_tokenizer_piece(t, ids[i], &len);
        bytes += len;
    }
    char *out = malloc(sf_text_room(bytes));
    assert_non_null(out);
    for (size_t i = 0; i < n; i++) {
        const char *piece = sf_tokenizer_piece(t, ids[i], &len);
        size_t before = st.shown;
        assert_false(sf_text_push(&none, true, piece, len, &st, out));
        check_push(&st, out, before, s);
    }
    sf_text_end(&st, out);
    assert_int_equal(sf_tokenizer_decode(t, ids, n, true, &whole, NULL), SF_OK);
    size_t space =
        t->strip && st.shown && out[0] == ' '; /* a whole text loses it, the middle of one does not */
    assert_int_equal(st.shown - space, whole.len);
    if (whole.len) assert_memory_equal(out + space, whole.data, whole.len);
    s->replaced += whole.len && strstr(whole.data, "\xef\xbf\xbd") != NULL;
    sf_buf_fini(&whole);
    free(out);
}

static void streamed_text_is_whole_characters_and_adds_up_to_the_decoded(void **state) {
    (void)state;
    static const char *const kinds[] = {"llama3", "qwen2", "prepend", "first", "always"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        sf_tokenizer *t = NULL;
        uint64_t seed = 17 + k;
        seen s = {0};
        const json_t *file = json_object_get(json_object_get(golden, kinds[k]), "tokenizer");
        assert_int_equal(sf_tokenizer_json_build("d", file, NULL, &t, NULL), SF_OK);
        for (int i = 0; i < ROUNDS; i++)
            one_sequence(t, &seed, &s);
        assert_true(s.held > ROUNDS && s.replaced > ROUNDS / 2 && s.wide > ROUNDS);
        sf_tokenizer_close(t);
    }
}

/* Every character of several bytes, each byte a token of its own: nothing, nothing, the character. */
static void a_character_of_byte_tokens_is_shown_at_its_last_byte(void **state) {
    (void)state;
    sf_tokenizer *t = NULL;
    const json_t *file = json_object_get(json_object_get(golden, "prepend"), "tokenizer");
    assert_int_equal(sf_tokenizer_json_build("d", file, NULL, &t, NULL), SF_OK);
    static const char *const all[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t c = 0; c < 3; c++) {
        sf_stops none = {0};
        sf_text_state st = {0};
        char out[32];
        size_t n = strlen(all[c]), len;
        for (size_t i = 0; i < n; i++) {
            const char *piece = sf_tokenizer_piece(t, t->byte_id[(uint8_t)all[c][i]], &len);
            assert_int_equal(len, 1);
            (void)sf_text_push(&none, true, piece, len, &st, out);
            assert_int_equal(st.shown, i + 1 == n ? n : 0);
        }
        assert_memory_equal(out, all[c], n);
    }
    sf_tokenizer_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streamed_text_is_whole_characters_and_adds_up_to_the_decoded),
        cmocka_unit_test(a_character_of_byte_tokens_is_shown_at_its_last_byte),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
