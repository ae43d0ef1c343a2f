#include "gpu/kit.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)4 << 20)

void kit_check(kit *k, bool ok, const char *what, const char *fmt, ...) {
    va_list ap;
    *(ok ? &k->passed : &k->failed) += 1;
    printf("%-4s %s: ", ok ? "ok" : "FAIL", what);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
}

void kit_expect(kit *k, sf_code rc, const sf_err *err, sf_code code, const char *words, const char *what) {
    char text[1024] = "succeeded";
    if (rc != SF_OK) sf_err_format(err, text, sizeof text);
    kit_check(k, rc == code && strstr(text, words), what, "[%s] %s", sf_code_text(rc), text);
}

char *kit_read(kit *k, const char *path) {
    char full[4096];
    sf_buf text = {0};
    sf_err err = {0};
    snprintf(full, sizeof full, "%s/%s", k->root, path);
    if (sf_buf_read_file(&text, full, FILE_MAX, &err) == SF_OK) return text.data;
    kit_check(k, false, "reading", "%s: %s", path, err.msg);
    sf_buf_fini(&text);
    return NULL;
}

static void read_headers(kit *k, const char *dir, const char *as, const char *ending) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", k->root, dir);
    DIR *d = opendir(path);
    if (!d) return;
    for (struct dirent *e; k->n_headers < KIT_HEADERS_MAX && (e = readdir(d));) {
        const size_t len = strlen(e->d_name), n = strlen(ending);
        if (len <= n || strcmp(e->d_name + len - n, ending) != 0) continue;
        char file[1024];
        snprintf(file, sizeof file, "%.512s/%s", dir, e->d_name);
        char *text = kit_read(k, file), *name = NULL;
        if (text && asprintf(&name, "%s/%s", as, e->d_name) > 0)
            k->headers[k->n_headers++] = (sf_cuda_header){name, text};
    }
    closedir(d);
}

sf_code kit_open(kit *k, const char *root, sf_err *err) {
    *k = (kit){.root = root};
    SF_TRY(sf_cu_open(&k->cu, err));
    SF_TRY(sf_gpu_open(&k->cu, 0, &k->gpu, err));
    SF_TRY(sf_nvrtc_open(&k->nvrtc, err));
    read_headers(k, "templates/snippets", "snippets", ".cuh");
    read_headers(k, "runtime/device/cuda", "device/cuda", ".h");
    return SF_OK;
}

void kit_close(kit *k) {
    for (int i = 0; i < k->n_headers; i++) {
        free((void *)(uintptr_t)k->headers[i].name);
        free((void *)(uintptr_t)k->headers[i].text);
    }
    sf_gpu_close(&k->gpu);
    sf_nvrtc_close(&k->nvrtc);
    sf_cu_close(&k->cu);
}

sf_code kit_compile(kit *k, const char *dir, const char *name, const char *arch, sf_cubin *cubin,
                    sf_err *err) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.cu", dir, name);
    char *text = kit_read(k, path);
    if (!text) return SF_FAIL(err, SF_IO, "cannot read %s.cu", name);
    const sf_cuda_source source = {name, name, NULL, text};
    const sf_code rc = sf_nvrtc_compile(&k->nvrtc, arch, &source, k->headers, k->n_headers, cubin, err);
    free(text);
    return rc;
}

sf_code kit_load(kit *k, const char *dir, const char *name, sf_cuda_kernel *out, sf_err *err) {
    sf_cubin cubin = {0};
    SF_TRY(kit_compile(k, dir, name, k->gpu.arch, &cubin, err));
    const sf_code rc = sf_cuda_kernel_load(&k->gpu, name, cubin.code.data, out, err);
    sf_cubin_fini(&cubin);
    return rc;
}
