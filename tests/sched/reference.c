#include "base/utf8.h"
#include "sched/fake.h"
#include "sched/text_priv.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* Ill-formed bytes -> U+FFFD by trying, at each place, which length is a whole character; the maximal subpart
 * otherwise: the longest beginning that some continuation could complete. */
static bool completable(const char *s, size_t n) {
    static const char tails[][4] = {"\x80",     "\x90",     "\xa0",         "\xbf",         "\x80\x80",
                                    "\x90\x80", "\xa0\x80", "\x80\x80\x80", "\x90\x80\x80", "\xa0\x80\x80"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        char c[8] = {0};
        memcpy(c, s, n);
        memcpy(c + n, tails[i], strlen(tails[i]));
        size_t len = n + strlen(tails[i]);
        if (len <= 4 && sf_utf8_valid(c, len)) return true;
    }
    return false;
}

static size_t sanitise(const char *raw, size_t n, char *out) {
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        size_t k = 1;
        while (k <= 4 && i + k <= n && !sf_utf8_valid(raw + i, k))
            k++;
        if (k <= 4 && i + k <= n) {
            memcpy(out + len, raw + i, k);
            len += k;
            i += k;
            continue;
        }
        k = 1;
        while (k < 3 && i + k < n && completable(raw + i, k + 1))
            k++;
        memcpy(out + len, "\xef\xbf\xbd", 3);
        len += 3;
        i += k;
    }
    return len;
}

/* Where the text ends because of a stop string that ends in raw[from..n): the first to end, of these the
 * longest. */
static bool find_stop(const sf_params *p, const char *raw, size_t from, size_t n, size_t *cut) {
    for (size_t end = from + 1; end <= n; end++) {
        size_t longest = 0;
        for (int i = 0; i < p->n_stop; i++) {
            size_t len = strlen(p->stop[i]);
            if (len <= end && memcmp(raw + end - len, p->stop[i], len) == 0 && len > longest) longest = len;
        }
        if (longest > 0) {
            *cut = end - longest;
            return true;
        }
    }
    return false;
}

static bool stop_id(const sf_params *p, int32_t id) {
    if (!p->ignore_eos && (id == FAKE_EOS || id == FAKE_EOS2)) return true;
    for (int i = 0; i < p->n_stop_ids; i++)
        if (p->stop_ids[i] == id) return true;
    return false;
}

static sf_sample sample_of(const sf_params *p, const int32_t *tokens, int n_prompt, int n_output, int choice,
                           int32_t *banned) {
    sf_sample s = {.temperature = p->temperature,
                   .top_k = p->top_k,
                   .top_p = p->top_p,
                   .min_p = p->min_p,
                   .repetition_penalty = p->repetition_penalty,
                   .frequency_penalty = p->frequency_penalty,
                   .presence_penalty = p->presence_penalty,
                   .seed = (uint64_t)p->seed,
                   .choice = (uint32_t)choice,
                   .position = (uint32_t)(n_prompt + n_output),
                   .prompt = tokens,
                   .n_prompt = n_prompt,
                   .output = tokens + n_prompt,
                   .n_output = n_output,
                   .bias = p->bias,
                   .n_bias = p->n_bias,
                   .n_top = p->logprobs > 0 ? p->logprobs : 0,
                   .target = -1,
                   .draw = true};
    if (n_output < p->min_tokens) {
        banned[s.n_banned++] = FAKE_EOS;
        banned[s.n_banned++] = FAKE_EOS2;
        for (int i = 0; i < p->n_stop_ids; i++)
            banned[s.n_banned++] = p->stop_ids[i];
        s.banned = banned;
    }
    return s;
}

void reference_run(const sf_params *p, const int32_t *prompt, int n_prompt, int choice, int max_context,
                   reference *out) {
    int32_t tokens[FAKE_CONTEXT], banned[SF_STOP_MAX];
    char raw[4096];
    size_t n_raw = 0;
    int room = max_context - n_prompt,
        max_out = p->max_tokens < 0 || p->max_tokens > room ? room : p->max_tokens;
    memcpy(tokens, prompt, (size_t)n_prompt * sizeof *tokens);
    memset(out, 0, sizeof *out);
    out->finish = SF_FINISH_LENGTH;
    while (out->n < max_out) {
        sf_sample s = sample_of(p, tokens, n_prompt, out->n, choice, banned);
        sf_row_out row;
        fake_model(tokens, n_prompt + out->n, &s, &row);
        sf_token *t = &out->tokens[out->n];
        *t = (sf_token){.id = row.token, .logprob = row.logprob, .rank = row.rank, .n_top = row.n_top};
        memcpy(t->top_id, row.top_id, sizeof t->top_id);
        memcpy(t->top_logprob, row.top_logprob, sizeof t->top_logprob);
        tokens[n_prompt + out->n++] = row.token;
        if (stop_id(p, row.token)) {
            out->finish = SF_FINISH_STOP;
            break;
        }
        if (row.token == FAKE_EOS || row.token == FAKE_EOS2) continue;
        size_t from = n_raw, len;
        const char *piece = fake_piece(row.token, &len);
        memcpy(raw + n_raw, piece, len);
        n_raw += len;
        if (out->n > p->min_tokens && find_stop(p, raw, from, n_raw, &n_raw)) {
            out->finish = SF_FINISH_STOP;
            break;
        }
    }
    out->text_len = sanitise(raw, n_raw, out->text);
}

/* ---- watching ---- */

void watch(watched *w) {
    for (int i = 0; i < sf_request_params(w->req)->n; i++) {
        sf_choice c;
        sf_request_choice(w->req, i, &c);
        assert_true(c.n_tokens >= w->n_ids[i]);
        for (int k = 0; k < w->n_ids[i]; k++)
            assert_int_equal(c.tokens[k].id, w->ids[i][k]);
        for (; w->n_ids[i] < c.n_tokens; w->n_ids[i]++)
            w->ids[i][w->n_ids[i]] = c.tokens[w->n_ids[i]].id;
        assert_true(c.text_len >= w->text_len[i]);
        assert_memory_equal(c.text, w->text[i], w->text_len[i]);
        assert_int_equal(strlen(c.text), c.text_len);
        assert_true(sf_utf8_valid(c.text, c.text_len));
        memcpy(w->text[i], c.text, c.text_len);
        w->text_len[i] = c.text_len;
    }
}

void run_all(sf_sched *s, watched *w, int n) {
    bool busy = true;
    for (int step = 0; busy; step++) {
        sf_err err;
        assert_true(step < 100000);
        assert_int_equal(sf_sched_step(s, &busy, &err), SF_OK);
        for (int i = 0; i < n; i++)
            watch(&w[i]);
    }
    for (int i = 0; i < n; i++)
        assert_true(sf_request_done(w[i].req));
}

static void assert_tokens(const sf_token *got, const sf_token *want, int n) {
    for (int i = 0; i < n; i++) {
        assert_int_equal(got[i].id, want[i].id);
        assert_memory_equal(&got[i].logprob, &want[i].logprob, sizeof(float));
        assert_int_equal(got[i].rank, want[i].rank);
        assert_int_equal(got[i].n_top, want[i].n_top);
        assert_memory_equal(got[i].top_id, want[i].top_id, (size_t)want[i].n_top * sizeof(int32_t));
        assert_memory_equal(got[i].top_logprob, want[i].top_logprob, (size_t)want[i].n_top * sizeof(float));
    }
}

void assert_reference(const sf_request *r, int choice, int max_context) {
    int n_prompt;
    const int32_t *prompt = sf_request_prompt(r, &n_prompt);
    reference want;
    reference_run(sf_request_params(r), prompt, n_prompt, choice, max_context, &want);
    sf_choice got;
    sf_request_choice(r, choice, &got);
    assert_int_equal(got.finish, want.finish);
    assert_int_equal(got.n_tokens, want.n);
    assert_tokens(got.tokens, want.tokens, want.n);
    assert_int_equal(got.text_len, want.text_len);
    assert_memory_equal(got.text, want.text, want.text_len);
}

void assert_reference_prefix(const sf_request *r, int choice, int max_context) {
    int n_prompt;
    const int32_t *prompt = sf_request_prompt(r, &n_prompt);
    reference want;
    reference_run(sf_request_params(r), prompt, n_prompt, choice, max_context, &want);
    sf_choice got;
    sf_request_choice(r, choice, &got);
    assert_true(got.n_tokens <= want.n);
    assert_tokens(got.tokens, want.tokens, got.n_tokens);
}

/* ---- set-up ---- */

void fake_config(const fake_device *d, sf_sched_config *cfg) {
    sf_sched_config_default(&d->plan, cfg);
    /* Small worlds keep a window that a pass holds. */
    if (cfg->window > d->plan.max_logit_rows) cfg->window = d->plan.max_logit_rows;
}

sf_sched *fake_sched(fake_device *d, const sf_sched_config *cfg) {
    sf_sched *s = NULL;
    sf_err err;
    if (sf_sched_create(&d->base, fake_tokenizer(), cfg, &s, &err) != SF_OK) fail_msg("%s", err.msg);
    return s;
}

sf_request *fake_request(const sf_params *p, const int32_t *prompt, int n_prompt) {
    sf_request *r = NULL;
    sf_err err;
    if (sf_request_create(p, prompt, n_prompt, &r, &err) != SF_OK) fail_msg("%s", err.msg);
    return r;
}

void fake_prompt(uint64_t seed, int n, int32_t *out) {
    for (int i = 0; i < n; i++)
        out[i] = (int32_t)(fake_mix(seed * 1000u + (uint64_t)i) % FAKE_VOCAB);
}
