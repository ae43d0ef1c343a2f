#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

const char *sf_code_text(sf_code code) {
    static const char *const texts[] = {
#define SF_CODE_TEXT(name, text) text,
        SF_CODES(SF_CODE_TEXT)
#undef SF_CODE_TEXT
    };
    size_t i = (size_t)code;
    return i < sizeof texts / sizeof *texts ? texts[i] : "unknown error";
}

sf_code sf_err_set(sf_err *err, sf_code code, sf_loc user, sf_loc src, const char *fmt, ...) {
    if (!err) return code;
    err->code = code;
    err->user = user;
    err->src = src;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    return code;
}

char *sf_err_format(const sf_err *err, char *buf, size_t size) {
    const char *msg = err->msg[0] ? err->msg : sf_code_text(err->code);
    if (!err->user.file) {
        snprintf(buf, size, "%s", msg);
    } else if (err->user.line <= 0) {
        snprintf(buf, size, "%s: %s", err->user.file, msg);
    } else if (err->user.col <= 0) {
        snprintf(buf, size, "%s:%d: %s", err->user.file, err->user.line, msg);
    } else {
        snprintf(buf, size, "%s:%d:%d: %s", err->user.file, err->user.line, err->user.col, msg);
    }
    return buf;
}
