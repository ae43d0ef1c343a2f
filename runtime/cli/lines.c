#include "cli/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_SIZE ((size_t)1 << 16)
#define WAIT_MS   100

sf_code sf_lines_open(sf_lines *l, const char *path, sf_err *err) {
    bool std = strcmp(path, "-") == 0;
    *l = (sf_lines){.fd = STDIN_FILENO, .name = std ? "stdin" : path};
    if (!std) l->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (l->fd >= 0) return SF_OK;
    return SF_FAIL_AT(err, SF_IO, ((sf_loc){path, 0, 0}), "cannot open: %s", strerror(errno));
}

void sf_lines_close(sf_lines *l) {
    if (l->fd > STDIN_FILENO) close(l->fd);
    l->fd = -1;
    sf_buf_fini(&l->buf);
}

/* Not for good: a signal that comes just before poll would not end it. */
static bool readable(int fd, bool wait) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, wait ? WAIT_MS : 0) > 0;
}

/* Drops what was given out, then reads once. got 0 with eof false: nothing there yet. */
static sf_code fill(sf_lines *l, bool wait, size_t *got, sf_err *err) {
    *got = 0;
    if (!readable(l->fd, wait)) return SF_OK;
    if (l->start > 0) {
        memmove(l->buf.data, l->buf.data + l->start, l->buf.len - l->start);
        l->buf.len -= l->start;
        l->start = 0;
    }
    SF_TRY(sf_buf_reserve(&l->buf, READ_SIZE, err));
    ssize_t n = read(l->fd, l->buf.data + l->buf.len, READ_SIZE);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return SF_OK;
    if (n < 0) return SF_FAIL_AT(err, SF_IO, ((sf_loc){l->name, 0, 0}), "cannot read: %s", strerror(errno));
    l->eof = n == 0;
    l->buf.len += (size_t)n;
    *got = (size_t)n;
    return SF_OK;
}

static bool is_blank(const char *s, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r') return false;
    return true;
}

/* Takes one line out of what has been read. False: no whole line there (at the end the rest is one). */
static bool take(sf_lines *l, const char **text, size_t *len) {
    size_t left = l->buf.len - l->start, fresh = left - l->scanned;
    const char *from = left ? l->buf.data + l->start : NULL;
    const char *end = fresh ? memchr(from + l->scanned, '\n', fresh) : NULL;
    l->scanned = left; /* a long line comes in many reads: none of it is looked through twice */
    if (!end && !(l->eof && left > 0)) return false;
    *text = from;
    *len = end ? (size_t)(end - from) : left;
    l->start += *len + (end != NULL);
    l->scanned = 0;
    l->line++;
    return true;
}

sf_code sf_lines_next(sf_lines *l, bool wait, sf_lines_state *state, const char **text, size_t *len,
                      sf_err *err) {
    for (;;) {
        while (take(l, text, len)) {
            bool was_long = l->skipping || *len > SF_LINE_MAX;
            l->skipping = false;
            if (!was_long && is_blank(*text, *len)) continue;
            *state = was_long ? SF_LINES_LONG : SF_LINES_LINE;
            return SF_OK;
        }
        if (l->eof) {
            *state = SF_LINES_END;
            return SF_OK;
        }
        if (l->buf.len - l->start > SF_LINE_MAX) { /* keep nothing of it but the fact */
            l->skipping = true;
            l->buf.len = l->start = l->scanned = 0;
        }
        size_t got;
        SF_TRY(fill(l, wait, &got, err));
        if (got == 0 && !l->eof) {
            *state = SF_LINES_AGAIN;
            return SF_OK;
        }
    }
}

uint64_t sf_lines_count(const char *path) {
    struct stat st;
    if (strcmp(path, "-") == 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    char chunk[READ_SIZE];
    uint64_t lines = 0;
    bool content = false;
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) > 0;) {
        for (ssize_t i = 0; i < n; i++) {
            bool end = chunk[i] == '\n';
            lines += end && content;
            content = !end && (content || !is_blank(&chunk[i], 1));
        }
    }
    close(fd);
    return lines + content;
}
