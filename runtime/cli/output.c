#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static sf_code fail(const sf_output *o, const char *what, sf_err *err) {
    return SF_FAIL_AT(err, SF_IO, ((sf_loc){o->name, 0, 0}), "cannot %s: %s", what, strerror(errno));
}

sf_code sf_output_open(sf_output *o, const char *path, const char *not_path, sf_err *err) {
    *o = (sf_output){.fd = STDOUT_FILENO, .name = "stdout"};
    if (strcmp(path, "-") == 0) return SF_OK;
    o->name = path;
    struct stat st, other;
    o->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (o->fd < 0 || fstat(o->fd, &st) != 0) return fail(o, "open", err);
    if (not_path && stat(not_path, &other) == 0 && S_ISREG(st.st_mode) && st.st_dev == other.st_dev &&
        st.st_ino == other.st_ino) {
        close(o->fd);
        return SF_FAIL(err, SF_INVALID, "--output %s is the input file, expected another", path);
    }
    o->regular = S_ISREG(st.st_mode);
    if (!o->regular || ftruncate(o->fd, 0) == 0) return SF_OK;
    sf_code rc = fail(o, "empty", err);
    close(o->fd);
    return rc;
}

sf_code sf_output_line(sf_output *o, const char *text, sf_err *err) {
    size_t len = strlen(text), at = 0;
    while (at < len + 1) {
        struct iovec parts[2] = {{(void *)(uintptr_t)(text + (at < len ? at : len)), at < len ? len - at : 0},
                                 {(void *)(uintptr_t) "\n", 1}};
        ssize_t n = writev(o->fd, parts, 2);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            int why = n < 0 ? errno : ENOSPC;
            o->broken = true;
            /* best effort: the write has failed already */
            if (o->regular && at > 0 && ftruncate(o->fd, (off_t)o->bytes) != 0) o->regular = false;
            return SF_FAIL_AT(err, SF_IO, ((sf_loc){o->name, 0, 0}),
                              "cannot write: %s; it holds %lld whole lines", strerror(why),
                              (long long)o->lines);
        }
        at += (size_t)n;
    }
    o->lines++;
    o->bytes += (int64_t)at;
    return SF_OK;
}

sf_code sf_output_close(sf_output *o, sf_err *err) {
    int fd = o->fd;
    o->fd = -1;
    if (fd < 0 || fd == STDOUT_FILENO) return SF_OK;
    return close(fd) == 0 ? SF_OK : fail(o, "close", err);
}

sf_code sf_output_file(const char *path, const char *text, sf_err *err) {
    sf_output o;
    SF_TRY(sf_output_open(&o, path, NULL, err));
    sf_code rc = sf_output_line(&o, text, err);
    if (rc == SF_OK) return sf_output_close(&o, err);
    if (o.fd != STDOUT_FILENO) close(o.fd); /* the write's error is the one to tell */
    return rc;
}
