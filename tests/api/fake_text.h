/* A tokenizer whose tokens are bytes, with a few longer ones, and a chat template "<role>content<end>". */
#ifndef SF_TESTS_API_FAKE_TEXT_H
#define SF_TESTS_API_FAKE_TEXT_H

#include "api/request.h"

enum {
    FAKE_BOS = 256,
    FAKE_END = 257,
    FAKE_TWIN = 258 /* "a" again */,
    FAKE_EURO_1 = 259,
    FAKE_EURO_2 = 260,
    FAKE_VOCAB = 261,
    FAKE_LONGEST = 5 /* bytes of a token at most */
};

extern size_t fake_encoded;           /* texts that have been turned into ids */
extern bool fake_chat_bos;            /* the chat template writes a BOS */
extern const sf_api_model fake_model; /* context 32, BOS added, chat present */

/* Reads JSON text as a request; *err tells why not. The caller ends it with sf_api_request_fini either way.
 */
sf_code fake_read(const sf_api_model *m, unsigned kind, const char *json, sf_api_request *out,
                  sf_api_error *err);

#endif
