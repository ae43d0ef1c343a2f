/* Error codes and the error record. Every fallible function returns a code and fills a record;
 * nothing below main prints or exits. A failed call leaves its outputs untouched. */
#ifndef SF_BASE_ERR_H
#define SF_BASE_ERR_H

#include <stddef.h>
#include <stdint.h>

#define SF_CHECKED __attribute__((warn_unused_result))

/* name, text for a person */
#define SF_CODES(X)                                                                                          \
    X(SF_OK, "ok")                                                                                           \
    X(SF_NOMEM, "out of memory")                                                                             \
    X(SF_IO, "input/output error")                                                                           \
    X(SF_FORMAT, "malformed input")                                                                          \
    X(SF_UNSUPPORTED, "not supported")                                                                       \
    X(SF_INVALID, "invalid argument")                                                                        \
    X(SF_NOT_FOUND, "not found")                                                                             \
    X(SF_FULL, "at its limit")                                                                               \
    X(SF_DEVICE, "device error")                                                                             \
    X(SF_NONDET, "determinism cannot be guaranteed")                                                         \
    X(SF_CANCELLED, "cancelled")                                                                             \
    X(SF_DRIFT, "generated files differ from their inputs")

typedef enum sf_code {
#define SF_CODE_ENUM(name, text) name,
    SF_CODES(SF_CODE_ENUM)
#undef SF_CODE_ENUM
} sf_code;

/* A place. file == NULL: none. line and col count from 1; 0 means unknown. The file string is borrowed
 * and must outlive the record (a literal, or a path kept by the caller). */
typedef struct sf_loc {
    const char *file;
    int line, col;
} sf_loc;

typedef struct sf_err {
    sf_code code;
    sf_loc user;   /* place in the YAML, template, weights or request; file == NULL if none */
    sf_loc src;    /* place in our C that raised it */
    char msg[400]; /* what was found, what was expected */
} sf_err;

/* The code's text for a person; never NULL. */
const char *sf_code_text(sf_code code);

/* Fills err (may be NULL) and returns code. Use through SF_FAIL and SF_FAIL_AT. */
sf_code sf_err_set(sf_err *err, sf_code code, sf_loc user, sf_loc src, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Writes "file:line:col: message" (or the message alone) to buf; returns buf. */
char *sf_err_format(const sf_err *err, char *buf, size_t size);

#define SF_SRC ((sf_loc){__FILE__, __LINE__, 0})
/* Evaluates to the code: `return SF_FAIL(err, SF_IO, "...")` or `rc = SF_FAIL(...); goto done;`. The code
 * stands here too, so that the compiler sees a failure and does not warn of outputs that only success sets.
 */
#define SF_FAIL(err, code, ...) (sf_err_set((err), (code), (sf_loc){0}, SF_SRC, __VA_ARGS__), (sf_code)(code))
#define SF_FAIL_AT(err, code, user, ...)                                                                     \
    (sf_err_set((err), (code), (user), SF_SRC, __VA_ARGS__), (sf_code)(code))
/* Only in functions that own nothing. */
#define SF_TRY(call)                                                                                         \
    do {                                                                                                     \
        sf_code sf_try_rc = (call);                                                                          \
        if (sf_try_rc != SF_OK) return sf_try_rc;                                                            \
    } while (0)

#endif
