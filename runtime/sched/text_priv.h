/* Token bytes -> text: whole UTF-8 characters only, a possible beginning of a stop string held back. The
 * state is plain data, so that a rollback restores it by assignment. */
#ifndef SF_SCHED_TEXT_PRIV_H
#define SF_SCHED_TEXT_PRIV_H

#include "sched/stop_priv.h"

typedef struct sf_text_state {
    sf_stop_state stop;
    unsigned char pend[4]; /* beginning of a character whose rest has not come */
    int n_pend;
    size_t len;   /* bytes of text so far, held-back ones included */
    size_t shown; /* of those, bytes that may be streamed; never shrinks */
} sf_text_state;

/* Bytes that pushing n bytes and then ending may add to the text: each byte at worst becomes U+FFFD. */
static inline size_t sf_text_room(size_t n) {
    return 3 * (n + 2);
}

/* Pushes a token's bytes. out (NULL: only the state is wanted) is the whole text so far, with sf_text_room(n)
 * bytes of room past st->len. Ill-formed bytes become U+FFFD, one per maximal subpart. Returns true when a
 * stop string was completed and may_stop is set: the text then ends before it, and the rest of the bytes is
 * dropped. Of stop strings that end at the same byte, the longest counts. */
bool sf_text_push(const sf_stops *stops, bool may_stop, const char *bytes, size_t n, sf_text_state *st,
                  char *out);
/* The text is over: an unfinished character becomes U+FFFD, and nothing is held back any more. */
void sf_text_end(sf_text_state *st, char *out);

#endif
