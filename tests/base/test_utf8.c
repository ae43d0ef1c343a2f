#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>

/* The definition, written the other way round: code point -> bytes. 0: a surrogate or past U+10FFFF. */
static size_t encode(uint32_t cp, unsigned char out[4]) {
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) return 0;
    if (cp < 0x80) {
        out[0] = (unsigned char)cp;
        return 1;
    }
    const size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, cp >>= 6)
        out[i] = (unsigned char)(0x80 | (cp & 0x3f));
    out[0] = (unsigned char)((0xf00u >> n & 0xff) | cp);
    return n;
}

static void every_code_point_is_read_back(void **state) {
    (void)state;
    int read = 0;
    for (uint32_t want = 0; want <= 0x10ffff; want++) {
        unsigned char s[4];
        const size_t n = encode(want, s);
        int32_t cp = -1;
        size_t bad;
        if (n == 0) continue;
        assert_int_equal(sf_utf8_char((const char *)s, n, &cp, &bad), n);
        assert_int_equal(cp, want);
        assert_int_equal(sf_utf8_len(s[0]), n);
        read++;
    }
    assert_int_equal(read, 0x110000 - 0x800);
}

static bool written_by_encode(const unsigned char *s, size_t n) {
    unsigned char back[4];
    uint32_t cp = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        cp = cp << 6 | (s[i] & 0x3f);
    return encode(cp, back) == n && memcmp(back, s, n) == 0;
}

/* All pairs of first bytes, with the third and fourth from both sides of every bound that they have. */
static void what_no_code_point_gives_is_no_character(void **state) {
    (void)state;
    static const unsigned char last[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    int whole[5] = {0};
    for (uint32_t word = 0; word < 0x10000 * sizeof last * sizeof last; word++) {
        const unsigned char s[4] = {(unsigned char)(word >> 8), (unsigned char)word,
                                    last[(word >> 16) % sizeof last], last[(word >> 16) / sizeof last]};
        size_t want = 0, bad;
        for (size_t n = 1; n <= 4 && want == 0; n++)
            if (written_by_encode(s, n)) want = n;
        int32_t cp;
        const size_t got = sf_utf8_char((const char *)s, 4, &cp, &bad);
        if (got != want)
            fail_msg("%02x %02x %02x %02x: %zu, expected %zu", s[0], s[1], s[2], s[3], got, want);
        whole[got]++;
    }
    for (int n = 0; n <= 4; n++)
        assert_true(whole[n] > 0);
}

static void a_maximal_subpart_is_one_replacement(void **state) {
    (void)state;
    static const struct {
        const char *s;
        size_t bad;
    } cases[] = {
        {"\x80", 1},         {"\xff", 1},         {"\xc0\x80", 1},         {"\xc3", 1},
        {"\xc3x", 1},        {"\xe2\x82", 2},     {"\xe2\x82x", 2},        {"\xe0\x9f\x80", 1},
        {"\xed\xa0\x80", 1}, {"\xf0\x9f\x98", 3}, {"\xf0\x8f\x80\x80", 1}, {"\xf4\x90\x80\x80", 1},
        {"\xf5\x80", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t cp = -7;
        size_t bad = 0;
        assert_int_equal(sf_utf8_char(cases[i].s, strlen(cases[i].s), &cp, &bad), 0);
        assert_int_equal(bad, cases[i].bad);
        assert_int_equal(cp, -7);
    }
}

static void a_character_cut_short_by_the_length_is_none(void **state) {
    (void)state;
    static const char smile[] = "\xf0\x9f\x99\x82";
    for (size_t n = 1; n < 4; n++) {
        int32_t cp;
        size_t bad;
        assert_int_equal(sf_utf8_char(smile, n, &cp, &bad), 0);
        assert_int_equal(bad, n);
        assert_int_equal(sf_utf8_prefix(smile, n), 0);
    }
    assert_int_equal(sf_utf8_prefix(smile, 4), 4);
}

/* A wrong byte at every place of texts that do and do not go eight bytes at a time. */
static void the_prefix_ends_where_the_text_goes_wrong(void **state) {
    (void)state;
    char text[40];
    for (size_t len = 0; len < sizeof text; len++) {
        memset(text, 'a', sizeof text);
        assert_int_equal(sf_utf8_prefix(text, len), len);
        assert_true(sf_utf8_valid(text, len));
        for (size_t at = 0; at < len; at++) {
            text[at] = '\xbf';
            assert_int_equal(sf_utf8_prefix(text, len), at);
            assert_false(sf_utf8_valid(text, len));
            text[at] = 'a';
        }
    }
    assert_true(sf_utf8_valid("a\0b", 3));
    assert_true(sf_utf8_valid(NULL, 0));
    assert_int_equal(sf_utf8_prefix("aaaaaaa\xc3\xa9"
                                    "aaaaaaaa\xc3",
                                    18),
                     17);
}

static void a_line_keeps_its_text_and_loses_what_would_end_or_steer_it(void **state) {
    (void)state;
    static const struct {
        const char *text, *line;
    } rows[] = {{"plain \xc3\xa9\xf0\x9f\x98\x80", "plain \xc3\xa9\xf0\x9f\x98\x80"},
                {"x\n2026-01-01 200 ok\r\t", "x 2026-01-01 200 ok  "},
                {"\x1b[2J\x7f", " [2J "},
                {"a\xc2\x9b"
                 "b",
                 "a  b"}, /* CSI in UTF-8 */
                {"a\x9b"
                 "b\xe2\x82",
                 "a b  "}, /* CSI as it is; a character cut short */
                {"\xc2\xa0", "\xc2\xa0"},
                {"", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        assert_in_range(snprintf(text, sizeof text, "%s", rows[i].text), 0, sizeof text - 1);
        assert_string_equal(sf_utf8_one_line(text), rows[i].line);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_is_read_back),
        cmocka_unit_test(what_no_code_point_gives_is_no_character),
        cmocka_unit_test(a_maximal_subpart_is_one_replacement),
        cmocka_unit_test(a_character_cut_short_by_the_length_is_none),
        cmocka_unit_test(the_prefix_ends_where_the_text_goes_wrong),
        cmocka_unit_test(a_line_keeps_its_text_and_loses_what_would_end_or_steer_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
