#include "model/jinja_arena_priv.h"

#include <stdlib.h>
#include <string.h>

struct sf_jchunk {
    struct sf_jchunk *next;
    size_t used, cap;
    _Alignas(16) char data[];
};

enum { CHUNK_BYTES = 16384 };

void sf_jarena_init(sf_jarena *a, size_t limit) {
    *a = (sf_jarena){.limit = limit};
}

void sf_jarena_fini(sf_jarena *a) {
    for (struct sf_jchunk *c = a->head, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    *a = (sf_jarena){0};
}

void *sf_jarena_get(sf_jarena *a, size_t bytes) {
    if (bytes > a->limit) return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    struct sf_jchunk *c = a->head;
    if (!c || c->cap - c->used < bytes) {
        size_t cap = bytes > CHUNK_BYTES / 4 ? bytes : CHUNK_BYTES;
        if (cap > a->limit - a->used) return NULL;
        struct sf_jchunk *fresh = malloc(sizeof *fresh + cap);
        a->refused = !fresh;
        if (!fresh) return NULL;
        *fresh = (struct sf_jchunk){.cap = cap};
        a->used += cap;
        if (c && cap == bytes) { /* a large block of its own goes behind the chunk still being filled */
            fresh->next = c->next;
            c->next = fresh;
        } else {
            fresh->next = c;
            a->head = fresh;
        }
        c = fresh;
    }
    void *p = c->data + c->used;
    c->used += bytes;
    memset(p, 0, bytes);
    return p;
}

sf_code sf_jarena_code(const sf_jarena *a) {
    return a->refused ? SF_NOMEM : SF_FULL;
}
