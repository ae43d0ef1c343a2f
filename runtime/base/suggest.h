/* "Did you mean": the known word nearest to one that is not known. */
#ifndef SF_BASE_SUGGEST_H
#define SF_BASE_SUGGEST_H

/* The entry of words (NULL-terminated) closest to word, at most two edits away (Levenshtein); else NULL. */
const char *sf_suggest(const char *word, const char *const *words);

#endif
