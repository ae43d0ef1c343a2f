#include "gemm_check.h"

#include <cmath>
#include <vector>
#include "gemm_device.h"

/* The reference twin, compiled by nvcc into this program. */
#include "../../ref/cuda/gemm_ref.cu"

static const int PROBES = 16, CAPACITY = 1540;

struct bench_op {
    const gemm_op &op;
    device_memory matrix, packed, probes, in, out, gold, start, bias, block;
    void *maps;

    explicit bench_op(const gemm_op &o)
        : op(o), matrix(o.matrix_bytes()), packed(o.packed_bytes()), probes((size_t)PROBES * o.k * 2),
          in((size_t)CAPACITY * o.k * 2), out(o.out_bytes(CAPACITY)), gold(o.out_bytes(PROBES)),
          start(o.out_bytes(PROBES)), bias((size_t)o.n * 4), block(sizeof(sf_cuda_block)), maps(tensor_maps(in.at, CAPACITY, o.k)) {
        fill_random(matrix.at, (size_t)o.n * o.k, 1, 0.05f);
        fill_random(probes.at, (size_t)PROBES * o.k, 2, 2.0f);
        fill_random(start.at, o.out_bytes(PROBES) / 2, 3, 1.0f);
        std::vector<float> b((size_t)o.n);
        for (size_t i = 0; i < b.size(); i++) b[i] = std::sin((float)i) * 9.0f; /* as large as the sums */
        CUDA_OK(cudaMemcpy(bias.at, b.data(), b.size() * 4, cudaMemcpyHostToDevice));
    }
    const float *biases() const { return op.bias ? (const float *)bias.at : nullptr; }
    ~bench_op() { cudaFree(maps); }
    size_t row_bytes() const { return op.out_bytes(1); }

    void run(const kernel &k, int rows, int grid, row_mix m) {
        block_write(block.at, rows);
        mix_rows(in.at, probes.at, m, rows, CAPACITY, op.k);
        mix_out(out.at, op.ep == ADD ? start.at : nullptr, m, rows, CAPACITY, row_bytes());
        sf_cuda_args a = {(const sf_cuda_block *)block.at, in.at, out.at, packed.at, biases(), nullptr, maps};
        kernel_launch(k, a, grid, true, nullptr);
        CUDA_OK(cudaDeviceSynchronize());
    }
};

static int check_packing(bench_op &b) {
    const kernel pack = kernel_load("pack", pack_prelude(b.op), false);
    sf_cuda_args a = {};
    a.in = b.matrix.at;
    a.out = b.packed.at;
    void *arguments[] = {&a};
    CUDA_OK(cudaMemset(b.packed.at, 0xff, b.op.packed_bytes()));
    CUDA_OK(cudaLaunchKernel((const void *)pack.function, dim3(1024), dim3(256), arguments, 0, nullptr));
    device_memory back(b.op.matrix_bytes());
    CUDA_OK(cudaMemset(back.at, 0xff, b.op.matrix_bytes()));
    unpack_ref<<<1024, 256>>>((const unsigned short *)b.packed.at, (unsigned short *)back.at, b.op.n, b.op.k, b.op.t,
                              b.op.blocks(), b.op.ep == SWIGLU);
    CUDA_OK(cudaDeviceSynchronize());
    std::vector<unsigned char> x(b.op.matrix_bytes()), y(x.size());
    CUDA_OK(cudaMemcpy(x.data(), b.matrix.at, x.size(), cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(y.data(), back.at, y.size(), cudaMemcpyDeviceToHost));
    return x != y;
}

/* The gold rows: each probe alone, by the 8-row kernel. */
static void make_gold(bench_op &b) {
    const kernel k = kernel_load(mma_kernel(b.op, 8).name, mma_kernel(b.op, 8).prelude, true);
    for (int i = 0; i < PROBES; i++) {
        b.run(k, 1, 0, {PROBES, 0, i, 0, 0});
        CUDA_OK(cudaMemcpy((char *)b.gold.at + i * b.row_bytes(), b.out.at, b.row_bytes(), cudaMemcpyDeviceToDevice));
    }
}

static std::vector<float> floats(const void *device, const gemm_op &op, int rows) {
    std::vector<unsigned char> raw(op.out_bytes(rows));
    CUDA_OK(cudaMemcpy(raw.data(), device, raw.size(), cudaMemcpyDeviceToHost));
    std::vector<float> v((size_t)rows * op.columns());
    for (size_t i = 0; i < v.size(); i++) {
        unsigned bits = op.out_bf16() ? (unsigned)((unsigned short *)raw.data())[i] << 16 : ((unsigned *)raw.data())[i];
        memcpy(&v[i], &bits, 4);
    }
    return v;
}

/* ||gold - reference|| / ||reference||; and how many gold rows have the reference's very bits (the control: a sum in
 * another order must differ). */
static double against_reference(bench_op &b, int *equal) {
    device_memory ref(b.op.out_bytes(PROBES));
    CUDA_OK(cudaMemcpy(ref.at, b.start.at, b.op.out_bytes(PROBES), cudaMemcpyDeviceToDevice));
    gemm_ref<<<1024, 128>>>((const unsigned short *)b.probes.at, (const unsigned short *)b.matrix.at, b.biases(),
                            ref.at, PROBES, b.op.n, b.op.k, b.op.ep, b.op.stores_bf16);
    CUDA_OK(cudaDeviceSynchronize());
    const std::vector<float> x = floats(b.gold.at, b.op, PROBES), y = floats(ref.at, b.op, PROBES);
    double gap = 0, size = 0;
    for (size_t i = 0; i < x.size(); i++) {
        gap += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
        size += (double)y[i] * y[i];
    }
    *equal = PROBES - compare_out(ref.at, b.gold.at, {PROBES, 1, 0, 0, 0}, PROBES, PROBES, b.row_bytes()).wrong;
    return std::sqrt(gap / size);
}

/* All row counts given; clean, then with every other row poisoned. */
static int check_bits(bench_op &b, const gemm_kernel &g, const std::vector<int> &counts, int *seen) {
    const kernel k = kernel_load(g.name, g.prelude, true);
    int failures = 0;
    for (int rows : counts)
        for (int turn = 0; turn < 4; turn++) {
            const row_mix m = {PROBES, 5, turn, turn >= 2, turn % 2};
            /* another grid than the usual in the last turn: the bits must not know */
            b.run(k, rows, turn == 3 ? 16 : 0, m);
            const mix_result r = compare_out(b.out.at, b.gold.at, m, rows, CAPACITY, b.row_bytes());
            *seen += r.sound;
            if (r.wrong || r.spilt) {
                std::printf("  %s %s rows %d turn %d: %d of %d rows differ, %d rows past the end written\n", b.op.name,
                            g.label.c_str(), rows, turn, r.wrong, r.sound, r.spilt);
                failures++;
            }
        }
    return failures;
}

/* ||rows - gold|| / ||gold|| of a fast kernel's sound rows, the largest of all row counts; clean, then with every other
 * row poisoned. Rows past the pass stay as they are. */
static double fast_gap(bench_op &b, const gemm_kernel &g, int *failures, int *equal) {
    const kernel k = kernel_load(g.name, g.prelude, true);
    const std::vector<float> gold = floats(b.gold.at, b.op, PROBES);
    double most = 0;
    for (int rows : {1, 3, g.rows - 1, g.rows})
        for (int turn = 0; turn < 3; turn++) {
            const row_mix m = {PROBES, 5, turn, turn >= 1, turn % 2};
            b.run(k, rows, 0, m);
            const mix_result r = compare_out(b.out.at, b.gold.at, m, rows, CAPACITY, b.row_bytes());
            *equal += r.sound - r.wrong;
            *failures += r.spilt != 0;
            const std::vector<float> got = floats(b.out.at, b.op, rows);
            double gap = 0, size = 0;
            for (int i = 0; i < rows; i++)
                for (int c = 0; m.sound(i) && c < b.op.columns(); c++) {
                    const double x = got[(size_t)i * b.op.columns() + c], y = gold[(size_t)m.probe(i) * b.op.columns() + c];
                    gap += (x - y) * (x - y);
                    size += y * y;
                }
            if (size > 0 && !(std::sqrt(gap / size) <= most)) most = std::sqrt(gap / size);
        }
    return most;
}

/* The fast kernels against the pinned ones. The control: another order of sums must show in fp32. */
static int check_fast(bench_op &b, double limit) {
    int failures = 0, equal = 0;
    double most = 0;
    for (int rows : {8, 16, 32, 64}) {
        if (rows > FAST_ROWS) break;
        const double gap = fast_gap(b, gemm_pick_fast(b.op, rows), &failures, &equal);
        if (!(gap < limit)) failures++;
        if (!(gap <= most)) most = gap;
    }
    if (!b.op.out_bf16() && equal > 0) failures++;
    std::printf("  fast: gap %.1e, %d rows with the pinned bits, %d failures\n", most, equal, failures);
    return failures;
}

static std::vector<gemm_kernel> family(const gemm_op &op) {
    std::vector<gemm_kernel> all = {mma_kernel(op, 8), mma_kernel(op, 16), mma_kernel(op, 32)};
    for (int rows : {64, 128, 256, 512, 768, 1536}) all.push_back(wgmma_kernel(op, rows, "chosen"));
    for (int rows : {64, 256}) all.push_back(wgmma_kernel(op, rows, "rows"));
    all.push_back(wgmma_kernel(op, 128, "weights"));
    for (int features : {128, 192})
        if (features / 16 % op.t == 0) all.push_back(wgmma_kernel(op, 512, "weights", features, 2));
    for (int cluster : {1, 2}) all.push_back(wide_kernel(op, 128, 256, cluster));
    all.push_back(wide_kernel(op, 64, 128, 2));
    return all;
}

int gemm_check_fast(const gemm_op &op) {
    bench_op b(op);
    int failures = check_packing(b), equal = 0;
    make_gold(b);
    std::printf("check %-8s n %6d k %5d: pinned %.1e from the reference\n", op.name, op.n, op.k,
                against_reference(b, &equal));
    failures += check_fast(b, op.out_bf16() ? 4e-3 : 1e-4);
    std::fflush(stdout);
    return failures;
}

int gemm_check(const gemm_op &op) {
    bench_op b(op);
    int failures = check_packing(b), seen = 0, equal = 0;
    const bool packed = !failures;
    make_gold(b);
    const double gap = against_reference(b, &equal);
    const double limit = op.out_bf16() ? 4e-3 : 1e-4;
    if (!(gap < limit)) failures++;
    if (!op.out_bf16() && equal == PROBES) failures++;
    for (const gemm_kernel &g : family(op)) {
        std::vector<int> counts = {1, 3, 7, g.rows - 1, g.rows};
        if (g.rows == 768) counts = {1, 300, 513, 540, 640, 700, 768}; /* each size of a CTA's rows */
        if (g.rows == 1536) counts = {1, 1025, 1100, 1300, 1500, 1536};
        if (g.name == "gemm_wide") counts = {1, 65, g.rows, 2 * g.rows - 3, 513};
        failures += check_bits(b, g, counts, &seen);
    }
    failures += check_fast(b, limit);
    std::printf("check %-8s n %6d k %5d: packing %s, gap %.1e, %d rows as bits, %d failures\n", op.name, op.n, op.k,
                packed ? "inverts" : "WRONG", gap, seen, failures);
    std::fflush(stdout);
    return failures;
}

static void compile_op(const gemm_op &op) {
    kernel_prepare("pack", pack_prelude(op));
    for (const gemm_kernel &g : family(op)) kernel_prepare(g.name, g.prelude);
    for (int rows = 8; rows <= FAST_ROWS; rows *= 2) {
        const gemm_kernel g = gemm_pick_fast(op, rows);
        kernel_prepare(g.name, g.prelude);
    }
}

void gemm_compile_all() {
    for (const gemm_op &op : gemm_variants()) compile_op(op);
    for (const gemm_model *m : {&llama_8b(), &smollm2_135m()}) {
        for (const gemm_op &op : m->layer) compile_op(op);
        compile_op(m->head);
    }
}
