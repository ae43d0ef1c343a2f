#include "sched/text_priv.h"

#include "base/utf8.h"

#include <string.h>

static void emit(sf_text_state *st, char *out, const void *bytes, size_t n) {
    if (out) memcpy(out + st->len, bytes, n);
    st->len += n;
}

static void emit_replacement(sf_text_state *st, char *out) {
    emit(st, out, "\xef\xbf\xbd", 3);
}

static void decode(sf_text_state *st, char *out, unsigned char b) {
    if (st->n_pend > 0 && !sf_utf8_continues(st->pend[0], st->n_pend, b)) {
        emit_replacement(st, out);
        st->n_pend = 0;
    }
    if (st->n_pend == 0 && sf_utf8_len(b) == 0) {
        emit_replacement(st, out);
        return;
    }
    st->pend[st->n_pend++] = b;
    if (st->n_pend == sf_utf8_len(st->pend[0])) {
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
