#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>

void sf_fds_open_std(void) {
    /* The direction that nobody uses: input that reads as empty and output that vanishes would look like
     * success.
     */
    static const int modes[3] = {O_WRONLY, O_RDONLY, O_RDWR};
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        if (open("/dev/null", modes[fd]) != fd) return; /* the lowest free number, or there is no /dev/null */
    }
}
