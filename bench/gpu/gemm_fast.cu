#include "gemm_fast.h"

#include <algorithm>
#include "gemm_chain.h"

/* ---- the kernels that the template chooses ---- */

static std::vector<gemm_kernel> picks(const chain_model &t, int rows, bool fast) {
    std::vector<gemm_kernel> g;
    for (const gemm_op &op : t.ops) g.push_back(fast ? gemm_pick_fast(op, rows) : gemm_pick(op, rows));
    return g;
}

/* change: microseconds that the exchange of this op's kernel alone adds to a step, per call; 0 for the step itself. */
static void record(std::string *json, const char *model, const char *op, int rows, double pinned, double fast,
                   double change) {
    char line[256];
    std::snprintf(line, sizeof line,
                  "    {\"model\": \"%s\", \"op\": \"%s\", \"rows\": %d, \"pinned_us\": %.2f, \"fast_us\": %.2f, "
                  "\"ratio\": %.3f, \"change_in_step_us\": %.2f},\n",
                  model, op, rows, pinned, fast, fast / pinned, change);
    *json += line;
    std::printf("%-12s %-8s rows %2d  pinned %8.2f us  fast %8.2f  ratio %.3f  in the step %+.2f\n", model, op, rows,
                pinned, fast, fast / pinned, change);
    std::fflush(stdout);
}

void gemm_fast(const gemm_model &m, std::string *json) {
    chain_model t(m);
    for (int rows : {1, 8, 16, 32}) {
        const std::vector<gemm_kernel> pinned = picks(t, rows, false), fast = picks(t, rows, true);
        const double step = t.chain_us(pinned, rows, true);
        record(json, m.name, "step", rows, step, t.chain_us(fast, rows, true), 0);
        for (size_t i = 0; i < t.ops.size(); i++) {
            std::vector<gemm_kernel> one = pinned;
            one[i] = fast[i];
            const double change = t.chain_us(one, rows, true) - t.chain_us(pinned, rows, true);
            const double alone = t.ours_us(i, pinned[i], rows);
            record(json, m.name, t.ops[i].name, rows, alone, t.ours_us(i, fast[i], rows),
                   change / (i < 4 ? m.layers : 1));
        }
    }
}

/* ---- the shapes to choose from ---- */

/* Whether shared memory, registers and threads hold it, and it leaves no warp without work. */
static bool fits(const gemm_op &op, int rows, fast_shape f) {
    const int octets = rows / 8, blocks = op.blocks() / f.ctas, warps = op.t / f.tiles * f.shares * f.split;
    if (op.t % f.tiles || octets % f.shares || op.blocks() % f.ctas || warps < 2 || warps > 14) return false;
    if (f.ctas > 1 && op.groups() * f.ctas > 132) return false;
    int copy = 1;
    for (int b = 1; b <= blocks; b++)
        if (blocks % b == 0 && b * op.t * 2048 <= f.copy_kib * 1024) copy = b;
    const int left = op.t * octets * (f.split * f.ctas - 1) / f.ctas * 512; /* to the other parts of k */
    const int sums = f.tiles * octets / f.shares * 4, registers = sums + f.tiles * 8 + octets / f.shares * 4 + 48;
    if (f.split > blocks / copy || f.split * copy * rows * 128 > 65536) return false;
    return left + f.split * copy * (rows * 128 + op.t * 2048) < 216 * 1024 && registers < std::min(255, 2048 / (warps + 2));
}

static std::vector<gemm_kernel> shapes(const gemm_op &op, int rows) {
    std::vector<gemm_kernel> all;
    for (int ctas : {1, 2})
        for (int tiles = 1; tiles <= op.t; tiles++)
            for (int shares : {1, 2, 4})
                for (int split : {1, 2, 3, 4, 8})
                    for (int copy : {4, 16}) {
                        const fast_shape f = {tiles, shares, split, ctas, copy};
                        const bool small = op.k <= 2048;
                        if (!fits(op, rows, f) || (ctas == 1 && op.groups() < 66 && !small)) continue;
                        if (copy == 4 ? !small || op.t > 2 : op.t == 1 && split == 4) continue;
                        if (small ? ctas > 1 : split == 3) continue;
                        all.push_back(fast_kernel(op, rows, f));
                    }
    return all;
}

static const int SWEEP_ROWS[] = {8, 16, 32};

void gemm_sweep_compile(const gemm_model &m) {
    std::vector<gemm_op> ops = m.layer;
    ops.push_back(m.head);
    for (int rows : SWEEP_ROWS)
        for (const gemm_op &op : ops) {
            std::vector<gemm_kernel> all = shapes(op, rows);
            all.push_back(gemm_pick(op, rows));
            for (const gemm_kernel &g : all) kernel_prepare(g.name, g.prelude);
        }
}

void gemm_sweep(const gemm_model &m) {
    chain_model t(m);
    for (int rows : SWEEP_ROWS) {
        std::vector<gemm_kernel> best = picks(t, rows, false);
        const double pinned = t.chain_us(best, rows, true);
        double least = pinned;
        for (size_t i = 0; i < t.ops.size(); i++) {
            std::vector<std::pair<double, gemm_kernel>> tried;
            for (const gemm_kernel &g : shapes(t.ops[i], rows)) {
                std::vector<gemm_kernel> with = best;
                with[i] = g;
                tried.emplace_back(t.chain_us(with, rows, true), g);
            }
            std::sort(tried.begin(), tried.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
            std::printf("%s rows %d %s, %.1f:", m.name, rows, t.ops[i].name, least);
            for (size_t j = 0; j < tried.size() && j < 9; j++)
                std::printf(" %s %.1f;", tried[j].second.label.c_str() + 5, tried[j].first);
            std::printf("\n");
            std::fflush(stdout);
            if (!tried.empty() && tried[0].first < least) {
                best[i] = tried[0].second;
                least = tried[0].first;
            }
        }
        std::printf("%s rows %d: pinned %.1f us, best %.1f\n", m.name, rows, pinned, least);
        std::fflush(stdout);
    }
}
