#include "base/suggest.h"

#include <string.h>

enum { WORD_MAX = 48 };

static int min3(int a, int b, int c) {
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Levenshtein distance with two rows; words longer than WORD_MAX count as far away. */
static int distance(const char *a, const char *b) {
    size_t na = strlen(a), nb = strlen(b);
    if (na > WORD_MAX || nb > WORD_MAX) return WORD_MAX;
    int row[WORD_MAX + 1];
    for (size_t j = 0; j <= nb; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[nb];
}

const char *sf_suggest(const char *word, const char *const *words) {
    const char *best = NULL;
    int best_d = 3;
    for (int i = 0; words[i]; i++) {
        int d = distance(word, words[i]);
        if (d < best_d && d < (int)strlen(words[i])) {
            best = words[i];
            best_d = d;
        }
    }
    return best;
}
