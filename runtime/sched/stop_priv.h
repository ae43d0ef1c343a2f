/* Stop strings, matched byte by byte with one Knuth-Morris-Pratt automaton each. The state is a few integers,
 * so that a rollback restores it by assignment. */
#ifndef SF_SCHED_STOP_PRIV_H
#define SF_SCHED_STOP_PRIV_H

#include "base/err.h"
#include "sched/request.h"

#define SF_STOP_BYTES_MAX 4096 /* of one stop string */

typedef struct sf_stops {
    int n;
    int len[SF_STOP_STRINGS_MAX];
    char *text[SF_STOP_STRINGS_MAX]; /* [len + 1], NUL-terminated, owned */
    int *fail[SF_STOP_STRINGS_MAX];  /* [len], owned: length of the longest proper border of text[0..i] */
} sf_stops;

/* matched[i]: how many bytes of stop i the bytes fed so far end with, always less than len[i]. */
typedef struct sf_stop_state {
    int matched[SF_STOP_STRINGS_MAX];
} sf_stop_state;

/* Copies n strings, 0..SF_STOP_STRINGS_MAX. Errors: SF_INVALID names the entry (empty, too long, not UTF-8).
 */
SF_CHECKED sf_code sf_stops_init(sf_stops *s, int n, const char *const *stop, sf_err *err);
void sf_stops_fini(sf_stops *s);
/* Feeds one byte. Returns the length of the longest stop string that ends with it, 0 when none does. */
int sf_stops_feed(const sf_stops *s, sf_stop_state *st, unsigned char byte);
/* How many of the last bytes may be the beginning of a stop string. */
int sf_stops_held(const sf_stops *s, const sf_stop_state *st);

#endif
