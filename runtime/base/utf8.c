#include "base/utf8.h"

#include <string.h>

int sf_utf8_len(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

bool sf_utf8_continues(unsigned char lead, int i, unsigned char b) {
    unsigned char lo = 0x80, hi = 0xbf;
    if (i == 1) { /* the second byte's range is narrower after some leads */
        if (lead == 0xe0) lo = 0xa0;
        if (lead == 0xed) hi = 0x9f;
        if (lead == 0xf0) lo = 0x90;
        if (lead == 0xf4) hi = 0x8f;
    }
    return b >= lo && b <= hi;
}

size_t sf_utf8_char(const char *s, size_t len, int32_t *cp, size_t *bad) {
    const unsigned char *u = (const unsigned char *)s;
    const int n = sf_utf8_len(u[0]);
    *bad = 1;
    if (n == 0) return 0;
    int32_t v = n == 1 ? u[0] : u[0] & (0x7f >> n);
    for (int i = 1; i < n; i++) {
        if ((size_t)i >= len || !sf_utf8_continues(u[0], i, u[i])) {
            *bad = (size_t)i;
            return 0;
        }
        v = v << 6 | (u[i] & 0x3f);
    }
    *cp = v;
    return (size_t)n;
}

size_t sf_utf8_prefix(const char *s, size_t len) {
    size_t i = 0;
    while (i < len) {
        uint64_t eight;
        if (len - i >= sizeof eight) { /* most text is ASCII */
            memcpy(&eight, s + i, sizeof eight);
            if (!(eight & 0x8080808080808080u)) {
                i += sizeof eight;
                continue;
            }
        }
        int32_t cp;
        size_t bad, n = sf_utf8_char(s + i, len - i, &cp, &bad);
        if (n == 0) return i;
        i += n;
    }
    return len;
}

char *sf_utf8_one_line(char *text) {
    const size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        int32_t cp = 0;
        size_t bad, n = sf_utf8_char(text + i, len - i, &cp, &bad);
        const size_t step = n > 0 ? n : bad;
        if (n == 0 || cp < ' ' || (cp >= 0x7f && cp < 0xa0)) memset(text + i, ' ', step);
        i += step;
    }
    return text;
}
