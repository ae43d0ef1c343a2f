/* What the tests of the CUDA layer share. */
#ifndef SF_TESTS_CUDA_TEST_H
#define SF_TESTS_CUDA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"

/* The call failed with that code, and its message holds the words. */
static inline void assert_fails(sf_code rc, const sf_err *err, sf_code code, const char *words) {
    if (rc != code || !strstr(err->msg, words))
        fail_msg("[%s] '%s', expected [%s] and '%s'", sf_code_text(rc), rc == SF_OK ? "" : err->msg,
                 sf_code_text(code), words);
}

#endif
