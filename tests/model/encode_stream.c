/* What the oracles of tests/oracle ask: opens the tokenizer of a GGUF file or a Hugging Face
 * directory, then for each u32 length, u8 special and text on standard input writes u32 count, i32
 * ids[count], u32 length and the text that the ids decode to; for a text that is refused a count of 2^32 - 1,
 * u32 length and the message. Little-endian. special: spellings of special tokens are recognised. */
#include "open_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(const void *data, uint32_t bytes) {
    fwrite(&bytes, sizeof bytes, 1, stdout);
    if (bytes) fwrite(data, 1, bytes, stdout);
    fflush(stdout);
}

static sf_code answer(const sf_tokenizer *t, const char *text, size_t len, const uint8_t *plain,
                      sf_err *err) {
    sf_ids ids = {0};
    sf_buf back = {0};
    sf_code rc = sf_tokenizer_encode(t, text, len, plain, &ids, err);
    uint32_t n = rc == SF_OK ? (uint32_t)ids.len : UINT32_MAX;
    fwrite(&n, sizeof n, 1, stdout);
    if (rc == SF_OK) {
        if (n) fwrite(ids.data, sizeof *ids.data, n, stdout);
        rc = sf_tokenizer_decode(t, ids.data, ids.len, true, &back, err);
        if (rc == SF_OK) put(back.data, (uint32_t)back.len);
    } else {
        put(err->msg, (uint32_t)strlen(err->msg));
        rc = SF_OK;
    }
    sf_ids_fini(&ids);
    sf_buf_fini(&back);
    return rc;
}

static int fail(const sf_err *err) {
    char line[600];
    fprintf(stderr, "%s\n", sf_err_format(err, line, sizeof line));
    return 1;
}

int main(int argc, char **argv) {
    sf_tokenizer *t = NULL;
    sf_err err;
    uint32_t len;
    if (argc != 2) return 2;
    if (open_tokenizer(argv[1], &t, &err) != SF_OK) return fail(&err);
    sf_code rc = SF_OK;
    while (rc == SF_OK && fread(&len, sizeof len, 1, stdin) == 1) {
        int special = getchar();
        char *text = malloc((size_t)len + 1);
        uint8_t *zeros = calloc((size_t)len + 1, 1);
        if (!text || !zeros || fread(text, 1, len, stdin) != len)
            rc = SF_FAIL(&err, SF_IO, "input ends early");
        else
            rc = answer(t, text, len, special == 1 ? zeros : NULL, &err);
        free(text);
        free(zeros);
    }
    sf_tokenizer_close(t);
    return rc == SF_OK ? 0 : fail(&err);
}
