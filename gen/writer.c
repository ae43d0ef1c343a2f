#include "writer.h"

#include <stdarg.h>
#include <stdbool.h>
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

/* Control characters: C has octal escapes, JSON has \u00XX. */
static void put_quoted(sf_writer *w, const char *s, size_t len, bool json) {
    sf_put(w, "\"");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            sf_put(w, "\\%c", c);
        else if (c == '\n')
            sf_put(w, "\\n");
        else if (c < 32 || c == 127)
            sf_put(w, json ? "\\u%04x" : "\\%03o", c);
        else
            sf_put_bytes(w, s + i, 1);
    }
    sf_put(w, "\"");
}

void sf_put_c_text(sf_writer *w, const char *s) {
    if (s)
        put_quoted(w, s, strlen(s), false);
    else
        sf_put(w, "NULL");
}

void sf_put_c_bytes(sf_writer *w, const char *s, size_t len) {
    put_quoted(w, s, len, false);
}

void sf_put_json_text(sf_writer *w, const char *s) {
    if (s)
        put_quoted(w, s, strlen(s), true);
    else
        sf_put(w, "null");
}
