/* Import: a checkpoint's figures as a model description that the generator reads. */
#include "gen_test.h"

#include "import.h"
#include "model.h"
#include "model/gguf_make.h"

#include <math.h>
#include <sys/stat.h>

static char dir[64];

static int make_dir(void **state) {
    snprintf(dir, sizeof dir, "/tmp/sf_import_XXXXXX");
    return go_to_root(state) || !mkdtemp(dir);
}

static int remove_dir(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static const char *at(const char *name) {
    static char paths[16][160];
    static int next;
    char *path = paths[next = (next + 1) % 16];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static void write_file(const char *path, const void *bytes, size_t len) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* What a test changes of the small file. */
typedef struct change {
    const char *arch;       /* NULL: "qwen2" */
    const char *key, *text; /* a further key of text */
    const char *u32_key;    /* a further key */
    uint32_t u32;
    uint32_t head_dim;   /* 0: not said */
    const char *tensor;  /* a further tensor */
    const float *values; /* its values; NULL: 32 times 1 */
    int n_values;
    uint64_t rows;   /* it is a matrix of one column */
    bool f32;        /* u32_key has a float */
    const char *pre; /* NULL: "qwen2" */
} change;

static void put_u32(gm *m, const char *arch, const char *key, uint32_t v) {
    char name[96];
    snprintf(name, sizeof name, "%s.%s", arch, key);
    gm_kv_u32(m, name, v);
}

static void put_tokenizer(gm *m, const change *c) {
    static const char *const tokens[] = {"<s>", "</s>", "a", "b", "ab", "<|end|>"};
    static const uint32_t types[] = {3, 3, 1, 1, 1, 3};
    gm_kv_str(m, "tokenizer.ggml.model", "gpt2");
    gm_kv_str(m, "tokenizer.ggml.pre", c->pre ? c->pre : "qwen2");
    gm_array(m, "tokenizer.ggml.tokens", 8, 6);
    for (int i = 0; i < 6; i++)
        gm_str(m, tokens[i]);
    gm_array(m, "tokenizer.ggml.token_type", 5, 6);
    for (int i = 0; i < 6; i++)
        gm_uint(m, types[i], 4);
    gm_array(m, "tokenizer.ggml.merges", 8, 1);
    gm_str(m, "a b");
    gm_kv_u32(m, "tokenizer.ggml.bos_token_id", 0);
    gm_kv_u32(m, "tokenizer.ggml.eos_token_id", 1);
    gm_kv_u32(m, "tokenizer.ggml.eot_token_id", 5);
    gm_key(m, "tokenizer.ggml.add_bos_token", 7);
    gm_uint(m, 1, 1);
}

/* A GGUF file of a small Qwen2: figures, a tokenizer of 6 tokens, and a bias. */
static const char *small(const change *c) {
    const char *arch = c->arch ? c->arch : "qwen2", *path = at("small.gguf");
    const uint64_t dims[1] = {32};
    gm m = {0};
    gm_head(&m, 3, c->tensor ? 2 : 1, 18u + !!c->key + !!c->u32_key + (c->head_dim ? 2u : 0u));
    gm_kv_str(&m, "general.architecture", arch);
    put_u32(&m, arch, "block_count", 2);
    put_u32(&m, arch, "context_length", 512);
    put_u32(&m, arch, "embedding_length", 48);
    put_u32(&m, arch, "feed_forward_length", 96);
    put_u32(&m, arch, "attention.head_count", 4);
    put_u32(&m, arch, "attention.head_count_kv", 2);
    char name[96];
    snprintf(name, sizeof name, "%s.attention.layer_norm_rms_epsilon", arch);
    gm_kv_f32(&m, name, 1e-6f);
    snprintf(name, sizeof name, "%s.rope.freq_base", arch);
    gm_kv_f32(&m, name, 1000000.0f);
    put_tokenizer(&m, c);
    if (c->head_dim) put_u32(&m, arch, "attention.key_length", c->head_dim);
    if (c->head_dim) put_u32(&m, arch, "attention.value_length", c->head_dim);
    if (c->key) gm_kv_str(&m, c->key, c->text);
    if (c->u32_key && c->f32) gm_kv_f32(&m, c->u32_key, (float)c->u32);
    if (c->u32_key && !c->f32) gm_kv_u32(&m, c->u32_key, c->u32);
    gm_tensor(&m, "blk.0.attn_q.bias", 1, dims, 0, 0);
    const uint64_t more = c->rows     ? c->rows
                          : c->values ? (uint64_t)c->n_values
                                      : 32,
                   matrix[2] = {1, c->rows};
    if (c->tensor) gm_tensor(&m, c->tensor, c->rows ? 2 : 1, c->rows ? matrix : &more, 0, 128);
    gm_pad(&m, 32);
    for (int i = 0; i < (c->tensor ? 32 + (int)more : 32); i++)
        gm_f32(&m, i < 32 || !c->values ? 1 : c->values[i - 32]);
    gm_pad(&m, 32);
    write_file(path, m.data, m.len);
    gm_fini(&m);
    return path;
}

static sf_model_desc read_model(sf_arena *a, const char *path) {
    sf_err err = {0};
    sf_buf text = {0};
    sf_yaml_node *root = NULL;
    sf_model m;
    assert_ok(sf_buf_read_file(&text, path, SF_YAML_MAX_BYTES, &err), &err);
    assert_ok(sf_yaml_parse(a, path, text.data, text.len, &root, &err), &err);
    assert_ok(sf_model_read(root, path, &m, &err), &err);
    sf_buf_fini(&text);
    return m.desc;
}

static sf_model_desc import(sf_arena *a, const char *from, const char *out) {
    sf_err err = {0};
    bool written = false;
    assert_ok(sf_import(a, from, out, &written, &err), &err);
    assert_true(written);
    return read_model(a, out);
}

static void a_gguf_file_becomes_a_model(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_model_desc m = import(a, small(&(change){0}), at("qwen-small.yaml"));
    assert_string_equal(m.name, "qwen-small");
    assert_string_equal(m.family, "qwen2");
    assert_true(m.vocab == 6 && m.hidden == 48 && m.layers == 2 && m.heads == 4 && m.kv_heads == 2);
    assert_true(m.head_dim == 12 && m.intermediate == 96 && m.context == 512 && m.norm_eps == 1e-6f);
    assert_true(m.rope_theta == 1e6 && m.qkv_bias && m.tied_embeddings && m.bos == 0 && m.add_bos);
    assert_true(m.n_eos == 2 && m.eos[0] == 1 && m.eos[1] == 5);
    assert_string_equal(m.rope_kind, "default");
    assert_string_equal(m.tokenizer_split, "qwen2");
    sf_arena_destroy(a);
}

static void what_a_gguf_file_may_say_is_followed(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    assert_false(import(a, small(&(change){.tensor = "output.weight"}), at("own-head.yaml")).tied_embeddings);
    assert_int_equal(import(a, small(&(change){.head_dim = 16}), at("wide.yaml")).head_dim, 16);
    assert_string_equal(import(a, small(&(change){.arch = "llama", .pre = "llama-bpe"}), at("l.yaml")).family,
                        "llama");
    sf_arena_destroy(a);
}

/* What llama.cpp's conversion writes for Llama 3.1: the figures are found again. */
static void factors_of_rope_become_figures(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    float factors[32];
    for (int i = 0; i < 32; i++) {
        const double turns = 8192 * pow(1e6, -i / 32.0) / 6.283185307179586, smooth = (turns - 1) / 3;
        factors[i] = (float)(turns > 4 ? 1 : turns < 1 ? 32 : 1 / ((1 - smooth) / 32 + smooth));
    }
    sf_model_desc m = import(
        a, small(&(change){.head_dim = 64, .tensor = "rope_freqs.weight", .values = factors, .n_values = 32}),
        at("factors.yaml"));
    assert_string_equal(m.rope_kind, "llama3");
    assert_true(m.rope_factor == 32 && m.rope_low_freq == 1 && m.rope_high_freq == 4 &&
                m.rope_original_context == 8192);
    sf_arena_destroy(a);
}

static void scaled_rope_of_a_gguf_file_is_followed(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_model_desc m =
        import(a, small(&(change){.key = "qwen2.rope.scaling.type", .text = "yarn"}), at("yarn.yaml"));
    assert_string_equal(m.rope_kind, "yarn");
    assert_true(m.rope_factor == 1 && m.rope_original_context == 512 && m.rope_beta_fast == 32 &&
                m.rope_beta_slow == 1);
    m = import(a, small(&(change){.u32_key = "qwen2.rope.scaling.factor", .f32 = true, .u32 = 4}),
               at("linear.yaml"));
    assert_string_equal(m.rope_kind, "linear");
    assert_true(m.rope_factor == 4);
    sf_arena_destroy(a);
}

static void refused(const char *from, sf_code code, const char *text) {
    sf_arena *a = new_arena();
    sf_err err = {0};
    bool written = false;
    const char *out = at("refused.yaml");
    sf_code rc = sf_import(a, from, out, &written, &err);
    if (rc != code || !strstr(message(&err), text))
        fail_msg("code %d '%s', expected %d '%s'", (int)rc, message(&err), (int)code, text);
    assert_false(written);
    assert_int_not_equal(access(out, F_OK), 0);
    sf_arena_destroy(a);
}

static void qwen3_has_norms_and_a_padded_vocabulary(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_model_desc m = import(a, small(&(change){.arch = "qwen3", .tensor = "blk.0.attn_q_norm.weight"}),
                             at("qwen3-small.yaml"));
    assert_string_equal(m.family, "qwen3");
    assert_true(m.qk_norm);
    m = import(a, small(&(change){.tensor = "token_embd.weight", .rows = 8}), at("padded.yaml"));
    assert_true(!m.qk_norm && m.vocab == 8); /* the tokenizer has 6 */
    refused(small(&(change){.tensor = "token_embd.weight", .rows = 5}), SF_FORMAT,
            "small.gguf: the tokenizer has 6 tokens, tensor token_embd.weight 5 rows");
    sf_arena_destroy(a);
}

static void what_is_not_computed_is_refused_by_name(void **state) {
    (void)state;
    refused(small(&(change){.arch = "gemma2"}), SF_UNSUPPORTED,
            "small.gguf: key general.architecture is 'gemma2', expected llama, qwen2 or qwen3");
    refused(small(&(change){.u32_key = "qwen2.attention.sliding_window", .u32 = 4096}), SF_UNSUPPORTED,
            "small.gguf: key qwen2.attention.sliding_window is not supported");
    refused(small(&(change){.u32_key = "qwen2.expert_count", .u32 = 8}), SF_UNSUPPORTED,
            "small.gguf: key qwen2.expert_count is 8, a mixture of experts is not supported");
    refused(small(&(change){.key = "qwen2.rope.scaling.type", .text = "longrope"}), SF_UNSUPPORTED,
            "small.gguf: key qwen2.rope.scaling.type is 'longrope', expected none, linear or yarn");
    refused(small(&(change){.tensor = "rope_freqs.weight"}), SF_FORMAT,
            "small.gguf: tensor rope_freqs.weight is [32] F32, expected [6] F32");
    refused(small(&(change){.tensor = "blk.0.attn_output.bias"}), SF_UNSUPPORTED,
            "small.gguf: tensor blk.0.attn_output.bias: this bias is not computed");
    refused(small(&(change){.pre = "bert"}), SF_UNSUPPORTED, "small.gguf: key tokenizer.ggml.pre is 'bert'");
}

#define QWEN3_YARN                                                                                           \
    "{\"model_type\":\"qwen3\",\"vocab_size\":8,\"hidden_size\":64,\"intermediate_size\":176,"               \
    "\"max_position_embeddings\":40960,\"num_attention_heads\":8,\"num_hidden_layers\":3,"                   \
    "\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,\"dtype\":\"bfloat16\",\"rope_parameters\":"           \
    "{\"rope_theta\":1000000,\"rope_type\":\"yarn\",\"factor\":4.0,\"mscale\":0.75,"                         \
    "\"original_max_position_embeddings\":32768,\"truncate\":false}}"

#define LLAMA                                                                                                \
    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"vocab_size\":8,\"hidden_size\":"   \
    "64,"                                                                                                    \
    "\"intermediate_size\":176,\"max_position_embeddings\":131072,\"num_attention_heads\":8,"                \
    "\"num_hidden_layers\":3,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-05,\"bos_token_id\":3,"           \
    "\"rope_theta\":500000.0,\"rope_scaling\":{\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":" \
    "4.0,"                                                                                                   \
    "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},\"eos_token_id\":4"

#define SPECIAL(id, text)                                                                                    \
    "{\"id\":" id ",\"content\":\"" text "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"       \
    "\"normalized\":false,\"special\":true}"

/* Byte-level BPE of 6 tokens by SmolLM's split. */
static const char tokenizer_json[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_"
    "tokens\":[" SPECIAL("3", "<s>") "," SPECIAL("4", "</s>") "," SPECIAL(
        "5", "<|end|>") "],"
                        "\"normalizer\":null,\"pre_tokenizer\":{\"type\":"
                        "\"Sequence\",\"pretokenizers\":["
                        "{\"type\":\"Digits\",\"individual_digits\":true},"
                        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                        "\"trim_offsets\":true,\"use_regex\":true}]},"
                        "\"post_processor\":null,"
                        "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_"
                        "space\":true,\"trim_offsets\":true,\"use_regex\":true},"
                        "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_"
                        "token\":null,\"continuing_subword_prefix\":null,"
                        "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_"
                        "fallback\":false,"
                        "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a "
                        "b\"]}}";

/* The directory, its files written anew; generation NULL: none. */
static const char *checkpoint(const char *config, const char *generation) {
    write_file(at("config.json"), config, strlen(config));
    write_file(at("tokenizer.json"), tokenizer_json, sizeof tokenizer_json - 1);
    unlink(at("generation_config.json"));
    if (generation) write_file(at("generation_config.json"), generation, strlen(generation));
    return dir;
}

static void a_directory_becomes_a_model(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_model_desc m = import(a, checkpoint(LLAMA "}", "{\"eos_token_id\":[5,4]}"), at("llama-small.yaml"));
    assert_string_equal(m.name, "llama-small");
    assert_string_equal(m.family, "llama");
    assert_true(m.vocab == 8 && m.hidden == 64 && m.layers == 3 && m.heads == 8 && m.kv_heads == 2);
    assert_true(m.head_dim == 8 && m.intermediate == 176 && m.context == 131072 && m.norm_eps == 1e-5f);
    assert_string_equal(m.rope_kind, "llama3");
    assert_true(m.rope_theta == 500000 && m.rope_factor == 8 && m.rope_low_freq == 1 &&
                m.rope_high_freq == 4 && m.rope_original_context == 8192);
    assert_true(!m.qkv_bias && !m.tied_embeddings && m.bos == 3 && !m.add_bos);
    assert_true(m.n_eos == 2 && m.eos[0] == 4 && m.eos[1] == 5);
    assert_string_equal(m.tokenizer_split, "smollm");
    assert_int_equal(import(a, checkpoint(LLAMA "}", NULL), at("alone.yaml")).n_eos, 1);
    sf_arena_destroy(a);
}

static void a_directory_of_qwen3_with_yarn_becomes_a_model(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_model_desc m = import(a, checkpoint(QWEN3_YARN, "{\"eos_token_id\":4}"), at("qwen3-yarn.yaml"));
    assert_string_equal(m.family, "qwen3");
    assert_true(m.qk_norm && m.head_dim == 128 && m.rope_theta == 1e6);
    assert_string_equal(m.rope_kind, "yarn");
    assert_true(m.rope_factor == 4 && m.rope_original_context == 32768 && m.rope_beta_fast == 32 &&
                m.rope_beta_slow == 1 && m.rope_attention_factor == 0 && m.rope_mscale == 0.75 &&
                m.rope_mscale_all_dim == 0 && m.rope_exact_range);
    sf_arena_destroy(a);
}

static void what_a_directory_says_wrong_is_refused_by_file(void **state) {
    (void)state;
    refused(checkpoint(LLAMA ",\"sliding_window\":128}", NULL), SF_UNSUPPORTED,
            ": config.json: key sliding_window is 128: a sliding window is not supported");
    refused(checkpoint(LLAMA ",\"quantization_config\":{}}", NULL), SF_UNSUPPORTED,
            ": config.json: key quantization_config is there, which is not supported");
    refused(checkpoint(LLAMA "}", "{\"eos_token_id\":[5,8]}"), SF_FORMAT,
            ": generation_config.json: key eos_token_id is no id of 0..7, nor a list of them");
    refused(checkpoint(LLAMA "}", "{"), SF_FORMAT,
            ": generation_config.json: broken JSON, line 1, column 1: ");
    (void)checkpoint(LLAMA "}", NULL);
    unlink(at("tokenizer.json"));
    refused(dir, SF_IO, ": tokenizer.json: No such file or directory");
    unlink(at("config.json"));
    refused(dir, SF_IO, ": config.json: No such file or directory");
}

/* A model hub's cache is links into a store: one that leads nowhere is half a download, no absent file. */
static void links_to_nothing_and_pipes_are_refused(void **state) {
    (void)state;
    static const char *const names[] = {"config.json", "tokenizer.json", "generation_config.json",
                                        "tokenizer_config.json"};
    char text[96];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)checkpoint(LLAMA "}", NULL);
        const char *path = at(names[i]);
        unlink(path);
        assert_int_equal(symlink("nowhere", path), 0);
        snprintf(text, sizeof text, ": %s: No such file or directory", names[i]);
        refused(dir, SF_IO, text);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        snprintf(text, sizeof text, ": %s: not a regular file", names[i]);
        alarm(10); /* waiting for a writer is the failure */
        refused(dir, SF_IO, text);
        alarm(0);
        assert_int_equal(unlink(path), 0);
    }
}

static void a_tokenizer_larger_than_the_vocabulary_is_refused(void **state) {
    (void)state;
    static const char config[] = "{\"model_type\":\"llama\",\"vocab_size\":5,\"hidden_size\":64,"
                                 "\"intermediate_size\":176,\"max_position_embeddings\":512,"
                                 "\"num_attention_heads\":8,\"num_hidden_layers\":3}";
    refused(checkpoint(config, NULL), SF_FORMAT,
            ": the tokenizer has 6 tokens, config.json's vocab_size is 5");
}

static void figures_that_the_generator_refuses_are_refused(void **state) {
    (void)state;
    /* no rotary pair fits */
    refused(small(&(change){.head_dim = 3}), SF_INVALID,
            "refused.yaml:9:11: head_dim is 3, expected an even number");
}

static void paths_are_checked(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    bool written = false;
    refused(at("absent.gguf"), SF_IO, "absent.gguf: No such file or directory");
    assert_int_equal(sf_import(a, small(&(change){0}), at("x.yml"), &written, &err), SF_INVALID);
    assert_non_null(strstr(err.msg, "ends in .yaml"));
    assert_int_equal(sf_import(a, small(&(change){0}), at("none/x.yaml"), &written, &err), SF_IO);
    assert_int_equal(sf_import(a, small(&(change){0}), at("a b.yaml"), &written, &err), SF_INVALID);
    if (!strstr(message(&err), "a b.yaml:2:7: name ")) fail_msg("%s", message(&err));
    sf_arena_destroy(a);
}

static void a_description_that_is_there_stays(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    bool written = false;
    const char *from = small(&(change){0}), *out = at("kept.yaml");
    (void)import(a, from, out);
    assert_ok(sf_import(a, from, out, &written, &err), &err);
    assert_false(written);
    write_file(out, "name: mine\n", 11);
    assert_int_equal(sf_import(a, from, out, &written, &err), SF_INVALID);
    assert_non_null(strstr(err.msg, "it is there already and differs"));
    sf_buf text = {0};
    assert_ok(sf_buf_read_file(&text, out, 1000, &err), &err);
    assert_string_equal(text.data, "name: mine\n");
    sf_buf_fini(&text);
    sf_arena_destroy(a);
}

/* The hand-written description of the repository, where the checkpoint is in the cache. */
static void the_real_checkpoint_gives_the_description_in_models(void **state) {
    (void)state;
    char path[512];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    snprintf(path, sizeof path, "%s%s/steadfast/SmolLM2-135M-Instruct.Q4_1.gguf",
             cache  ? cache
             : home ? home
                    : "",
             cache ? "" : "/.cache");
    if (access(path, R_OK) != 0) skip();
    sf_arena *a = new_arena();
    sf_model_desc m = import(a, path, at("smollm2-135m.yaml")), want = read_model(a, SMOLLM);
    assert_true(m.vocab == want.vocab && m.hidden == want.hidden && m.layers == want.layers);
    assert_true(m.heads == want.heads && m.kv_heads == want.kv_heads && m.head_dim == want.head_dim);
    assert_true(m.intermediate == want.intermediate && m.context == want.context);
    assert_true(m.norm_eps == want.norm_eps && m.rope_theta == want.rope_theta);
    assert_true(m.tied_embeddings == want.tied_embeddings && m.qkv_bias == want.qkv_bias);
    assert_true(m.bos == want.bos && m.add_bos == want.add_bos && m.n_eos == want.n_eos &&
                m.eos[0] == want.eos[0]);
    assert_string_equal(m.tokenizer_split, want.tokenizer_split);
    assert_string_equal(m.rope_kind, want.rope_kind);
    sf_arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gguf_file_becomes_a_model),
        cmocka_unit_test(what_a_gguf_file_may_say_is_followed),
        cmocka_unit_test(factors_of_rope_become_figures),
        cmocka_unit_test(scaled_rope_of_a_gguf_file_is_followed),
        cmocka_unit_test(qwen3_has_norms_and_a_padded_vocabulary),
        cmocka_unit_test(what_is_not_computed_is_refused_by_name),
        cmocka_unit_test(a_directory_becomes_a_model),
        cmocka_unit_test(a_directory_of_qwen3_with_yarn_becomes_a_model),
        cmocka_unit_test(what_a_directory_says_wrong_is_refused_by_file),
        cmocka_unit_test(links_to_nothing_and_pipes_are_refused),
        cmocka_unit_test(a_tokenizer_larger_than_the_vocabulary_is_refused),
        cmocka_unit_test(figures_that_the_generator_refuses_are_refused),
        cmocka_unit_test(paths_are_checked),
        cmocka_unit_test(a_description_that_is_there_stays),
        cmocka_unit_test(the_real_checkpoint_gives_the_description_in_models),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
