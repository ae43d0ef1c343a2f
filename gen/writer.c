#include "writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sf_put(sf_writer *w, const char *fmt, ...) {
    if (w->rc != SF_OK) return;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) {
        w->rc = SF_FAIL(w->err, SF_INVALID, "format '%s'", fmt);
        return;
    }
    w->rc = sf_buf_reserve(&w->buf, (size_t)n, w->err);
    if (w->rc != SF_OK) return;
    va_start(ap, fmt);
    vsnprintf(w->buf.data + w->buf.len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    w->buf.len += (size_t)n;
}

void sf_put_bytes(sf_writer *w, const char *s, size_t len) {
    if (w->rc == SF_OK) w->rc = sf_buf_append(&w->buf, s, len, w->err);
}

/* Only escapes that C and JSON share: \u00XX for control characters is JSON's; in C, where it is not allowed,
 * none but \n and \t come up (names and descriptions are checked words or YAML text). */
void sf_put_quoted(sf_writer *w, const char *s, const char *null_word) {
    if (!s) {
        sf_put(w, "%s", null_word);
        return;
    }
    sf_put(w, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            sf_put(w, "\\%c", *s);
        else if (*s == '\n')
            sf_put(w, "\\n");
        else if (*s == '\t')
            sf_put(w, "\\t");
        else if (*s == '\r')
            sf_put(w, "\\r");
        else if ((unsigned char)*s < 32 || *s == 127)
            sf_put(w, "?");
        else
            sf_put(w, "%c", *s);
    }
    sf_put(w, "\"");
}
