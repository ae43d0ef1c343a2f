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

static bool is_output(const sf_files *files, const char *path) {
    for (int i = 0; i < files->n; i++)
        if (strcmp(files->files[i].path, path) == 0) return true;
    return false;
}

/* Paths of kernels, from dir, that are not among files. */
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
            if (!path) return sf_arena_full(err);
            if (!is_output(files, path)) out[(*n)++] = path;
        }
    }
    return SF_OK;
}

/* Whether the text of a LOCK lists path as an output: "output <sha256> <path>". */
static bool is_locked(const char *lock, const char *path) {
    size_t len = strlen(path);
    for (const char *s = lock; *s; s += *s == '\n') {
        size_t line = strcspn(s, "\n"), head = strlen("output ") + 64 + 1;
        if (line == head + len && strncmp(s, "output ", 7) == 0 && strncmp(s + head, path, len) == 0)
            return true;
        s += line;
    }
    return false;
}

/* Every stale kernel must be one that this program wrote: what is removed is listed in the folder's LOCK. */
static sf_code check_stale(sf_arena *a, const char *dir, const char *const *stale, int n, sf_err *err) {
    sf_buf lock = {0};
    const char *path = sf_arena_printf(a, "%s/LOCK", dir);
    if (!path) return sf_arena_full(err);
    sf_code rc = SF_OK;
    if (access(path, F_OK) == 0) rc = sf_buf_read_file(&lock, path, FILE_MAX_BYTES, err);
    for (int i = 0; rc == SF_OK && i < n; i++)
        if (!lock.data || !is_locked(lock.data, stale[i]))
            rc = SF_FAIL_AT(
                err, SF_INVALID, ((sf_loc){sf_arena_printf(a, "%s/%s", dir, stale[i]), 0, 0}),
                "is in the way and no output that %s lists, expected only such (move it elsewhere)", path);
    sf_buf_fini(&lock);
    return rc;
}

sf_code sf_outdir_write(sf_arena *a, const char *dir, const sf_files *files, int *changed, sf_err *err) {
    const char *kernels = sf_arena_printf(a, "%s/kernels", dir);
    const char **stale = sf_arena_alloc(a, STALE_MAX, sizeof *stale);
    if (!kernels || !stale) return sf_arena_full(err);
    int n_stale = 0, count = 0;
    SF_TRY(list_stale(a, dir, files, stale, &n_stale, err));
    SF_TRY(check_stale(a, dir, stale, n_stale, err));
    SF_TRY(make_dirs(a, kernels, err));
    for (int i = 0; i < n_stale; i++, count++) { /* before LOCK forgets them */
        const char *path = sf_arena_printf(a, "%s/%s", dir, stale[i]);
        if (!path) return sf_arena_full(err);
        if (unlink(path) != 0) return io_error(path, err);
    }
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
        SF_TRY(sf_buf_printf(report, err, "%s/%s is not in the plan\n", dir, stale[i]));
    if (!count) return SF_OK;
    return SF_FAIL_AT(err, SF_DRIFT, ((sf_loc){dir, 0, 0}), "%d of %d files differ from their inputs", count,
                      files->n);
}
