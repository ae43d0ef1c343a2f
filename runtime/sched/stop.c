#include "sched/stop_priv.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

void sf_stops_fini(sf_stops *s) {
    for (int i = 0; i < s->n; i++) {
        free(s->text[i]);
        free(s->fail[i]);
    }
    *s = (sf_stops){0};
}

static void borders(const char *text, int len, int *fail) {
    fail[0] = 0;
    for (int i = 1, k = 0; i < len; i++) {
        while (k > 0 && text[i] != text[k])
            k = fail[k - 1];
        if (text[i] == text[k]) k++;
        fail[i] = k;
    }
}

sf_code sf_stops_init(sf_stops *out, int n, const char *const *stop, sf_err *err) {
    sf_code rc = SF_OK;
    sf_stops s = {0};
    if (n < 0 || n > SF_STOP_STRINGS_MAX)
        return SF_FAIL(err, SF_INVALID, "stop has %d strings, expected 0..%d", n, SF_STOP_STRINGS_MAX);
    for (int i = 0; i < n; i++) {
        size_t len = stop[i] ? strlen(stop[i]) : 0;
        if (len == 0 || len > SF_STOP_BYTES_MAX) {
            rc =
                SF_FAIL(err, SF_INVALID, "stop[%d] has %zu bytes, expected 1..%d", i, len, SF_STOP_BYTES_MAX);
            goto done;
        }
        if (!sf_utf8_valid(stop[i], len)) {
            rc = SF_FAIL(err, SF_INVALID, "stop[%d] is not valid UTF-8", i);
            goto done;
        }
        s.n = i + 1;
        s.len[i] = (int)len;
        s.text[i] = malloc(len + 1);
        s.fail[i] = malloc(len * sizeof *s.fail[i]);
        if (!s.text[i] || !s.fail[i]) {
            rc = SF_FAIL(err, SF_NOMEM, "stop[%d] of %zu bytes", i, len);
            goto done;
        }
        memcpy(s.text[i], stop[i], len + 1);
        borders(s.text[i], s.len[i], s.fail[i]);
    }
done:
    if (rc == SF_OK)
        *out = s;
    else
        sf_stops_fini(&s);
    return rc;
}

int sf_stops_feed(const sf_stops *s, sf_stop_state *st, unsigned char byte) {
    int longest = 0;
    for (int i = 0; i < s->n; i++) {
        int k = st->matched[i];
        while (k > 0 && (unsigned char)s->text[i][k] != byte)
            k = s->fail[i][k - 1];
        if ((unsigned char)s->text[i][k] == byte) k++;
        if (k == s->len[i]) {
            if (k > longest) longest = k;
            k = s->fail[i][k - 1]; /* so that matched stays below len where the match was not wanted */
        }
        st->matched[i] = k;
    }
    return longest;
}

int sf_stops_held(const sf_stops *s, const sf_stop_state *st) {
    int held = 0;
    for (int i = 0; i < s->n; i++)
        if (st->matched[i] > held) held = st->matched[i];
    return held;
}
