#include "outdir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES ((size_t)64 << 20)
#define STALE_MAX      1024

typedef enum state { SAME, DIFFERENT, MISSING } state;

static sf_code io_error(const char *path, sf_err *err) {
    int e = errno;
    return SF_FAIL_AT(err, e == ENOMEM ? SF_NOMEM : SF_IO, ((sf_loc){path, 0, 0}), "%s", strerror(e));
}

static sf_code make_dirs(sf_arena *a, const char *path, sf_err *err) {
    char *p = sf_arena_text(a, path, strlen(path));
    if (!p) return sf_arena_full(err);
    for (char *s = p; *s; s++) {
        if (*s != '/' || s == p) continue;
        *s = 0;
        if (mkdir(p, 0777) != 0 && errno != EEXIST) return io_error(p, err);
        *s = '/';
    }
    if (mkdir(p, 0777) != 0 && errno != EEXIST) return io_error(path, err);
    return SF_OK;
}

static sf_code compare(const char *path, const sf_file *f, state *out, sf_err *err) {
    struct stat st;
    if (stat(path, &st) != 0) {
        if (errno != ENOENT && errno != ENOTDIR) return io_error(path, err);
        *out = MISSING;
        return SF_OK;
    }
    sf_buf b = {0};
    sf_code rc = sf_buf_read_file(&b, path, FILE_MAX_BYTES, err);
    if (rc == SF_OK)
        *out = b.len == f->len && (!f->len || memcmp(b.data, f->text, f->len) == 0) ? SAME : DIFFERENT;
    sf_buf_fini(&b);
    return rc;
}

static sf_code write_whole(const char *path, const sf_file *f, sf_err *err) {
    FILE *out = fopen(path, "wb");
    if (!out) return io_error(path, err);
    bool ok = fwrite(f->text, 1, f->len, out) == f->len;
    ok = fflush(out) == 0 && ok; /* a full disk may show only here */
    if (fclose(out) == 0 && ok) return SF_OK;
    sf_code rc = io_error(path, err);
    unlink(path);
    return rc;
}

static sf_code replace(sf_arena *a, const char *path, const sf_file *f, sf_err *err) {
    const char *tmp = sf_arena_printf(a, "%s.tmp", path);
    if (!tmp) return sf_arena_full(err);
    SF_TRY(write_whole(tmp, f, err));
    if (rename(tmp, path) == 0) return SF_OK;
    sf_code rc = io_error(path, err);
    unlink(tmp);
    return rc;
}

/* Paths of kernels in dir that are not among files. */
static sf_code list_stale(sf_arena *a, const char *dir, const sf_files *files, const char **out, int *n,
                          sf_err *err) {
    static const char *const suffixes[] = {".c", ".cu"};
    const char *kernels = sf_arena_printf(a, "%s/kernels", dir);
    const char **names = sf_arena_alloc(a, STALE_MAX, sizeof *names);
    if (!kernels || !names) return sf_arena_full(err);
    *n = 0;
    for (size_t s = 0; s < 2; s++) {
        int found = 0;
        SF_TRY(sf_inputs_list(a, kernels, suffixes[s], STALE_MAX, names, &found, err));
        for (int i = 0; i < found && *n < STALE_MAX; i++) {
            const char *path = sf_arena_printf(a, "kernels/%s", names[i]);
            bool known = false;
            if (!path) return sf_arena_full(err);
            for (int j = 0; j < files->n; j++)
                known = known || strcmp(files->files[j].path, path) == 0;
            if (known) continue;
            out[*n] = sf_arena_printf(a, "%s/%s", dir, path);
            if (!out[(*n)++]) return sf_arena_full(err);
        }
    }
    return SF_OK;
}

sf_code sf_outdir_write(sf_arena *a, const char *dir, const sf_files *files, int *changed, sf_err *err) {
    const char *kernels = sf_arena_printf(a, "%s/kernels", dir);
    const char **stale = sf_arena_alloc(a, STALE_MAX, sizeof *stale);
    if (!kernels || !stale) return sf_arena_full(err);
    int n_stale = 0, count = 0;
    SF_TRY(make_dirs(a, kernels, err));
    for (int i = 0; i < files->n; i++) {
        const sf_file *f = &files->files[i];
        const char *path = sf_arena_printf(a, "%s/%s", dir, f->path);
        state st = SAME;
        if (!path) return sf_arena_full(err);
        SF_TRY(compare(path, f, &st, err));
        if (st == SAME) continue;
        SF_TRY(replace(a, path, f, err));
        count++;
    }
    SF_TRY(list_stale(a, dir, files, stale, &n_stale, err));
    for (int i = 0; i < n_stale; i++) {
        if (unlink(stale[i]) != 0) return io_error(stale[i], err);
        count++;
    }
    *changed = count;
    return SF_OK;
}

sf_code sf_outdir_check(sf_arena *a, const char *dir, const sf_files *files, sf_buf *report, sf_err *err) {
    const char *kernels = sf_arena_printf(a, "%s/kernels", dir);
    const char **stale = sf_arena_alloc(a, STALE_MAX, sizeof *stale);
    if (!kernels || !stale) return sf_arena_full(err);
    int n_stale = 0, count = 0;
    for (int i = 0; i < files->n; i++) {
        const sf_file *f = &files->files[i];
        const char *path = sf_arena_printf(a, "%s/%s", dir, f->path);
        const char *beside = sf_arena_printf(a, "%s/%s.new", dir, f->path);
        state st = SAME;
        if (!path || !beside) return sf_arena_full(err);
        SF_TRY(compare(path, f, &st, err));
        if (st == SAME) {
            unlink(beside); /* of an earlier check */
            continue;
        }
        SF_TRY(make_dirs(a, kernels, err));
        SF_TRY(write_whole(beside, f, err));
        SF_TRY(sf_buf_printf(report, err, "%s %s, see %s.new\n", path,
                             st == MISSING ? "is missing" : "differs", path));
        count++;
    }
    SF_TRY(list_stale(a, dir, files, stale, &n_stale, err));
    for (int i = 0; i < n_stale; i++, count++)
        SF_TRY(sf_buf_printf(report, err, "%s is not in the plan\n", stale[i]));
    if (!count) return SF_OK;
    return SF_FAIL_AT(err, SF_DRIFT, ((sf_loc){dir, 0, 0}), "%d of %d files differ from their inputs", count,
                      files->n);
}
