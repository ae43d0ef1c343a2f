#include "suggest.h"

#include <stdio.h>
#include <string.h>

const char *sf_join(const char *const *words, char *buf, size_t size) {
    size_t len = 0;
    buf[0] = 0;
    for (int i = 0; words[i]; i++) {
        const char *sep = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        size_t need = strlen(sep) + strlen(words[i]);
        if (len + need + 8 > size) {
            snprintf(buf + len, size - len, ", ...");
            return buf;
        }
        snprintf(buf + len, size - len, "%s%s", sep, words[i]);
        len += need;
    }
    return buf;
}
