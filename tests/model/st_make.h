/* Builds safetensors files, and directories of them, for tests. */
#ifndef TESTS_MODEL_ST_MAKE_H
#define TESTS_MODEL_ST_MAKE_H

#include "model/gguf_make.h"

#include <dirent.h>

/* A file of that header (length as it is) and n bytes of data: 0, 1, 2... */
static inline gm st_file(const char *json, size_t n) {
    gm m = {0};
    gm_str(&m, json);
    for (size_t i = 0; i < n; i++)
        gm_uint(&m, i, 1);
    return m;
}

/* A new directory; st_remove ends it. */
static inline void st_directory(char dir[64]) {
    snprintf(dir, 64, "/tmp/sf_st_XXXXXX");
    if (!mkdtemp(dir)) abort();
}

static inline void st_write(const char *dir, const char *name, const void *bytes, size_t len) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, len, f) != len || fclose(f) != 0) abort();
}

static inline void st_write_text(const char *dir, const char *name, const char *text) {
    st_write(dir, name, text, strlen(text));
}

/* Writes m and frees it. */
static inline void st_save(const char *dir, const char *name, gm m) {
    st_write(dir, name, m.data, m.len);
    gm_fini(&m);
}

static inline void st_unlink(const char *dir, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (unlink(path) != 0) abort();
}

static inline void st_remove(const char *dir) {
    DIR *d = opendir(dir);
    if (!d) abort();
    for (struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) st_unlink(dir, e->d_name);
    }
    closedir(d);
    if (rmdir(dir) != 0) abort();
}

#endif
