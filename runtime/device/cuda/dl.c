#include "device/cuda/dl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void *open_first(const char *const *names, const char **name, sf_err *err) {
    char why[200] = "";
    for (int i = 0; names[i]; i++) {
        /* Not unloaded by dlclose: the vendor's libraries leave threads, exit handlers and memory behind. */
        void *lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (lib) {
            *name = names[i];
            return lib;
        }
        const char *text = dlerror();
        if (!why[0] && text) strncat(why, text, sizeof why - 1);
    }
    (void)SF_FAIL(err, SF_UNSUPPORTED, "%s is not on this machine: %s", names[0], why);
    return NULL;
}

sf_code sf_dl_open(const char *const *names, const sf_dl_symbol *symbols, int n, void *table, void **lib,
                   sf_err *err) {
    const char *name = NULL;
    void *opened = open_first(names, &name, err);
    if (!opened) return SF_UNSUPPORTED;
    void **found = calloc((size_t)n, sizeof *found);
    sf_code rc = SF_OK;
    if (!found) {
        rc = SF_FAIL(err, SF_NOMEM, "no memory for the functions of %s", name);
        goto done;
    }
    for (int i = 0; i < n; i++) {
        found[i] = dlsym(opened, symbols[i].name);
        if (!found[i]) {
            rc = SF_FAIL(err, SF_UNSUPPORTED, "%s lacks %s: it is too old", name, symbols[i].name);
            goto done;
        }
    }
    for (int i = 0; i < n; i++) /* POSIX: an object pointer from dlsym is a function's address */
        memcpy((char *)table + symbols[i].at, found + i, sizeof *found);
    *lib = opened;
    opened = NULL;
done:
    free(found);
    sf_dl_close(opened);
    return rc;
}

void sf_dl_close(void *lib) {
    if (lib) dlclose(lib);
}
