/* UTF-8 as Unicode 15 defines it, table 3-7 (the same as RFC 3629, section 4): no overlong form, no
 * surrogate, nothing past U+10FFFF. Any thread. */
#ifndef SF_BASE_UTF8_H
#define SF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes, 1..4, of the character that a lead byte begins; 0: none begins with it. */
int sf_utf8_len(unsigned char lead);
/* Whether b may stand at place i (1..3) of a character that begins with lead. */
bool sf_utf8_continues(unsigned char lead, int i, unsigned char b);

/* Bytes of the well-formed character at s (len >= 1 bytes), its code point in *cp. 0 when there is none, *cp
 * untouched: *bad is then the length of the maximal subpart, the bytes that one U+FFFD stands for (section
 * 3.9). */
size_t sf_utf8_char(const char *s, size_t len, int32_t *cp, size_t *bad);

/* Bytes of the longest well-formed beginning: len when all of it is. */
size_t sf_utf8_prefix(const char *s, size_t len);
static inline bool sf_utf8_valid(const char *s, size_t len) {
    return sf_utf8_prefix(s, len) == len;
}

/* For a line of a log or a terminal, in place: controls (also those of C1) and what is no UTF-8 become
 * blanks, so that text of others neither begins a line nor steers a terminal. Returns text. */
char *sf_utf8_one_line(char *text);

#endif
