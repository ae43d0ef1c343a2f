/* Checks the CUDA sampler against the CPU's sampler (templates/cpu/sample.c, compiled once per vocabulary) and times it.
 * Run from the root of the sources: sample [check|time|sanitize]. */
#include "harness.h"

#define template template_file /* plan.h is C */
#include "device/cpu/kernel.h"
#undef template

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

extern "C" void sample_cpu_1003__generic(const sf_cpu_args *a, int part, int parts);
extern "C" void sample_cpu_49152__generic(const sf_cpu_args *a, int part, int parts);
extern "C" void sample_cpu_128256__generic(const sf_cpu_args *a, int part, int parts);

namespace {

using cpu_sampler = void (*)(const sf_cpu_args *, int, int);

struct row {
    sf_sample s;
    std::vector<int32_t> prompt, output, banned;
    std::vector<sf_bias> bias;
};

/* Row i of a check: parameters turn over with i. */
row make_row(int i, int vocab, std::mt19937 *rng) {
    row r = {};
    auto id = [&] { return (int32_t)((*rng)() % (unsigned)vocab); };
    r.s.temperature = i % 5 == 0 ? 0.0f : 0.3f + (float)(i % 7) * 0.3f;
    r.s.top_k = i % 3 == 1 ? 1 + i * 7 % 60 : 0;
    r.s.top_p = i % 4 == 2 ? 0.05f + 0.9f * (float)(i % 10) / 10.0f : 1.0f;
    r.s.min_p = i % 6 == 3 ? 0.02f : 0.0f;
    r.s.repetition_penalty = i % 7 == 4 ? 1.3f : 1.0f;
    r.s.frequency_penalty = i % 8 == 5 ? 0.4f : 0.0f;
    r.s.presence_penalty = i % 8 >= 5 ? 0.2f : 0.0f;
    r.s.seed = ((uint64_t)(*rng)() << 32) | (*rng)();
    r.s.choice = (uint32_t)(i % 3);
    r.s.position = (uint32_t)(17 + i);
    r.s.n_top = i % 2 ? i % (SF_TOP_MAX + 1) : 0;
    r.s.target = i % 3 == 0 ? id() : -1;
    r.s.draw = i % 11 != 10;
    for (int j = 0; j < 40 + i; j++)
        r.prompt.push_back(id());
    for (int j = 0; j < 30; j++)
        r.output.push_back(j % 3 ? id() : r.prompt[(size_t)j]);
    if (i % 9 == 6)
        for (int j = 0; j < 20; j++)
            r.bias.push_back({j % 5 ? id() : r.prompt[0], (float)(j % 7) - 3.0f});
    if (i % 9 == 7)
        for (int j = 0; j < 10; j++)
            r.banned.push_back(id());
    return r;
}

int put_pool(std::vector<int> *pool, const void *from, size_t ints) {
    const int at = (int)pool->size();
    pool->resize(pool->size() + ints);
    if (ints) memcpy(pool->data() + at, from, ints * 4);
    return at;
}

void add_row(pass_image *pass, row *r) {
    sf_sample *s = &r->s;
    s->prompt = r->prompt.data(), s->n_prompt = (int)r->prompt.size();
    s->output = r->output.data(), s->n_output = (int)r->output.size();
    s->bias = r->bias.data(), s->n_bias = (int)r->bias.size();
    s->banned = r->banned.data(), s->n_banned = (int)r->banned.size();
    sf_cuda_sample c = {};
    c.temperature = s->temperature, c.top_p = s->top_p, c.min_p = s->min_p;
    c.repetition_penalty = s->repetition_penalty, c.frequency_penalty = s->frequency_penalty;
    c.presence_penalty = s->presence_penalty;
    c.top_k = s->top_k, c.n_top = s->n_top, c.target = s->target, c.draw = s->draw;
    c.seed_low = (unsigned)s->seed, c.seed_high = (unsigned)(s->seed >> 32);
    c.choice = s->choice, c.position = s->position;
    c.prompt = put_pool(&pass->pool, s->prompt, r->prompt.size()), c.n_prompt = s->n_prompt;
    c.output = put_pool(&pass->pool, s->output, r->output.size()), c.n_output = s->n_output;
    c.bias = put_pool(&pass->pool, s->bias, r->bias.size() * 2), c.n_bias = s->n_bias;
    c.banned = put_pool(&pass->pool, s->banned, r->banned.size()), c.n_banned = s->n_banned;
    pass->logit_rows.push_back((int)pass->samples.size());
    pass->samples.push_back(c);
}

/* Logits of row i: three widths, ties, -inf, and now and then a row that must fail. */
void make_logits(float *x, int vocab, int i, std::mt19937 *rng) {
    std::normal_distribution<float> normal;
    const float scale = i % 3 == 0 ? 1.0f : i % 3 == 1 ? 3.0f : 8.0f;
    for (int j = 0; j < vocab; j++) {
        x[j] = scale * normal(*rng);
        if (i % 4 == 1) x[j] = std::nearbyint(x[j] * 4.0f) / 4.0f;
        if (i % 5 == 3 && j % 3 == 0) x[j] = -INFINITY;
    }
    if (i == 12) x[vocab / 2 + 1] = NAN;
    if (i == 13) x[vocab - 1] = INFINITY;
    if (i == 14)
        for (int j = 0; j < vocab; j++)
            x[j] = -INFINITY;
}

bool near(float a, float b) {
    return a == b || std::fabs(a - b) <= 4e-6f * (1.0f + std::fabs(b)) || (a != a && b != b);
}

void check(int vocab, int rows, cpu_sampler cpu) {
    gpu_kernel k = kernel_build("cuda/sample.cu", {{"VOCAB", std::to_string(vocab)}});
    if (!k.fn) return;
    std::mt19937 rng(3);
    std::vector<row> all;
    std::vector<float> x((size_t)rows * vocab);
    std::vector<sf_sample> samples;
    std::vector<sf_row_out> want((size_t)rows), got((size_t)rows), one(1);
    pass_image pass;
    for (int i = 0; i < rows; i++) {
        all.push_back(make_row(i, vocab, &rng));
        make_logits(x.data() + (size_t)i * vocab, vocab, i, &rng);
    }
    for (row &r : all) {
        add_row(&pass, &r);
        samples.push_back(r.s);
    }
    sf_cpu_args c = {};
    c.rows = rows;
    c.in = x.data();
    c.samples = samples.data();
    c.results = want.data();
    c.scratch = (uint8_t *)aligned_alloc(64, (sf_cpu_scratch_sample(vocab) + 63) / 64 * 64);
    c.scratch_stride = sf_cpu_scratch_sample(vocab);
    cpu(&c, 0, 1);
    float *logits = (float *)device_alloc(x.size() * 4);
    CUDA(cudaMemcpy(logits, x.data(), x.size() * 4, cudaMemcpyHostToDevice));
    sf_cuda_args a = {};
    a.block = pass.upload();
    a.in = logits;
    a.extra = device_alloc((size_t)rows * sizeof(sf_row_out));
    a.out = device_alloc((size_t)rows * 4);
    kernel_launch(k, a);
    CUDA(cudaMemcpy(got.data(), a.extra, (size_t)rows * sizeof(sf_row_out), cudaMemcpyDeviceToHost));
    std::vector<int> tokens((size_t)rows);
    CUDA(cudaMemcpy(tokens.data(), a.out, (size_t)rows * 4, cudaMemcpyDeviceToHost));
    int drawn = 0, numbers = 0, tops = 0, alone = 0;
    for (int i = 0; i < rows; i++) {
        const sf_row_out &g = got[(size_t)i], &w = want[(size_t)i];
        if (g.token != w.token || g.bad != w.bad || tokens[(size_t)i] != g.token) {
            if (!drawn++)
                printf("row %d: token %d bad %d, expected %d %d\n", i, g.token, g.bad, w.token, w.bad);
        }
        if (!w.bad && (!near(g.logprob, w.logprob) || g.rank != w.rank || !near(g.target_logprob, w.target_logprob) ||
                       g.target_rank != w.target_rank)) {
            if (!numbers++)
                printf("row %d: %g rank %d, %g rank %d; expected %g %d, %g %d\n", i, g.logprob, g.rank, g.target_logprob,
                       g.target_rank, w.logprob, w.rank, w.target_logprob, w.target_rank);
        }
        bool same = g.n_top == w.n_top;
        for (int j = 0; same && j < w.n_top; j++)
            same = g.top_id[j] == w.top_id[j] && near(g.top_logprob[j], w.top_logprob[j]);
        tops += !same;
        pass_image single;
        add_row(&single, &all[(size_t)i]);
        sf_cuda_args b = a;
        b.block = single.upload((sf_cuda_block *)a.block);
        b.in = logits + (size_t)i * vocab;
        b.out = nullptr;
        kernel_launch(k, b);
        CUDA(cudaMemcpy(one.data(), b.extra, sizeof(sf_row_out), cudaMemcpyDeviceToHost));
        alone += one[0].token != g.token || memcmp(&one[0].logprob, &g.logprob, 16) != 0 ||
                 memcmp(one[0].top_logprob, g.top_logprob, (size_t)g.n_top * 4) != 0;
    }
    expect(drawn == 0, "vocabulary %d: %d of %d tokens differ from the CPU's", vocab, drawn, rows);
    expect(numbers == 0, "vocabulary %d: %d log-probabilities or ranks differ", vocab, numbers);
    expect(tops == 0, "vocabulary %d: %d lists of top ones differ", vocab, tops);
    expect(alone == 0, "vocabulary %d: %d rows differ alone", vocab, alone);
    free(c.scratch);
}

void time_rows(const gpu_kernel &k, const char *what, int rows, const sf_sample &s, int history) {
    const int vocab = 128256;
    pass_image pass;
    row r = {};
    r.s = s;
    for (int j = 0; j < history; j++)
        r.prompt.push_back(j * 31 % vocab);
    for (int i = 0; i < rows; i++) {
        r.s.seed = (uint64_t)i;
        add_row(&pass, &r);
    }
    const int copies = rows > 16 ? 3 : 8;
    const size_t n = (size_t)rows * vocab;
    float *x = (float *)device_alloc(n * 4 * copies);
    fill_f32(x, n * copies, 1, 2.5f);
    sf_cuda_args a = {};
    a.block = pass.upload();
    a.extra = device_alloc((size_t)rows * sizeof(sf_row_out));
    const double us = graph_us(24, [&](cudaStream_t st, int i) {
        a.in = x + n * (size_t)(i % copies);
        kernel_launch(k, a, st);
    });
    printf("time sample, %3d rows, %-36s %9.2f us\n", rows, what, us);
    fflush(stdout);
    CUDA(cudaFree(x));
}

void time_all(void) {
    gpu_kernel k = kernel_build("cuda/sample.cu", {});
    if (!k.fn) return;
    sf_sample greedy = {};
    greedy.top_p = 1.0f;
    greedy.repetition_penalty = 1.0f;
    greedy.target = -1;
    greedy.draw = true;
    sf_sample warm = greedy, top = greedy, nucleus = greedy, all = greedy;
    warm.temperature = nucleus.temperature = all.temperature = 0.8f;
    top.n_top = 20;
    nucleus.top_p = 0.9f;
    all.top_k = 50;
    all.top_p = 0.9f;
    all.repetition_penalty = 1.1f;
    all.n_top = 5;
    for (int rows : {1, 16, 128}) {
        time_rows(k, "greedy", rows, greedy, 0);
        time_rows(k, "temperature", rows, warm, 0);
        time_rows(k, "greedy, 20 top ones", rows, top, 0);
        time_rows(k, "temperature, top_p", rows, nucleus, 0);
        time_rows(k, "top_k, top_p, penalty over 2000, 5 top", rows, all, 2000);
    }
}

} // namespace

int main(int argc, char **argv) {
    const std::string mode = argc > 1 ? argv[1] : "check";
    if (mode == "check") {
        check(1003, 200, sample_cpu_1003__generic);
        check(49152, 100, sample_cpu_49152__generic);
        check(128256, 60, sample_cpu_128256__generic);
    } else if (mode == "sanitize") {
        check(1003, 30, sample_cpu_1003__generic);
    } else {
        time_all();
    }
    printf("%s: %d failed\n", mode.c_str(), harness_failed);
    return harness_failed != 0;
}
