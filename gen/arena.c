#include "arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
    struct block *next;
    max_align_t data[];
} block;

struct sf_arena {
    block *blocks;
};

sf_arena *sf_arena_create(void) {
    return calloc(1, sizeof(sf_arena));
}

void sf_arena_destroy(sf_arena *a) {
    if (!a) return;
    while (a->blocks) {
        block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
    free(a);
}

void *sf_arena_alloc(sf_arena *a, size_t count, size_t size) {
    if (size && count > (SIZE_MAX - sizeof(block)) / size) return NULL;
    block *b = calloc(1, sizeof(block) + count * size);
    if (!b) return NULL;
    b->next = a->blocks;
    a->blocks = b;
    return b->data;
}

char *sf_arena_text(sf_arena *a, const char *s, size_t len) {
    if (len == SIZE_MAX) return NULL;
    char *copy = sf_arena_alloc(a, len + 1, 1);
    if (copy && len) memcpy(copy, s, len);
    return copy;
}

char *sf_arena_printf(sf_arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) return NULL;
    char *text = sf_arena_alloc(a, (size_t)n + 1, 1);
    if (!text) return NULL;
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return text;
}

sf_code sf_arena_full(sf_err *err) {
    return SF_FAIL(err, SF_NOMEM, "out of memory");
}
