#include "engine/proof.h"

#include "base/buf.h"
#include "base/cache_dir.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 1024

/* The file's text, and its path: named by the text's hash. */
static bool name_it(const char *dir, const char *fingerprint, const char *device, char path[4096],
                    char text[TEXT_MAX]) {
    char root[4096 - 80], hex[65];
    if (dir ? snprintf(root, sizeof root, "%s", dir) >= (int)sizeof root
            : !sf_cache_dir("proven", root, sizeof root))
        return false;
    const int n = snprintf(text, TEXT_MAX, "steadfast selftest passed: " SF_PROOF_SOURCES "\n%s\n%s\n",
                           fingerprint, device);
    if (n < 0 || n >= TEXT_MAX || !sf_sha256_of(text, (size_t)n, hex) || !sf_make_dirs(root)) return false;
    snprintf(path, 4096, "%s/%s", root, hex);
    return true;
}

bool sf_proof_known(const char *dir, const char *fingerprint, const char *device) {
    char path[4096], text[TEXT_MAX];
    sf_buf file = {0};
    sf_err err;
    if (!name_it(dir, fingerprint, device, path, text)) return false;
    const bool same =
        sf_buf_read_file(&file, path, TEXT_MAX, &err) == SF_OK && file.data && strcmp(file.data, text) == 0;
    sf_buf_fini(&file);
    return same;
}

bool sf_proof_keep(const char *dir, const char *fingerprint, const char *device) {
    char path[4096], temporary[4096 + 16], text[TEXT_MAX];
    if (!name_it(dir, fingerprint, device, path, text)) return false;
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    FILE *f = fopen(temporary, "w");
    if (!f) return false;
    const bool written = fputs(text, f) >= 0;
    const bool kept = fclose(f) == 0 && written && rename(temporary, path) == 0;
    if (!kept) (void)unlink(temporary);
    return kept;
}
