#include "cli/output.h"

#include "cli/setup.h"
#include "cli/warn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define TICK_MS  100  /* how soon a signal is seen */
#define GRACE_MS 1000 /* what a reader gets to take a line whole after a signal */

static sf_code fail(const sf_output *o, const char *what, sf_err *err) {
    return SF_FAIL_AT(err, SF_IO, ((sf_loc){o->name, 0, 0}), "cannot %s: %s", what, strerror(errno));
}

sf_code sf_output_open(sf_output *o, const char *path, sf_err *err) {
    *o = (sf_output){.fd = STDOUT_FILENO, .name = "stdout"};
    if (strcmp(path, "-") == 0) return SF_OK;
    o->name = path;
    struct stat st;
    o->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    o->created = o->fd >= 0;
    if (!o->created) o->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (o->fd < 0) return fail(o, "open", err);
    sf_code rc = fstat(o->fd, &st) == 0 ? SF_OK : fail(o, "open", err);
    o->regular = rc == SF_OK && S_ISREG(st.st_mode);
    if (rc == SF_OK) o->device = st.st_dev, o->inode = st.st_ino;
    /* Not every file system has locks: only a lock that is held by another is an error. */
    if (o->regular && flock(o->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        rc = SF_FAIL_AT(err, SF_IO, ((sf_loc){path, 0, 0}), "another process is writing this file");
    if (rc != SF_OK) {
        close(o->fd);
        o->fd = -1;
    }
    return rc;
}

void sf_output_discard(const sf_output *o) {
    struct stat st;
    if (!o->created || o->bytes > 0 || lstat(o->name, &st) != 0) return;
    if (st.st_dev != o->device || st.st_ino != o->inode || st.st_size > 0) return;
    unlink(o->name); /* best effort: an empty file that stays does no harm */
}

sf_code sf_output_empty(sf_output *o, sf_err *err) {
    return !o->regular || ftruncate(o->fd, 0) == 0 ? SF_OK : fail(o, "empty", err);
}

/* Waits until a write of PIPE_BUF bytes will not block. False: a signal came and the reader takes no more. A
 * blocking write would sleep through a signal that comes just before it. */
static bool wait_for_room(const sf_output *o) {
    for (int waited = 0; !o->regular;) {
        struct pollfd p = {.fd = o->fd, .events = POLLOUT};
        int n = poll(&p, 1, TICK_MS);
        if (n > 0 || (n < 0 && errno != EINTR)) return true; /* what is wrong, the write says */
        if (!sf_cli_signalled()) continue;
        if (waited >= GRACE_MS) return false;
        waited += TICK_MS;
    }
    return true;
}

/* Writes from byte `at` of text and its ending on; as write. */
static ssize_t write_part(const sf_output *o, const char *text, size_t len, size_t at, const char *end) {
    size_t left = at < len ? len - at : 0;
    if (!o->regular && left >= PIPE_BUF) return write(o->fd, text + at, PIPE_BUF);
    struct iovec parts[2] = {{(void *)(uintptr_t)(text + len - left), left},
                             {(void *)(uintptr_t)end, strlen(end)}};
    return writev(o->fd, parts, 2);
}

static sf_code stop(sf_output *o, size_t at, int why, sf_err *err) {
    o->broken = true;
    o->partial = at > 0;
    /* best effort: the write has failed already */
    if (o->partial && o->regular) o->partial = ftruncate(o->fd, (off_t)o->bytes) != 0;
    sf_loc loc = {o->name, 0, 0};
    if (why == EINTR)
        return SF_FAIL_AT(err, SF_CANCELLED, loc, "interrupted; it holds %lld whole line%s",
                          (long long)o->lines, sf_cli_s(o->lines));
    return SF_FAIL_AT(err, SF_IO, loc, "cannot write: %s; it holds %lld whole line%s", strerror(why),
                      (long long)o->lines, sf_cli_s(o->lines));
}

static sf_code put(sf_output *o, const char *text, size_t len, const char *end, sf_err *err) {
    size_t at = 0, all = len + strlen(end);
    while (at < all) {
        if (!wait_for_room(o)) return stop(o, at, EINTR, err);
        ssize_t n = write_part(o, text, len, at, end);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return stop(o, at, n < 0 ? errno : ENOSPC, err);
        at += (size_t)n;
    }
    o->bytes += (int64_t)at;
    return SF_OK;
}

sf_code sf_output_line(sf_output *o, const char *text, sf_err *err) {
    SF_TRY(put(o, text, strlen(text), "\n", err));
    o->lines++;
    return SF_OK;
}

sf_code sf_output_bytes(sf_output *o, const char *text, size_t len, sf_err *err) {
    return put(o, text, len, "", err);
}

sf_code sf_output_close(sf_output *o, sf_err *err) {
    int fd = o->fd;
    o->fd = -1;
    if (fd < 0 || fd == STDOUT_FILENO) return SF_OK;
    return close(fd) == 0 ? SF_OK : fail(o, "close", err);
}
