#include "device/cuda/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache_dir.h"
#include "base/hash.h"

#define FILE_MAX ((size_t)64 << 20)
#define DIR_MAX  (4096 - 128) /* room for a file's name */

/* Head of a file; the log and the code follow. Only this machine reads it, so numbers are in its own order.
 */
typedef struct head {
    char magic[16];
    char key[64];
    uint64_t log, code; /* bytes of each */
    char hash[64];      /* SHA-256 of the key, the log and the code, each with its length */
} head;

static const char magic[16] = "steadfast cubin";

struct sf_cubin_cache {
    char dir[DIR_MAX];
    pthread_mutex_t lock; /* the rest */
    sf_cubin_cache_stats stats;
    unsigned turn; /* tells temporary files of one process apart */
    char note[512];
    bool noted;
};

/* ---- the key ---- */

sf_code sf_cubin_key(const sf_nvrtc *n, const char *arch, const sf_cuda_source *source,
                     const sf_cuda_header *headers, int n_headers, char key[65], sf_err *err) {
    const char *options[SF_NVRTC_OPTIONS_MAX];
    char arch_option[64], count[16];
    sf_sha256 *h = sf_sha256_create();
    if (!h) return SF_FAIL(err, SF_NOMEM, "no memory for a hash");
    const int n_options = sf_nvrtc_options(n, arch, arch_option, options);
    sf_sha256_add_str(h, magic);
    sf_sha256_add_str(h, n->build);
    sf_sha256_add_str(h, arch);
    for (int i = 0; i < n_options; i++)
        sf_sha256_add_str(h, options[i]);
    sf_sha256_add_str(h, source->file); /* stands in the log */
    sf_sha256_add_str(h, source->text);
    snprintf(count, sizeof count, "%d", n_headers);
    sf_sha256_add_str(h, count);
    for (int i = 0; i < n_headers; i++) {
        sf_sha256_add_str(h, headers[i].name);
        sf_sha256_add_str(h, headers[i].text);
    }
    sf_sha256_hex(h, key);
    sf_sha256_destroy(h);
    return SF_OK;
}

static bool hash_of(const char *key, const void *log, size_t log_len, const void *code, size_t code_len,
                    char out[65]) {
    const uint64_t lens[2] = {log_len, code_len};
    sf_sha256 *h = sf_sha256_create();
    if (!h) return false;
    sf_sha256_add(h, key, 64);
    sf_sha256_add(h, lens, sizeof lens);
    sf_sha256_add(h, log, log_len);
    sf_sha256_add(h, code, code_len);
    sf_sha256_hex(h, out);
    sf_sha256_destroy(h);
    return true;
}

/* ---- the directory ---- */

static void note(sf_cubin_cache *c, const char *what, const char *why) {
    pthread_mutex_lock(&c->lock);
    if (!c->note[0])
        snprintf(c->note, sizeof c->note, "compiled kernels are not kept: %s %.300s: %s", what, c->dir, why);
    pthread_mutex_unlock(&c->lock);
}

sf_code sf_cubin_cache_create(const char *root, sf_cubin_cache **out, sf_err *err) {
    sf_cubin_cache *c = calloc(1, sizeof *c);
    if (!c) return SF_FAIL(err, SF_NOMEM, "no memory for the kernel cache");
    pthread_mutex_init(&c->lock, NULL);
    const bool named = root ? snprintf(c->dir, DIR_MAX, "%s", root) < DIR_MAX && root[0]
                            : sf_cache_dir("cubin", c->dir, DIR_MAX);
    if (!named) {
        c->dir[0] = 0;
        note(c, "no directory is known", "HOME is not set, or a path is too long");
    } else if (!sf_make_dirs(c->dir)) {
        note(c, "cannot make", strerror(errno));
    }
    *out = c;
    return SF_OK;
}

void sf_cubin_cache_destroy(sf_cubin_cache *c) {
    if (!c) return;
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- reading ---- */

static bool take_file(const sf_buf *file, const char *key, sf_cubin *out) {
    head h;
    char hash[65];
    if (file->len < sizeof h) return false;
    memcpy(&h, file->data, sizeof h);
    const size_t rest = file->len - sizeof h;
    if (memcmp(h.magic, magic, sizeof magic) != 0 || memcmp(h.key, key, sizeof h.key) != 0 || h.log > rest ||
        h.code != rest - h.log || h.code == 0)
        return false;
    const char *log = file->data + sizeof h, *code = log + h.log;
    if (!hash_of(key, log, h.log, code, h.code, hash) || memcmp(hash, h.hash, sizeof h.hash) != 0)
        return false;
    sf_cubin c = {.cached = true};
    if (sf_buf_append(&c.log, log, h.log, NULL) != SF_OK ||
        sf_buf_append(&c.code, code, h.code, NULL) != SF_OK) {
        sf_cubin_fini(&c);
        return false;
    }
    sf_cuda_report_parse(&c.report, c.log.len ? c.log.data : "");
    *out = c;
    return true;
}

bool sf_cubin_cache_find(sf_cubin_cache *c, const char *key, sf_cubin *out) {
    char path[DIR_MAX + 128];
    sf_buf file = {0};
    bool found = false, there = false;
    if (c->dir[0]) {
        snprintf(path, sizeof path, "%s/%s", c->dir, key);
        there = access(path, F_OK) == 0;
        found = there && sf_buf_read_file(&file, path, FILE_MAX, NULL) == SF_OK && take_file(&file, key, out);
    }
    sf_buf_fini(&file);
    pthread_mutex_lock(&c->lock);
    c->stats.hits += found;
    c->stats.misses += !found;
    c->stats.damaged += there && !found;
    pthread_mutex_unlock(&c->lock);
    return found;
}

/* ---- writing ---- */

static bool write_all(int fd, const void *data, size_t len) {
    const char *at = data;
    while (len > 0) {
        const ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* Writes all of the file beside its place and moves it there: rename is atomic for readers and for other
 * writers. */
static bool write_file(const char *path, const char *temporary, const head *h, const sf_cubin *cubin) {
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    bool ok = write_all(fd, h, sizeof *h) && write_all(fd, cubin->log.data, h->log) &&
              write_all(fd, cubin->code.data, h->code);
    ok = close(fd) == 0 && ok;
    ok = ok && rename(temporary, path) == 0;
    if (!ok) {
        const int why = errno;
        unlink(temporary);
        errno = why;
    }
    return ok;
}

void sf_cubin_cache_put(sf_cubin_cache *c, const char *key, const sf_cubin *cubin) {
    char path[DIR_MAX + 128], temporary[DIR_MAX + 128], hash[65];
    head h = {.log = cubin->log.len, .code = cubin->code.len};
    bool ok = false;
    pthread_mutex_lock(&c->lock);
    const unsigned turn = c->turn++;
    pthread_mutex_unlock(&c->lock);
    if (c->dir[0] && hash_of(key, cubin->log.data, h.log, cubin->code.data, h.code, hash)) {
        memcpy(h.magic, magic, sizeof magic);
        memcpy(h.key, key, sizeof h.key);
        memcpy(h.hash, hash, sizeof h.hash);
        snprintf(path, sizeof path, "%s/%s", c->dir, key);
        snprintf(temporary, sizeof temporary, "%s/%.16s-%d-%u.new", c->dir, key, (int)getpid(), turn);
        ok = write_file(path, temporary, &h, cubin);
        if (!ok) note(c, "cannot write to", strerror(errno));
    }
    if (ok) return;
    pthread_mutex_lock(&c->lock);
    c->stats.unwritten++;
    pthread_mutex_unlock(&c->lock);
}

sf_cubin_cache_stats sf_cubin_cache_stats_get(sf_cubin_cache *c) {
    pthread_mutex_lock(&c->lock);
    const sf_cubin_cache_stats s = c->stats;
    pthread_mutex_unlock(&c->lock);
    return s;
}

const char *sf_cubin_cache_note_take(sf_cubin_cache *c) {
    pthread_mutex_lock(&c->lock);
    const char *text = c->note[0] && !c->noted ? c->note : NULL;
    c->noted = c->noted || text;
    pthread_mutex_unlock(&c->lock);
    return text;
}
