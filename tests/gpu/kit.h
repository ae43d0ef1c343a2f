/* What the GPU's tests share: sources read from the tree, and a count of checks. */
#ifndef SF_TESTS_GPU_KIT_H
#define SF_TESTS_GPU_KIT_H

#include "device/cuda/build.h"
#include "device/cuda/graph.h"

#define KIT_HEADERS_MAX 64

typedef struct kit {
    const char *root;
    sf_cu cu;
    sf_gpu gpu;
    sf_nvrtc nvrtc;
    sf_cuda_header headers[KIT_HEADERS_MAX];
    int n_headers;
    int passed, failed;
} kit;

/* Opens the GPU and NVRTC, reads the snippets under root. */
SF_CHECKED sf_code kit_open(kit *k, const char *root, sf_err *err);
void kit_close(kit *k);

/* Counts and prints a check: "ok   what: detail" or "FAIL what: detail". */
void kit_check(kit *k, bool ok, const char *what, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The call must have failed with that code, and its message hold the words. */
void kit_expect(kit *k, sf_code rc, const sf_err *err, sf_code code, const char *words, const char *what);

/* A file under root, to be freed; NULL (and a failed check) where it cannot be read. */
char *kit_read(kit *k, const char *path);
/* Compiles root/dir/<name>.cu for an architecture; kit_load also loads its kernel <name>. */
SF_CHECKED sf_code kit_compile(kit *k, const char *dir, const char *name, const char *arch, sf_cubin *cubin,
                               sf_err *err);
SF_CHECKED sf_code kit_load(kit *k, const char *dir, const char *name, sf_cuda_kernel *out, sf_err *err);

#endif
