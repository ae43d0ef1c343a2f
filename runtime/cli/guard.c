#include "cli/guard.h"

#include "cli/cli.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A signal handler can reach nothing but a global. */
static const char *volatile mapped;

static void put(const char *s) {
    if (write(STDERR_FILENO, s, strlen(s)) < 0) _exit(SF_EXIT_FAILED);
}

static void on_bus(int number, siginfo_t *info, void *context) {
    (void)context;
    if (info->si_code != BUS_ADRERR) { /* a fault of ours: let it be seen as one */
        signal(number, SIG_DFL);
        return;
    }
    put("steadfast: ");
    put(mapped);
    put(": cannot read: the file became shorter, or its disk failed\n");
    _exit(SF_EXIT_FAILED);
}

void sf_cli_guard_mapping(const char *path) {
    struct sigaction bus = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    mapped = path;
    sigaction(SIGBUS, &bus, NULL);
}
