#include "sched/text_priv.h"

#include <string.h>

/* Bytes of the character that a lead byte begins; 0: no character begins with it. */
static int char_len(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead <= 0xdf) return 2;
    if (lead >= 0xe0 && lead <= 0xef) return 3;
    if (lead >= 0xf0 && lead <= 0xf4) return 4;
    return 0;
}

/* Whether b may stand at place i (1..3) of a character that begins with lead. The second byte's range is
 * narrower after some leads: no overlong form, no surrogate, nothing past U+10FFFF. */
static bool continues(unsigned char lead, int i, unsigned char b) {
    unsigned char lo = 0x80, hi = 0xbf;
    if (i == 1) {
        if (lead == 0xe0) lo = 0xa0;
        if (lead == 0xed) hi = 0x9f;
        if (lead == 0xf0) lo = 0x90;
        if (lead == 0xf4) hi = 0x8f;
    }
    return b >= lo && b <= hi;
}

bool sf_utf8_valid(const char *s, size_t len) {
    const unsigned char *p = (const unsigned char *)s;
    for (size_t i = 0; i < len;) {
        int n = char_len(p[i]);
        if (n == 0 || (size_t)n > len - i) return false;
        for (int k = 1; k < n; k++)
            if (!continues(p[i], k, p[i + (size_t)k])) return false;
        i += (size_t)n;
    }
    return true;
}

static void emit(sf_text_state *st, char *out, const void *bytes, size_t n) {
    if (out) memcpy(out + st->len, bytes, n);
    st->len += n;
}

static void emit_replacement(sf_text_state *st, char *out) {
    emit(st, out, "\xef\xbf\xbd", 3);
}

static void decode(sf_text_state *st, char *out, unsigned char b) {
    if (st->n_pend > 0 && !continues(st->pend[0], st->n_pend, b)) {
        emit_replacement(st, out);
        st->n_pend = 0;
    }
    if (st->n_pend == 0 && char_len(b) == 0) {
        emit_replacement(st, out);
        return;
    }
    st->pend[st->n_pend++] = b;
    if (st->n_pend == char_len(st->pend[0])) {
        emit(st, out, st->pend, (size_t)st->n_pend);
        st->n_pend = 0;
    }
}

bool sf_text_push(const sf_stops *stops, bool may_stop, const char *bytes, size_t n, sf_text_state *st,
                  char *out) {
    for (size_t i = 0; i < n; i++) {
        unsigned char b = (unsigned char)bytes[i];
        decode(st, out, b);
        int stop = sf_stops_feed(stops, &st->stop, b);
        if (stop > 0 && may_stop) {
            /* Stop strings are well-formed, so that the matched bytes stand in the text as they came. */
            st->len -= (size_t)stop;
            st->shown = st->len;
            return true;
        }
    }
    /* A match begins at a character's first byte, hence covers the unfinished character or none of it. */
    int held = sf_stops_held(stops, &st->stop);
    st->shown = st->len - (size_t)(held > st->n_pend ? held - st->n_pend : 0);
    return false;
}

void sf_text_end(sf_text_state *st, char *out) {
    if (st->n_pend > 0) emit_replacement(st, out);
    st->n_pend = 0;
    st->shown = st->len;
}
