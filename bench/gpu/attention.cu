/* Checks and times embed, rmsnorm, rope_append and the attention kernels: values against the reference twins; a row's
 * bits by every route (prefill, verify, decode, any split, any neighbours, what lies beyond its position); microseconds
 * in a graph. Run from the root of the sources: attention [check|time|sanitize]. */
#include "harness.h"

#include "device/cuda/kv_layout.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

namespace {

struct shape {
    int heads, kv_heads, dim;
    bool norms = false; /* of q and k */
};

struct rig {
    shape s;
    int context, n_pages;
    gpu_kernel rope, decode, decode2, fast, prefill, ref_rope, ref_attention;
    void *kv;
    float *table, *norms;
    void *partials;
    size_t page_bytes() const { return sf_cuda_kv_page_bytes(s.kv_heads, s.dim); }
    size_t q_width() const { return (size_t)s.heads * s.dim; }
};

std::string text(int v) { return std::to_string(v); }

void make_table(rig *r) {
    std::vector<float> t((size_t)r->context * r->s.dim);
    for (int p = 0; p < r->context; p++)
        for (int i = 0; i < r->s.dim / 2; i++) {
            const double angle = p * std::pow(500000.0, -2.0 * i / r->s.dim);
            t[((size_t)p * (r->s.dim / 2) + i) * 2] = (float)std::cos(angle);
            t[((size_t)p * (r->s.dim / 2) + i) * 2 + 1] = (float)std::sin(angle);
        }
    r->table = (float *)device_alloc(t.size() * 4);
    CUDA(cudaMemcpy(r->table, t.data(), t.size() * 4, cudaMemcpyHostToDevice));
}

rig make_rig(shape s, int context, int n_pages, bool refs) {
    const params p = {{"HEADS", text(s.heads)}, {"KV_HEADS", text(s.kv_heads)}, {"HEAD_DIM", text(s.dim)},
                      {"CONTEXT", text(context)}};
    params p2 = p, p3 = p;
    rig r = {};
    r.s = s;
    r.context = context;
    r.n_pages = n_pages;
    const params p1 = {{"HEADS", text(s.heads)}, {"KV_HEADS", text(s.kv_heads)}, {"HEAD_DIM", text(s.dim)},
                       {"QK_NORM", s.norms ? "1" : "0"}};
    r.rope = kernel_build("cuda/rope_append.cu", p1);
    p2["TO_ROWS"] = "1048576"; /* here each kernel serves segments of every length */
    r.decode = kernel_build("cuda/attention_decode.cu", p2);
    r.fast = kernel_build("cuda/attention_fast.cu", p2);
    p2["MT"] = "2";
    p2["SPLIT_ROWS"] = "8";
    r.decode2 = kernel_build("cuda/attention_decode.cu", p2);
    p3["FEW_ROWS"] = "0";
    r.prefill = kernel_build("cuda/attention_prefill.cu", p3);
    if (refs) {
        r.ref_rope = kernel_build_ref("attention.cu", "ref_rope_append", "cuda/rope_append.cu", p1);
        r.ref_attention = kernel_build_ref("attention.cu", "ref_attention", "cuda/rope_append.cu", p1);
    }
    if (!r.prefill.fn) return r;
    r.kv = device_alloc(r.page_bytes() * (size_t)n_pages, 0);
    make_table(&r);
    r.norms = (float *)device_alloc((size_t)s.dim * 2 * 4);
    fill_f32(r.norms, (size_t)s.dim * 2, 11, 1.0f);
    /* one workspace for all variants: chunks of 2 tiles need the most */
    r.partials = device_alloc(sf_cuda_attention_bytes(s.heads, s.kv_heads, s.dim, context, 2, 32), 0);
    return r;
}

/* Pages first, first + step ... for `positions` positions. */
std::vector<int> pages_of(int first, int positions, int step = 1) {
    std::vector<int> p((size_t)(positions + 63) / 64);
    for (size_t i = 0; i < p.size(); i++)
        p[i] = first + (int)i * step;
    return p;
}

sf_cuda_args args_of(const rig &r, sf_cuda_block *b, const void *in, void *out, void *extra) {
    sf_cuda_args a = {};
    a.block = b;
    a.in = in;
    a.out = out;
    a.weight = r.norms;
    a.kv = r.kv;
    a.extra = extra;
    return a;
}

/* One sequence of `length` positions with its queries [length, width], and what pinned attention says of each row. */
struct sequence {
    int length;
    std::vector<int> pages;
    void *q, *truth;
};

/* Whether the host finds V of some positions where kv_layout.h says. */
void check_layout(const rig &r, const sequence &q, const float *qkv) {
    const int width = (r.s.heads + 2 * r.s.kv_heads) * r.s.dim;
    std::vector<unsigned short> page(r.page_bytes() / 2);
    std::vector<float> x((size_t)width);
    int wrong = 0;
    for (int pos = 3; pos < q.length; pos += 61) {
        CUDA(cudaMemcpy(x.data(), qkv + (size_t)pos * width, x.size() * 4, cudaMemcpyDeviceToHost));
        CUDA(cudaMemcpy(page.data(), (char *)r.kv + (size_t)q.pages[(size_t)pos / 64] * r.page_bytes(), r.page_bytes(),
                        cudaMemcpyDeviceToHost));
        for (int i = 0; i < r.s.kv_heads * r.s.dim; i++) {
            const unsigned short got = page[sf_cuda_kv_at(r.s.dim, i / r.s.dim, 1, pos % 64, i % r.s.dim)];
            const float v = x[(size_t)((r.s.heads + r.s.kv_heads) * r.s.dim + i)];
            const unsigned bits = (unsigned)got << 16;
            float f;
            memcpy(&f, &bits, 4);
            wrong += !(std::fabs(f - v) <= std::fabs(v) * 0.00391f);
        }
    }
    expect(wrong == 0, "rope_append: values where the host looks for them, %d wrong", wrong);
}

/* KV of a sequence through rope_append, in one pass; checks it against the twin. */
sequence make_sequence(rig *r, int length, int first_page, int step, unsigned seed, float scale, bool check) {
    const int width = (r->s.heads + 2 * r->s.kv_heads) * r->s.dim;
    sequence q = {length, pages_of(first_page, length, step), nullptr, nullptr};
    pass_image pass;
    pass.add_segment(length, 0, q.pages);
    sf_cuda_block *b = pass.upload();
    float *qkv = (float *)device_alloc((size_t)length * width * 4);
    fill_f32(qkv, (size_t)length * width, seed, scale);
    q.q = device_alloc((size_t)length * r->q_width() * 2);
    q.truth = device_alloc((size_t)length * r->q_width() * 2);
    const size_t bytes = r->page_bytes() * (size_t)r->n_pages;
    if (check) {
        void *q2 = device_alloc((size_t)length * r->q_width() * 2), *kv = r->kv;
        r->kv = device_alloc(bytes, 0);
        kernel_launch_as(r->ref_rope, dim3((unsigned)length, (unsigned)(r->s.heads + 2 * r->s.kv_heads)), r->s.dim,
                         args_of(*r, b, qkv, q2, r->table));
        std::swap(kv, r->kv);
        CUDA(cudaMemset(r->kv, 0, bytes));
        kernel_launch(r->rope, args_of(*r, b, qkv, q.q, r->table));
        expect(count_different(q.q, q2, (size_t)length * r->q_width() * 2) == 0, "rope_append: queries as the twin's");
        expect(count_different(r->kv, kv, bytes) == 0, "rope_append: KV as the twin's");
        check_layout(*r, q, qkv);
        CUDA(cudaFree(kv));
        CUDA(cudaFree(q2));
    } else {
        kernel_launch(r->rope, args_of(*r, b, qkv, q.q, r->table));
    }
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaFree(qkv));
    CUDA(cudaFree(b));
    return q;
}

/* A pass's rows of several sequences, run and compared with their truth. Returns values that differ. */
struct runner {
    rig *r;
    pass_image pass;
    std::vector<std::pair<int, int>> rows; /* sequence, position */
    sf_cuda_block *block = nullptr;
    void *q, *out, *want;
    size_t most;
    runner(rig *rig, size_t rows) : r(rig), most(rows) {
        q = device_alloc(rows * rig->q_width() * 2);
        out = device_alloc(rows * rig->q_width() * 2);
        want = device_alloc(rows * rig->q_width() * 2);
    }
    void add(const std::vector<sequence> &all, int seq, int pos0, int n) {
        pass.add_segment(n, pos0, all[(size_t)seq].pages);
        for (int i = 0; i < n; i++)
            rows.push_back({seq, pos0 + i});
    }
    /* ignore: a sequence whose rows may hold anything */
    size_t run(const std::vector<sequence> &all, const gpu_kernel &k, int ignore = -1) {
        const size_t width = r->q_width() * 2;
        block = pass.upload(block);
        CUDA(cudaMemset(out, 0xff, rows.size() * width));
        CUDA(cudaMemset(want, 0xff, rows.size() * width));
        for (int seq = 0; seq < (int)all.size(); seq++)
            for (size_t i = 0; i < rows.size();) { /* runs of consecutive positions */
                size_t n = 1;
                while (i + n < rows.size() && rows[i + n].first == rows[i].first &&
                       rows[i + n].second == rows[i].second + (int)n)
                    n++;
                if (rows[i].first == seq) {
                    const size_t at = (size_t)rows[i].second * width;
                    CUDA(cudaMemcpyAsync((char *)q + i * width, (char *)all[(size_t)seq].q + at, n * width, cudaMemcpyDeviceToDevice));
                    CUDA(cudaMemcpyAsync((char *)want + i * width, (char *)all[(size_t)seq].truth + at, n * width, cudaMemcpyDeviceToDevice));
                }
                i += n;
            }
        kernel_launch(k, args_of(*r, block, q, out, r->partials));
        if (ignore >= 0)
            for (size_t i = 0; i < rows.size(); i++)
                if (rows[i].first == ignore)
                    CUDA(cudaMemcpyAsync((char *)out + i * width, (char *)want + i * width, width, cudaMemcpyDeviceToDevice));
        const size_t bad = count_different(out, want, rows.size() * width);
        CUDA(cudaDeviceSynchronize());
        return bad;
    }
    void clear() {
        pass = pass_image();
        rows.clear();
    }
};

/* Truth: the whole sequence as one prefill segment. */
void make_truth(rig *r, sequence *s, bool check) {
    pass_image pass;
    pass.add_segment(s->length, 0, s->pages);
    sf_cuda_block *b = pass.upload();
    kernel_launch(r->prefill, args_of(*r, b, s->q, s->truth, nullptr));
    CUDA(cudaDeviceSynchronize());
    if (check) { /* the first rows and the last */
        const int first = std::min(640, s->length), last = 64;
        const size_t skip = (size_t)(s->length - last) * r->q_width() * 2;
        float *ref = (float *)device_alloc((size_t)first * r->q_width() * 4);
        pass_image tail;
        tail.add_segment(last, s->length - last, s->pages);
        kernel_launch_as(r->ref_attention, dim3((unsigned)first, (unsigned)r->s.heads), r->s.dim,
                         args_of(*r, b, s->q, ref, nullptr));
        double e = relative_error(s->truth, true, ref, (size_t)first * r->q_width());
        expect(e < 4e-3, "attention of positions 0..%d: %.2e from the twin", first - 1, e);
        tail.upload(b);
        kernel_launch_as(r->ref_attention, dim3((unsigned)last, (unsigned)r->s.heads), r->s.dim,
                         args_of(*r, b, (char *)s->q + skip, ref, nullptr));
        e = relative_error((char *)s->truth + skip, true, ref, (size_t)last * r->q_width());
        expect(e < 4e-3, "attention of the last rows of %d: %.2e from the twin", s->length, e);
        CUDA(cudaFree(ref));
    }
    CUDA(cudaFree(b));
}

void check_routes(rig *r, std::vector<sequence> *all, const char *what, int evil, int rounds) {
    std::mt19937 rng(7);
    auto pick = [&](int n) { return (int)(rng() % (unsigned)n); };
    runner run(r, 4608);
    size_t decode = 0, split = 0, wide = 0, mixed = 0;
    const sequence &s = (*all)[0];
    for (int first = 0; first < s.length; first += 512) { /* every position as a row of its own */
        for (int i = first; i < std::min(first + 512, s.length); i++)
            run.add(*all, 0, i, 1);
        decode += run.run(*all, r->decode);
        if (first == 0) wide += run.run(*all, r->prefill);
        run.clear();
    }
    for (int i = 0; i < 8 * rounds; i++) { /* few rows: chunks apart, folded by the last */
        const int n = 1 + pick(4);
        for (int j = 0; j < n; j++) {
            const int seq = pick((int)all->size()), rows = 1 + pick(8);
            run.add(*all, seq, pick((*all)[(size_t)seq].length - rows), rows);
        }
        split += run.run(*all, r->decode, evil);
        split += run.run(*all, r->decode2, evil);
        run.clear();
    }
    for (int i = 0; i < rounds; i++) { /* anything beside anything */
        const gpu_kernel *kernels[3] = {&r->decode, &r->decode2, &r->prefill};
        int left = 200 + pick(1500);
        while (left > 0) {
            const int seq = pick((int)all->size()), kind = pick(3);
            const int rows = std::min({kind == 0 ? 1 : kind == 1 ? 2 + pick(63) : 1 + pick(700), left, (*all)[(size_t)seq].length - 1});
            run.add(*all, seq, pick((*all)[(size_t)seq].length - rows), rows);
            left -= rows;
        }
        for (const gpu_kernel *k : kernels)
            mixed += run.run(*all, *k, evil);
        run.clear();
    }
    expect(decode == 0, "%s: 1-row segments of all positions, %zu values differ", what, decode);
    expect(wide == 0, "%s: the same by the prefill kernel, %zu differ", what, wide);
    expect(split == 0, "%s: few rows, chunks apart, %zu differ", what, split);
    expect(mixed == 0, "%s: random mixes by three kernels, %zu differ", what, mixed);
}

/* The fast kernel, in passes of up to 32 rows: each row within a tolerance of pinned attention, and not its copy. */
void check_fast(rig *r, const std::vector<sequence> &all, const char *what, int evil, int rounds) {
    std::mt19937 rng(11);
    auto pick = [&](int n) { return (int)(rng() % (unsigned)n); };
    runner run(r, 512);
    double worst = 0;
    size_t different = 0, values = 0;
    for (int i = 0; i < 8 * rounds; i++) {
        const int n = 1 + pick(8); /* segments of up to 4 rows */
        for (int j = 0; j < n; j++) {
            const int seq = pick((int)all.size()), rows = 1 + (pick(3) == 0 ? pick(4) : 0);
            run.add(all, seq, pick(all[(size_t)seq].length - rows), rows);
        }
        different += run.run(all, r->fast, evil);
        values += run.rows.size() * r->q_width();
        const size_t width = r->q_width() * 2;
        float *want = (float *)device_alloc(r->q_width() * 4);
        std::vector<unsigned short> bits(r->q_width());
        std::vector<float> wide(r->q_width());
        for (size_t row = 0; row < run.rows.size(); row++) {
            CUDA(cudaMemcpy(bits.data(), (char *)run.want + row * width, width, cudaMemcpyDeviceToHost));
            for (size_t c = 0; c < bits.size(); c++) {
                const unsigned word = (unsigned)bits[c] << 16;
                memcpy(&wide[c], &word, 4);
            }
            CUDA(cudaMemcpy(want, wide.data(), wide.size() * 4, cudaMemcpyHostToDevice));
            worst = std::max(worst, relative_error((char *)run.out + row * width, true, want, r->q_width()));
        }
        CUDA(cudaFree(want));
        run.clear();
    }
    expect(worst < 8e-3, "%s: fast, %.2e from the pinned rows at most", what, worst);
    expect(different > 0, "%s: fast, %zu of %zu values have other bits, as some must", what, different, values);
}

/* Overwrites positions from..to-1 of a sequence: K NaN, V a large value; or all of it infinite. */
void spoil(rig *r, const sequence &s, int from, int to, unsigned k, unsigned v) {
    const size_t tile = (size_t)r->s.dim * 128;
    std::vector<unsigned short> page(r->page_bytes() / 2);
    for (size_t p = 0; p < s.pages.size(); p++) {
        char *at = (char *)r->kv + (size_t)s.pages[p] * r->page_bytes();
        CUDA(cudaMemcpy(page.data(), at, r->page_bytes(), cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < page.size(); i++) {
            const int pos = (int)p * 64 + (int)(i * 2 / 128 % 64);
            if (pos >= from && pos < to) page[i] = (unsigned short)(i * 2 / tile % 2 ? v : k);
        }
        CUDA(cudaMemcpy(at, page.data(), r->page_bytes(), cudaMemcpyHostToDevice));
    }
}

void check(shape s, int length, int rounds) {
    printf("-- %d heads, %d KV heads of %d%s\n", s.heads, s.kv_heads, s.dim, s.norms ? ", normed" : "");
    rig r = make_rig(s, 8192, 3 * 80, true);
    if (!r.prefill.fn) return;
    std::vector<sequence> all;
    all.push_back(make_sequence(&r, length, 1, 3, 1, 1.5f, true));
    all.push_back(make_sequence(&r, 700, 0, 3, 2, 3.0f, false));
    all.push_back(make_sequence(&r, 300, 60, 3, 3, 0.3f, false));
    for (sequence &q : all)
        make_truth(&r, &q, true);
    check_routes(&r, &all, "routes", -1, rounds);
    check_fast(&r, all, "routes", -1, rounds);
    { /* another schedule must not pass for this one */
        gpu_kernel other = kernel_build("cuda/attention_prefill.cu",
                                        {{"HEADS", text(s.heads)}, {"KV_HEADS", text(s.kv_heads)}, {"HEAD_DIM", text(s.dim)}, {"CHUNK_TILES", "2"}, {"FEW_ROWS", "0"}});
        runner run(&r, 700);
        run.add(all, 1, 0, 700);
        const size_t bad = run.run(all, other);
        expect(bad > 0, "chunks of 2 tiles instead of 4: %zu values differ, as they must", bad);
    }
    spoil(&r, all[1], 0, 700, 0x7fc0, 0x7f80); /* another sequence: NaN keys, infinite values */
    fill_bf16(all[1].q, 700 * r.q_width(), 9, 1e30f);
    check_routes(&r, &all, "beside NaN", 1, rounds / 2);
    check_fast(&r, all, "beside NaN", 1, rounds);
    /* what lies beyond a row, masked: NaN keys, large values */
    const int cut = length / 2 + 5;
    spoil(&r, all[0], cut, 1 << 20, 0x7fc0, 0x7f7f);
    all[0].length = cut;
    check_routes(&r, &all, "before NaN", 1, rounds / 2);
    check_fast(&r, all, "before NaN", 1, rounds);
    CUDA(cudaFree(r.kv));
    CUDA(cudaFree(r.partials));
}

void check_rows(int k, bool gather) {
    const params p = {{"K", text(k)}, {"GATHER", text(gather)}}, pe = {{"DIM", text(k)}, {"T", "7"}};
    const int rows = 300, vocab = 1000;
    gpu_kernel norm = kernel_build("cuda/rmsnorm.cu", p), embed = kernel_build("cuda/embed.cu", pe);
    gpu_kernel ref_norm = kernel_build_ref("rows.cu", "ref_rmsnorm", "cuda/rmsnorm.cu", p);
    gpu_kernel ref_embed = kernel_build_ref("rows.cu", "ref_embed", "cuda/embed.cu", pe, "#define REF_EMBED\n");
    if (!norm.fn) return;
    pass_image pass, one;
    pass.add_segment(rows, 0, {});
    one.add_segment(1, 0, {});
    for (int i = 0; i < rows; i++)
        pass.tokens[(size_t)i] = i * 7919 % vocab;
    for (int i = 0; i < rows / 2; i++)
        pass.logit_rows.push_back(2 * i + 1);
    pass.samples.resize(rows / 2);
    one.logit_rows = {0};
    one.samples.resize(1);
    sf_cuda_block *b = pass.upload(), *b1 = one.upload();
    const size_t n = (size_t)rows * k;
    float *x = (float *)device_alloc(n * 4), *w = (float *)device_alloc((size_t)k * 4), *ref = (float *)device_alloc(n * 4);
    void *table = device_alloc((size_t)vocab * k * 2), *h = device_alloc(n * 2), *h1 = device_alloc(n * 2);
    fill_bf16(table, (size_t)vocab * k, 1, 1.0f);
    fill_f32(w, (size_t)k, 2, 1.0f);
    sf_cuda_args a = {};
    a.block = b;
    a.weight = table;
    a.out = ref;
    kernel_launch_as(ref_embed, dim3(rows), 1, a);
    gpu_kernel pack = kernel_build("../bench/gpu/pack.cu", {{"N", text(vocab)}, {"K", text(k)}, {"T", "7"}}, false);
    void *blocks = device_alloc((size_t)(vocab + 112) * (size_t)(k + 64) * 2);
    a.in = table;
    a.out = blocks;
    kernel_launch_as(pack, dim3(64), 256, a);
    CUDA(cudaMemset(x, 0xff, n * 4));
    a.weight = blocks;
    a.out = x;
    kernel_launch(embed, a);
    expect(count_different(x, ref, n * 4) == 0, "embed of %d: as the twin's", k);
    fill_f32(x, n, 3, 2.0f);
    a.in = x;
    a.weight = w;
    a.out = ref;
    const int out_rows = gather ? rows / 2 : rows;
    kernel_launch_as(ref_norm, dim3((unsigned)out_rows), 1, a);
    a.out = h;
    kernel_launch(norm, a);
    const double e = relative_error(h, true, ref, (size_t)out_rows * k);
    expect(e < 4e-3, "rmsnorm of %d: %.2e from the twin", k, e);
    const int row = gather ? 2 * 77 + 1 : 77;
    a.block = b1;
    a.in = x + (size_t)row * k;
    a.out = h1;
    kernel_launch(norm, a);
    expect(count_different(h1, (unsigned short *)h + (size_t)77 * k, (size_t)k * 2) == 0, "rmsnorm of %d: a row alone", k);
}

/* ---- time ---- */

void print_time(const char *what, double us, double bytes, double flops) {
    printf("time %-44s %9.2f us", what, us);
    if (bytes > 0) printf("  %6.2f TB/s", bytes / us * 1e-6);
    if (flops > 0) printf("  %6.1f TFLOP/s", flops / us * 1e-6);
    printf("\n");
    fflush(stdout);
}

/* rows sequences of one row each (window: rows a sequence) at position context - 1, layers pools in turn. */
void time_decode(rig *r, const char *what, const gpu_kernel &k, int seqs, int window, int context, int layers) {
    pass_image pass;
    const int per = (context + 63) / 64;
    for (int i = 0; i < seqs; i++)
        pass.add_segment(window, context - window, pages_of(i * per, context));
    sf_cuda_block *b = pass.upload();
    const size_t pool = (size_t)seqs * per * r->page_bytes(), rows = (size_t)seqs * window;
    void *kv = device_alloc(pool * (size_t)layers, 0), *q = device_alloc(rows * r->q_width() * 2),
         *out = device_alloc(rows * r->q_width() * 2);
    fill_bf16(kv, pool * (size_t)layers / 2, 1, 1.0f);
    fill_bf16(q, rows * r->q_width(), 2, 0.1f);
    const double us = graph_us(layers * 2, [&](cudaStream_t st, int i) {
        sf_cuda_args a = args_of(*r, b, q, out, r->partials);
        a.kv = (char *)kv + (size_t)(i % layers) * pool;
        kernel_launch(k, a, st);
    });
    print_time(what, us, (double)seqs * context * r->s.kv_heads * r->s.dim * 4, 0);
    CUDA(cudaFree(kv));
    CUDA(cudaFree(q));
    CUDA(cudaFree(out));
    CUDA(cudaFree(b));
}

void time_prefill(rig *r, const char *what, const gpu_kernel &k, int seqs, int length, int pos0) {
    pass_image pass;
    const int per = (length + pos0 + 63) / 64;
    for (int i = 0; i < seqs; i++)
        pass.add_segment(length, pos0, pages_of(i * per, length + pos0));
    sf_cuda_block *b = pass.upload();
    const size_t rows = (size_t)seqs * length;
    void *kv = device_alloc((size_t)seqs * per * r->page_bytes(), 0), *q = device_alloc(rows * r->q_width() * 2),
         *out = device_alloc(rows * r->q_width() * 2);
    fill_bf16(kv, (size_t)seqs * per * r->page_bytes() / 2, 1, 1.0f);
    fill_bf16(q, rows * r->q_width(), 2, 0.1f);
    const double us = graph_us(3, [&](cudaStream_t st, int) {
        sf_cuda_args a = args_of(*r, b, q, out, nullptr);
        a.kv = kv;
        kernel_launch(k, a, st);
    });
    const double keys = (double)rows * (pos0 + (length + 1) / 2.0);
    print_time(what, us, 0, keys * 4.0 * r->s.heads * r->s.dim);
    CUDA(cudaFree(kv));
    CUDA(cudaFree(q));
    CUDA(cudaFree(out));
    CUDA(cudaFree(b));
}

void time_all(void) {
    rig r = make_rig({32, 8, 128}, 8192, 1, false);
    if (!r.prefill.fn) return;
    const gpu_kernel &d = r.decode, &d2 = r.decode2, &p = r.prefill;
    time_decode(&r, "decode kernel, 1 row, context 528", d, 1, 1, 528, 64);
    time_decode(&r, "decode kernel, 1 row, context 4096", d, 1, 1, 4096, 32);
    time_decode(&r, "decode kernel, 8 rows, context 528", d, 8, 1, 528, 16);
    time_decode(&r, "decode kernel, 32 rows, context 528", d, 32, 1, 528, 8);
    time_decode(&r, "decode kernel, 64 rows, context 528", d, 64, 1, 528, 6);
    time_decode(&r, "decode kernel, 128 rows, context 528", d, 128, 1, 528, 4);
    time_decode(&r, "prefill kernel, 128 rows, context 528", p, 128, 1, 528, 4);
    time_decode(&r, "decode kernel, 256 rows, context 528", d, 256, 1, 528, 3);
    time_decode(&r, "prefill kernel, 256 rows, context 528", p, 256, 1, 528, 3);
    time_decode(&r, "decode kernel, 1 window of 8, context 528", d, 1, 8, 528, 32);
    time_decode(&r, "decode kernel m2, 1 window of 8, context 528", d2, 1, 8, 528, 32);
    time_decode(&r, "decode kernel, 16 windows of 8, context 528", d, 16, 8, 528, 8);
    time_decode(&r, "decode kernel m2, 16 windows of 8, context 528", d2, 16, 8, 528, 8);
    time_decode(&r, "prefill kernel, 16 windows of 8, context 528", p, 16, 8, 528, 8);
    time_prefill(&r, "prefill kernel, 16 x 2048", p, 16, 2048, 0);
    time_prefill(&r, "prefill kernel, 1 x 2048", p, 1, 2048, 0);
    time_prefill(&r, "prefill kernel, 1 x 512", p, 1, 512, 0);
    time_prefill(&r, "prefill kernel, 1 x 2048 behind 6144", p, 1, 2048, 6144);
    for (const char *tiles : {"2", "8"}) {
        char what[64];
        r.decode = kernel_build("cuda/attention_decode.cu", {{"CHUNK_TILES", tiles}, {"TO_ROWS", "1048576"}});
        r.prefill = kernel_build("cuda/attention_prefill.cu", {{"CHUNK_TILES", tiles}, {"FEW_ROWS", "0"}});
        snprintf(what, sizeof what, "decode kernel, 1 row, 528, chunks of %s tiles", tiles);
        time_decode(&r, what, r.decode, 1, 1, 528, 64);
        snprintf(what, sizeof what, "decode kernel, 1 row, 4096, chunks of %s tiles", tiles);
        time_decode(&r, what, r.decode, 1, 1, 4096, 32);
        snprintf(what, sizeof what, "prefill kernel, 16 x 2048, chunks of %s tiles", tiles);
        time_prefill(&r, what, r.prefill, 16, 2048, 0);
    }
}

/* The fast kernel beside the pinned one, with the shape's parameters; most: values of MAX_CHUNKS to try. */
void time_fast(shape s, const std::vector<const char *> &most) {
    rig r = make_rig(s, 8192, 1, false);
    if (!r.prefill.fn) return;
    params p = {{"HEADS", text(s.heads)}, {"KV_HEADS", text(s.kv_heads)}, {"HEAD_DIM", text(s.dim)}};
    std::vector<gpu_kernel> fast;
    for (const char *m : most) {
        p["MAX_CHUNKS"] = m;
        fast.push_back(kernel_build("cuda/attention_fast.cu", p));
    }
    for (int context : {528, 2048, 4096, 8000})
        for (int rows : {1, 2, 4, 8, 12, 16, 24, 32}) {
            char what[96];
            const int layers = std::max(2, std::min(32, 65536 / rows / context));
            snprintf(what, sizeof what, "pinned, dim %d, %d rows, context %d", s.dim, rows, context);
            time_decode(&r, what, r.decode, rows, 1, context, layers);
            for (size_t i = 0; i < most.size(); i++) {
                snprintf(what, sizeof what, "fast %s, dim %d, %d rows, context %d", most[i], s.dim, rows, context);
                time_decode(&r, what, fast[i], rows, 1, context, layers);
            }
        }
}

void time_rows(int rows) {
    char what[64];
    gpu_kernel norm = kernel_build("cuda/rmsnorm.cu", {}), embed = kernel_build("cuda/embed.cu", {}),
               rope = kernel_build("cuda/rope_append.cu", {});
    if (!norm.fn) return;
    const int k = 4096, width = 6144;
    pass_image pass;
    std::vector<int> pages = pages_of(0, rows);
    pass.add_segment(rows, 0, pages);
    sf_cuda_block *b = pass.upload();
    void *x = device_alloc((size_t)rows * width * 4), *h = device_alloc((size_t)rows * width * 4), *w = device_alloc(k * 4),
         *kv = device_alloc(pages.size() * 8 * 64 * 128 * 4), *table = device_alloc((size_t)rows * 128 * 4 + 4096, 0);
    fill_f32(x, (size_t)rows * width, 1, 1.0f);
    fill_f32(w, k, 2, 1.0f);
    void *table_group = device_alloc((size_t)7 * 16 * k * 2, 0); /* of the embedding: token 0 alone is read */
    sf_cuda_args a = {};
    a.block = b;
    a.in = x;
    a.out = h;
    a.weight = w;
    a.kv = kv;
    a.extra = table;
    snprintf(what, sizeof what, "rmsnorm, %d rows", rows);
    print_time(what, graph_us(20, [&](cudaStream_t st, int) { kernel_launch(norm, a, st); }), 6.0 * rows * k, 0);
    snprintf(what, sizeof what, "rope_append, %d rows", rows);
    print_time(what, graph_us(20, [&](cudaStream_t st, int) { kernel_launch(rope, a, st); }), 6.0 * rows * width, 0);
    snprintf(what, sizeof what, "embed, %d rows", rows);
    a.weight = table_group;
    print_time(what, graph_us(20, [&](cudaStream_t st, int) { kernel_launch(embed, a, st); }), 6.0 * rows * k, 0);
}

} // namespace

int main(int argc, char **argv) {
    const std::string mode = argc > 1 ? argv[1] : "check";
    if (mode == "check") {
        check_rows(4096, false);
        check_rows(4096, true);
        check_rows(576, false);
        check({32, 8, 128}, 4101, 4);
        check({9, 3, 64}, 2000, 4);
        check({14, 2, 64}, 1100, 4);
        check({8, 8, 64}, 700, 4);
        check({64, 8, 128}, 1100, 4);
        check({12, 3, 128}, 900, 4);
        check({28, 4, 128}, 500, 4);
        check({16, 8, 128, true}, 900, 4);
        check({9, 3, 64, true}, 500, 4);
    } else if (mode == "sanitize") {
        check({6, 2, 64}, 330, 1);
        check({8, 2, 128}, 330, 1);
        check_rows(576, true);
    } else if (mode == "fast") {
        time_fast({32, 8, 128}, {"32"});
        time_fast({9, 3, 64}, {"32"});
    } else {
        time_all();
        time_rows(1);
        time_rows(128);
        time_rows(2048);
    }
    printf("%s: %d failed\n", mode.c_str(), harness_failed);
    return harness_failed != 0;
}
