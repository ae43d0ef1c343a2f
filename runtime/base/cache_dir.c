#include "base/cache_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

bool sf_cache_dir(const char *name, char *out, size_t size) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;
    if (xdg && xdg[0] == '/')
        n = snprintf(out, size, "%s/steadfast/%s", xdg, name);
    else if (home && home[0])
        n = snprintf(out, size, "%s/.cache/steadfast/%s", home, name);
    return n > 0 && (size_t)n < size;
}

bool sf_make_dirs(char *path) {
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at != 0) continue;
        const char was = *at;
        *at = 0;
        const bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        *at = was;
        if (!made) return false;
        if (!was) return true;
    }
}
