#include "base/hash.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sf_sha256 {
    EVP_MD_CTX *ctx;
};

sf_sha256 *sf_sha256_create(void) {
    sf_sha256 *h = malloc(sizeof *h);
    if (!h) return NULL;
    h->ctx = EVP_MD_CTX_new();
    if (!h->ctx || EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1) {
        sf_sha256_destroy(h);
        return NULL;
    }
    return h;
}

void sf_sha256_destroy(sf_sha256 *h) {
    if (!h) return;
    EVP_MD_CTX_free(h->ctx);
    free(h);
}

void sf_sha256_add(sf_sha256 *h, const void *data, size_t len) {
    EVP_DigestUpdate(h->ctx, data, len);
}

void sf_sha256_add_str(sf_sha256 *h, const char *s) {
    uint64_t len = s ? strlen(s) : 0;
    sf_sha256_add(h, &len, sizeof len);
    if (len) sf_sha256_add(h, s, (size_t)len);
}

void sf_sha256_hex(sf_sha256 *h, char out[65]) {
    unsigned char md[32];
    EVP_DigestFinal_ex(h->ctx, md, NULL);
    EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL);
    for (int i = 0; i < 32; i++)
        snprintf(out + 2 * i, 3, "%02x", md[i]);
}

int sf_sha256_of(const void *data, size_t len, char out[65]) {
    sf_sha256 *h = sf_sha256_create();
    if (!h) return 0;
    sf_sha256_add(h, data, len);
    sf_sha256_hex(h, out);
    sf_sha256_destroy(h);
    return 1;
}
