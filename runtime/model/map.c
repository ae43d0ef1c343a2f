#include "model/map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

sf_code sf_map_open(const char *path, sf_map *out, sf_err *err) {
    sf_code rc = SF_OK;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block the open */
    if (fd < 0) return SF_FAIL(err, SF_IO, "%s", strerror(errno));
    if (fstat(fd, &st) != 0) {
        rc = SF_FAIL(err, SF_IO, "%s", strerror(errno));
        goto done;
    }
    if (!S_ISREG(st.st_mode)) {
        rc = SF_FAIL(err, SF_IO, "not a regular file");
        goto done;
    }
    if (st.st_size == 0) {
        rc = SF_FAIL(err, SF_FORMAT, "it is empty");
        goto done;
    }
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        rc = SF_FAIL(err, SF_IO, "mapping %zu bytes: %s", (size_t)st.st_size, strerror(errno));
        goto done;
    }
    *out = (sf_map){p, (size_t)st.st_size, fd};
    return SF_OK;
done:
    close(fd);
    return rc;
}

void sf_map_close(sf_map *m) {
    if (m->fd < 0) return;
    munmap((void *)(uintptr_t)m->base, m->len);
    close(m->fd);
    *m = SF_MAP_NONE;
}
