/* Word lists in messages. */
#ifndef SF_GEN_SUGGEST_H
#define SF_GEN_SUGGEST_H

#include <stddef.h>

/* The entry of words (NULL-terminated) closest to word, at most two edits away (Levenshtein); else NULL. */
const char *sf_suggest(const char *word, const char *const *words);
/* Writes "a, b or c", cut short with "..." where it does not fit; returns buf. size >= 8. */
const char *sf_join(const char *const *words, char *buf, size_t size);

#endif
