/* The least that loading can take: the bytes of a file read into fresh memory by a number of threads, and
 * nothing done with them. usage: bench-copy THREADS FILE... (prints the seconds for all of them) */
#include "base/pool.h"
#include "base/progress.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)512 << 10) /* as the loader's units */
#define HUGE  ((size_t)2 << 20)

typedef struct copy {
    int fd;
    uint8_t *to;
    size_t bytes;
    atomic_size_t next;
    atomic_bool failed;
} copy;

static void work(void *ctx, int part, int parts) {
    copy *c = ctx;
    (void)part, (void)parts;
    for (;;) {
        size_t at = atomic_fetch_add(&c->next, PIECE);
        if (at >= c->bytes) return;
        for (size_t end = at + PIECE < c->bytes ? at + PIECE : c->bytes; at < end;) {
            ssize_t got = pread(c->fd, c->to + at, end - at, (off_t)at);
            if (got <= 0) {
                atomic_store(&c->failed, true);
                return;
            }
            at += (size_t)got;
        }
    }
}

static bool copy_file(const char *path, sf_pool *pool) {
    struct stat st;
    copy c = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (c.fd < 0 || fstat(c.fd, &st) != 0 || st.st_size <= 0) return false;
    c.bytes = (size_t)st.st_size;
    size_t size = (c.bytes + HUGE - 1) / HUGE * HUGE;
    c.to = aligned_alloc(HUGE, size);
    if (!c.to) return false;
    (void)madvise(c.to, size, MADV_HUGEPAGE);
    sf_pool_run(pool, work, &c);
    free(c.to);
    close(c.fd);
    return !atomic_load(&c.failed);
}

int main(int argc, char **argv) {
    sf_pool *pool = NULL;
    sf_err err = {0};
    if (argc < 3 || sf_pool_create((int)strtol(argv[1], NULL, 10), &pool, &err) != SF_OK) {
        fprintf(stderr, "usage: bench-copy THREADS FILE...\n");
        return 2;
    }
    double began = sf_now_s();
    int bad = 0;
    for (int i = 2; i < argc; i++) {
        if (!copy_file(argv[i], pool)) {
            perror(argv[i]);
            bad = 1;
        }
    }
    printf("%.6f\n", sf_now_s() - began);
    sf_pool_destroy(pool);
    return bad;
}
