#include "gemm_ops.h"

#include <algorithm>

static std::string define(const char *name, int value) {
    return std::string("constexpr int ") + name + " = " + std::to_string(value) + ";\n";
}

static std::string common(const gemm_op &op) {
    const char *ep[] = {"EPILOGUE_store", "EPILOGUE_add", "EPILOGUE_swiglu"};
    return define("N", op.n) + define("K", op.k) + define("HAS_BIAS", op.bias) + define("LOGIT_ROWS", 0) +
           define("OUT_BF16", op.stores_bf16) + define("SMS", 132) + define("T", op.t) +
           "enum { EPILOGUE_store, EPILOGUE_add, EPILOGUE_swiglu, EPILOGUE = " + ep[op.ep] + " };\n" +
           "enum { WEIGHT_bf16, WEIGHT = WEIGHT_bf16 };\n";
}

gemm_kernel mma_kernel(const gemm_op &op, int rows) {
    return {"gemm_rows_mma",
            common(op) + define("ROWS", rows) + define("TILES_WARP", 1) + define("SPLIT", 0) + define("FAULT", 0),
            "mma r" + std::to_string(rows), rows};
}

gemm_kernel fast_kernel(const gemm_op &op, int rows, fast_shape s) {
    char label[96];
    std::snprintf(label, sizeof label, "fast r%d w%dh%ds%dc%dk%d", rows, s.tiles, s.shares, s.split, s.ctas, s.copy_kib);
    return {"gemm_fast_rows",
            common(op) + define("ROWS", rows) + define("TILES_WARP", s.tiles) + define("ROW_SHARES", s.shares) +
                define("SPLIT", s.split) + define("CTAS", s.ctas) + define("COPY_KIB", s.copy_kib),
            label, rows};
}

gemm_kernel wgmma_kernel(const gemm_op &op, int rows, const char *pair, int features, int row_blocks) {
    return {"gemm_rows_wgmma",
            common(op) + define("ROWS", rows) + define("FEATURES", features) + define("ROW_BLOCKS", row_blocks) +
                "enum { PAIR_chosen, PAIR_none, PAIR_rows, PAIR_weights, PAIR = PAIR_" + pair + " };\n",
            "wgmma r" + std::to_string(rows) + " " + pair + (features ? " f" + std::to_string(features) : "") +
                (row_blocks ? " b" + std::to_string(row_blocks) : ""),
            rows};
}

gemm_kernel wide_kernel(const gemm_op &op, int features, int rows, int cluster) {
    return {"gemm_wide",
            common(op) + define("FEATURES", features) + define("ROWS", rows) +
                define("CLUSTER", cluster),
            "wide m" + std::to_string(features) + "r" + std::to_string(rows) + "c" +
                std::to_string(cluster),
            rows};
}

gemm_kernel gemm_pick(const gemm_op &op, int rows) {
    if (rows <= 8) return mma_kernel(op, 8);
    if (rows <= 16) return mma_kernel(op, 16);
    for (int bucket : {64, 128, 256, 512, 768})
        if (rows <= bucket) return wgmma_kernel(op, bucket, "chosen");
    if (rows > 1024 && rows <= 1536) return wgmma_kernel(op, 1536, "chosen");
    return wide_kernel(op, 0, 256, 2);
}

gemm_kernel gemm_pick_fast(const gemm_op &op, int rows) {
    const int bucket = rows <= 8 ? 8 : rows <= 16 ? 16 : rows <= 32 ? 32 : 64;
    return rows > FAST_ROWS ? gemm_pick(op, rows) : fast_kernel(op, bucket, {});
}

std::string pack_prelude(const gemm_op &op) {
    return define("N", op.n) + define("K", op.k) + define("T", op.t) + define("INTERLEAVE", op.ep == SWIGLU);
}

const std::vector<gemm_op> &gemm_variants() {
    static const std::vector<gemm_op> ops = {{"qkv b", 4608, 3584, STORE, 3, true},
                                             {"qkv b", 1152, 896, STORE, 2, true},
                                             {"o b", 1004, 960, ADD, 1, true},
                                             {"store16", 960, 576, STORE, 1, false, true},
                                             {"store16b", 1004, 576, STORE, 2, true, true}};
    return ops;
}

const gemm_model &llama_8b() {
    static const gemm_model m = {"Llama-3.1-8B",
                                 32,
                                 {{"qkv", 6144, 4096, STORE, 4},
                                  {"o", 4096, 4096, ADD, 4},
                                  {"gate_up", 28672, 4096, SWIGLU, 7},
                                  {"down", 4096, 14336, ADD, 2}},
                                 {"lm_head", 128256, 4096, STORE, 8}};
    return m;
}

const gemm_model &smollm2_135m() {
    static const gemm_model m = {"SmolLM2-135M",
                                 30,
                                 {{"qkv", 960, 576, STORE, 1},
                                  {"o", 576, 576, ADD, 1},
                                  {"gate_up", 3072, 576, SWIGLU, 2},
                                  {"down", 576, 1536, ADD, 1}},
                                 {"lm_head", 49152, 576, STORE, 8}};
    return m;
}
