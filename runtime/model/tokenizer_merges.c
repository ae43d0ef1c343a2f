/* The table of merges: as a checkpoint lists them, or as SentencePiece's scores imply them. */
#include "model/tokenizer_priv.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_JOINED = 4096, MAX_SCORED = 512 }; /* bytes of a token that a merge, or a score, makes */

static const char *key(const sf_tokenizer_parts *p) {
    return p->json ? "tokenizer.json: model.merges" : "key tokenizer.ggml.merges";
}

static size_t merge_slot(const sf_tokenizer *t, uint64_t pair) {
    uint64_t h = pair * 0x9e3779b97f4a7c15u;
    size_t i = (h ^ h >> 32) & (t->merge_cap - 1);
    while (t->merges[i].pair != SF_NO_PAIR && t->merges[i].pair != pair)
        i = (i + 1) & (t->merge_cap - 1);
    return i;
}

static uint64_t pair_of(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

const sf_merge *sf_tokenizer_merge(const sf_tokenizer *t, int32_t left, int32_t right) {
    const sf_merge *m = &t->merges[merge_slot(t, pair_of(left, right))];
    return m->pair == SF_NO_PAIR ? NULL : m;
}

static sf_code make_table(sf_tokenizer *t, size_t merges, size_t ranks, const sf_tokenizer_parts *p,
                          sf_err *err) {
    t->merge_cap = 16;
    while (t->merge_cap < 2 * merges)
        t->merge_cap *= 2;
    t->merges = malloc(t->merge_cap * sizeof *t->merges);
    t->merge_ids = malloc((ranks + 1) * sizeof *t->merge_ids);
    if (!t->merges || !t->merge_ids)
        return SF_FAIL_AT(err, SF_NOMEM, sf_tokenizer_place(p), "no memory for %zu merges", merges);
    memset(t->merges, 0xff, t->merge_cap * sizeof *t->merges);
    return SF_OK;
}

/* The two tokens of a merge; *right is empty when they are not two. */
static void halves(const sf_tokenizer_parts *p, size_t i, sf_str *left, sf_str *right) {
    *left = p->merges[i];
    *right = (sf_str){0};
    if (p->rights) {
        *right = p->rights[i];
        return;
    }
    const char *space = memchr(left->data, ' ', left->len);
    size_t rest = space ? left->len - (size_t)(space - left->data) - 1 : 0;
    if (!rest || memchr(space + 1, ' ', rest)) return;
    *right = (sf_str){space + 1, rest};
    left->len -= rest + 1;
}

static sf_code add_merge(sf_tokenizer *t, const sf_tokenizer_parts *p, size_t i, sf_err *err) {
    sf_str left, right;
    char joined[MAX_JOINED];
    halves(p, i, &left, &right);
    if (!left.len || !right.len)
        return SF_FAIL_AT(err, SF_FORMAT, sf_tokenizer_place(p), "%s: item %zu is not two tokens%s", key(p),
                          i, p->json ? "" : " and a space");
    if (left.len + right.len > MAX_JOINED)
        return SF_FAIL_AT(err, SF_FORMAT, sf_tokenizer_place(p), "%s: item %zu has %zu bytes", key(p), i,
                          left.len + right.len);
    memcpy(joined, left.data, left.len);
    memcpy(joined + left.len, right.data, right.len);
    int32_t l = sf_tokenizer_find(t, left.data, left.len), r = sf_tokenizer_find(t, right.data, right.len);
    int32_t id = sf_tokenizer_find(t, joined, left.len + right.len);
    if (l < 0 || r < 0 || id < 0)
        return SF_FAIL_AT(err, SF_FORMAT, sf_tokenizer_place(p), "%s: item %zu %s not in the vocabulary",
                          key(p), i, id < 0 ? "makes a token that is" : "joins a token that is");
    sf_merge *slot = &t->merges[merge_slot(t, pair_of(l, r))];
    if (slot->pair != SF_NO_PAIR)
        return SF_FAIL_AT(err, SF_FORMAT, sf_tokenizer_place(p), "%s: items %d and %zu are the same", key(p),
                          (int)slot->rank, i);
    *slot = (sf_merge){pair_of(l, r), (int32_t)i, id};
    t->merge_ids[i] = id;
    return SF_OK;
}

typedef struct scored {
    float score;
    int32_t id;
} scored;

static int by_score(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/* Every way in which two tokens make this one; into the table unless `rank` < 0. Returns how many. */
static size_t ways(sf_tokenizer *t, int32_t id, int32_t rank) {
    const sf_piece *piece = &t->pieces[id];
    size_t n = 0;
    for (size_t i = 1; i < piece->raw_len; i++) {
        if (((unsigned char)piece->raw[i] & 0xc0) == 0x80) continue; /* inside a character */
        int32_t l = sf_tokenizer_find(t, piece->raw, i);
        int32_t r = l < 0 ? -1 : sf_tokenizer_find(t, piece->raw + i, piece->raw_len - i);
        if (r < 0 || t->types[l] != SF_TOKEN_NORMAL || t->types[r] != SF_TOKEN_NORMAL) continue;
        n++;
        if (rank >= 0) t->merges[merge_slot(t, pair_of(l, r))] = (sf_merge){pair_of(l, r), rank, id};
    }
    return n;
}

/* SentencePiece joins the neighbours whose token has the highest score, the leftmost first: tokens of one
 * score share a rank. */
static sf_code merges_of_scores(sf_tokenizer *t, const sf_tokenizer_parts *p, sf_err *err) {
    size_t n = 0, total = 0;
    int32_t rank = -1;
    scored *order = malloc((size_t)t->n * sizeof *order);
    sf_code rc = SF_OK;
    if (!order) return SF_FAIL_AT(err, SF_NOMEM, sf_tokenizer_place(p), "no memory for %d scores", t->n);
    for (int32_t id = 0; id < t->n && rc == SF_OK; id++) {
        if (t->types[id] != SF_TOKEN_NORMAL) continue;
        if (!(p->scores[id] > -1e30f && p->scores[id] < 1e30f))
            rc = SF_FAIL_AT(err, SF_FORMAT, sf_tokenizer_place(p),
                            "key tokenizer.ggml.scores: item %d is no number", (int)id);
        else if (t->pieces[id].raw_len > MAX_SCORED)
            rc = SF_FAIL_AT(err, SF_FORMAT, sf_tokenizer_place(p),
                            "key tokenizer.ggml.tokens: item %d has %u bytes, expected 1..%d", (int)id,
                            t->pieces[id].raw_len, MAX_SCORED);
        else
            total += ways(t, id, -1);
        order[n++] = (scored){p->scores[id], id};
    }
    if (rc == SF_OK) rc = make_table(t, total, n, p, err);
    if (rc != SF_OK) goto done;
    qsort(order, n, sizeof *order, by_score);
    for (size_t i = 0; i < n; i++) {
        bool tie = i && order[i].score == order[i - 1].score;
        if (!tie) rank++;
        t->merge_ids[rank] = tie ? -1 : order[i].id;
        (void)ways(t, order[i].id, rank);
    }
done:
    free(order);
    return rc;
}

sf_code sf_tokenizer_build_merges(sf_tokenizer *t, const sf_tokenizer_parts *p, sf_err *err) {
    if (p->scores) return merges_of_scores(t, p, err);
    SF_TRY(make_table(t, p->n_merges, p->n_merges, p, err));
    for (size_t i = 0; i < p->n_merges; i++)
        SF_TRY(add_merge(t, p, i, err));
    return SF_OK;
}
