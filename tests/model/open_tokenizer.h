/* The tokenizer of a GGUF file or of a Hugging Face directory, for programs that scripts ask. */
#ifndef SF_TESTS_OPEN_TOKENIZER_H
#define SF_TESTS_OPEN_TOKENIZER_H

#include "model/tokenizer.h"

#include <sys/stat.h>

static inline sf_code open_tokenizer(const char *path, sf_tokenizer **t, sf_err *err) {
    sf_gguf *g;
    struct stat is;
    if (stat(path, &is) == 0 && S_ISDIR(is.st_mode)) return sf_tokenizer_open_dir(path, t, NULL, err);
    SF_TRY(sf_gguf_open(path, &g, err));
    sf_code rc = sf_tokenizer_open(g, t, err);
    sf_gguf_close(g);
    return rc;
}

#endif
