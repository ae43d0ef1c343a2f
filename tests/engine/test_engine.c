#include "engine/engine.h"

#include "cli/setup.h"
#include "device/cpu/cpu.h"
#include "engine/selftest.h"
#include "model/tiny_st.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void config(sf_engine_config *c) {
    sf_engine_config_default(c);
    c->random = true;
    c->random_seed = 7;
    c->threads = 2;
}

static sf_engine *open_engine(const sf_engine_config *c) {
    sf_engine *e = NULL;
    sf_err err;
    sf_code rc = sf_engine_open(&sf_the_plan, c, &e, &err);
    if (rc != SF_OK) print_error("%s\n", err.msg);
    assert_int_equal(rc, SF_OK);
    return e;
}

static void expect_refused(const sf_engine_config *c, sf_code code, const char *says) {
    sf_engine *e = NULL;
    sf_err err;
    assert_int_equal(sf_engine_open(&sf_the_plan, c, &e, &err), code);
    assert_null(e);
    if (!strstr(err.msg, says)) print_error("%s\n", err.msg);
    assert_non_null(strstr(err.msg, says));
}

/* Runs one request to its end; ids [n] receives its tokens. */
static sf_code run_request(sf_engine *e, bool deterministic, int n, int32_t *ids, sf_err *err) {
    static const int32_t prompt[] = {3, 1, 4, 1, 5};
    sf_params p;
    sf_params_default(&p);
    p.deterministic = deterministic;
    p.max_tokens = n;
    p.ignore_eos = true;
    sf_request *r = NULL;
    assert_int_equal(sf_request_create(&p, prompt, 5, &r, err), SF_OK);
    sf_code rc = sf_sched_submit(sf_engine_sched(e), r, err);
    while (rc == SF_OK && !sf_request_done(r)) {
        bool busy;
        rc = sf_sched_step(sf_engine_sched(e), &busy, err);
    }
    if (rc == SF_OK) {
        sf_choice c;
        sf_request_choice(r, 0, &c);
        assert_int_equal(c.n_tokens, n);
        for (int i = 0; i < n; i++)
            ids[i] = c.tokens[i].id;
    }
    sf_request_destroy(r);
    return rc;
}

static void random_weights_need_no_checkpoint(void **state) {
    (void)state;
    sf_engine_config c;
    config(&c);
    sf_engine *e = open_engine(&c);
    assert_null(sf_engine_tokenizer(e));
    assert_null(sf_engine_chat(e));
    assert_non_null(strstr(sf_engine_chat_missing(e), "no tokenizer"));
    assert_null(sf_engine_sched_config(e)->refuse_deterministic);
    sf_engine_close(e);
}

static void the_fingerprint_follows_weights_not_threads(void **state) {
    (void)state;
    char prints[4][64];
    for (int i = 0; i < 4; i++) {
        sf_engine_config c;
        config(&c);
        c.threads = i == 1 ? 1 : 2;
        c.isa = i == 2 && sf_the_plan.kernels[0].cpu[SF_ISA_GENERIC] ? "generic" : NULL;
        c.random_seed = i == 3 ? 8 : 7;
        sf_engine *e = open_engine(&c);
        snprintf(prints[i], sizeof prints[i], "%s", sf_engine_fingerprint(e));
        sf_engine_close(e);
    }
    assert_string_equal(prints[0], prints[1]);
    assert_string_equal(prints[0], prints[2]);
    assert_string_not_equal(prints[0], prints[3]);
}

static void settings_out_of_range_are_named(void **state) {
    (void)state;
    static const struct {
        size_t offset;
        int value;
        const char *says;
    } cases[] = {
        {offsetof(sf_engine_config, threads), 257, "threads is 257, expected 1..256"},
        {offsetof(sf_engine_config, window), 65, "window is 65, expected 2..64"},
        {offsetof(sf_engine_config, window), 1, "window is 1"},
        {offsetof(sf_engine_config, verify_wait), 1001, "verify_wait is 1001"},
        {offsetof(sf_engine_config, max_context), 1 << 30, "max_model_len is 1073741824"},
        {offsetof(sf_engine_config, max_rows), 1 << 30, "max_num_batched_tokens is 1073741824"},
        {offsetof(sf_engine_config, prefill_chunk), 1 << 30, "prefill_chunk is 1073741824"},
        {offsetof(sf_engine_config, max_seqs), 5000, "max_num_seqs is 5000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_engine_config c;
        config(&c);
        memcpy((char *)&c + cases[i].offset, &cases[i].value, sizeof(int));
        expect_refused(&c, SF_INVALID, cases[i].says);
    }
}

static void a_window_wider_than_a_pass_is_refused(void **state) {
    (void)state;
    sf_engine_config c;
    config(&c);
    c.max_rows = 4;
    c.window = 8;
    expect_refused(&c, SF_INVALID, "window is 8, more than max_num_batched_tokens (4)");
    c.window = 0; /* the plan's own gives way */
    sf_engine *e = open_engine(&c);
    assert_in_range(sf_engine_sched_config(e)->window, 2, 4);
    sf_engine_close(e);
}

static void policies_not_in_this_build_are_refused(void **state) {
    (void)state;
    sf_engine_config c;
    config(&c);
    c.policy = "auto";
    expect_refused(&c, SF_UNSUPPORTED, "policy auto is not in this build");
    c.policy = "never";
    expect_refused(&c, SF_INVALID, "policy is \"never\"");
}

static void weights_are_asked_for(void **state) {
    (void)state;
    sf_engine_config c;
    sf_engine_config_default(&c);
    expect_refused(&c, SF_INVALID, "no weights");
    c.weights = "/";
    expect_refused(&c, SF_NOT_FOUND, "the directory has neither model.safetensors nor ");
    c.weights = "/nonexistent.gguf";
    sf_engine *e;
    sf_err err;
    assert_int_equal(sf_engine_open(&sf_the_plan, &c, &e, &err), SF_IO);
}

/* Safetensors of the plan's tensors, all F32; values by name and place. */
static gm checkpoint_of(const sf_plan *plan) {
    gm header = {0}, data = {0}, m = {0};
    for (int slot = 0; slot < plan->n_weights; slot++) {
        const sf_weight_desc *d = &plan->weights[slot];
        for (int i = 0; i < d->n_parts * (d->per_layer ? plan->model.layers : 1); i++) {
            const sf_wpart *part = &d->parts[i % d->n_parts];
            bool vector = d->format == SF_W_F32;
            char canonical[64], name[96] = "", line[256];
            snprintf(canonical, sizeof canonical, "%s", part->tensor);
            char *layer = strstr(canonical, "%d");
            if (layer) { /* one digit */
                *layer = (char)('0' + i / d->n_parts);
                memmove(layer + 1, layer + 2, strlen(layer + 2) + 1);
            }
            tiny_st_name(canonical, name);
            size_t from = data.len, n = (size_t)part->rows * (size_t)(vector ? 1 : d->k);
            for (size_t j = 0; j < n; j++)
                gm_f32(&data, tiny_value(canonical, j, 0) / 1024);
            int len = vector ? snprintf(line, sizeof line, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%d],",
                                        header.len ? "," : "{", name, part->rows)
                             : snprintf(line, sizeof line, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%d,%d],",
                                        header.len ? "," : "{", name, part->rows, d->k);
            gm_bytes(&header, line, (size_t)len);
            len = snprintf(line, sizeof line, "\"data_offsets\":[%zu,%zu]}", from, data.len);
            gm_bytes(&header, line, (size_t)len);
        }
    }
    gm_bytes(&header, "}", 2); /* with its NUL */
    gm_str(&m, (const char *)header.data);
    gm_bytes(&m, data.data, data.len);
    gm_fini(&header);
    gm_fini(&data);
    return m;
}

static const char tiny_config[] =
    "{\"model_type\":\"qwen2\",\"vocab_size\":307,\"hidden_size\":44,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":5,\"num_key_value_heads\":1,\"head_dim\":12,\"intermediate_size\":74,"
    "\"max_position_embeddings\":512,\"rms_norm_eps\":1e-05,\"bos_token_id\":1,\"eos_token_id\":[2,5],"
    "\"rope_parameters\":{\"rope_type\":\"yarn\",\"rope_theta\":10000.0,\"factor\":4.0,"
    "\"original_max_position_embeddings\":64}}";

static void open_from(const sf_plan *plan, const char *path, int32_t ids[6], char fingerprint[64]) {
    sf_engine_config c;
    sf_engine *e = NULL;
    sf_err err = {0};
    sf_engine_config_default(&c);
    c.threads = 2;
    c.weights = path;
    if (sf_engine_open(plan, &c, &e, &err) != SF_OK) fail_msg("%s", err.msg);
    assert_null(sf_engine_tokenizer(e));
    assert_non_null(strstr(sf_engine_chat_missing(e), "the weights came without one"));
    assert_int_equal(run_request(e, true, 6, ids, &err), SF_OK);
    snprintf(fingerprint, 64, "%s", sf_engine_fingerprint(e));
    sf_engine_close(e);
}

/* The plan has the biases of Qwen2 and the norms of Qwen3, which no one configuration says. */
static void safetensors_serve_from_a_directory_and_a_file(void **state) {
    (void)state;
    sf_plan plan = sf_the_plan;
    char dir[64], file[128], prints[2][64];
    int32_t ids[2][6];
    plan.model.family = "qwen2";
    plan.model.qk_norm = false;
    st_directory(dir);
    snprintf(file, sizeof file, "%s/model.safetensors", dir);
    st_save(dir, "model.safetensors", checkpoint_of(&plan));
    st_write_text(dir, "config.json", tiny_config);
    open_from(&plan, dir, ids[0], prints[0]);
    open_from(&plan, file, ids[1], prints[1]);
    assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
    assert_string_equal(prints[0], prints[1]);
    st_remove(dir);
}

static void text_alone_needs_a_tokenizer(void **state) {
    (void)state;
    sf_engine_config c;
    sf_engine_config_default(&c);
    c.text_only = true;
    c.weights = "/";
    expect_refused(&c, SF_NOT_FOUND, "no tokenizer: the directory has no tokenizer.json");
    c.weights = "/m.safetensors";
    expect_refused(&c, SF_NOT_FOUND, "no tokenizer: give the directory of the file");
}

#define SPECIAL(id, text)                                                                                    \
    "{\"id\":" id ",\"content\":\"" text "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"       \
    "\"normalized\":false,\"special\":true}"

/* Byte-level BPE of 6 tokens by the plan's split, with the BOS that the plan adds. */
static const char tokenizer_json[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[" SPECIAL(
        "1",
        "<s>") "," SPECIAL("2",
                           "</s>") "],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Sequence\","
                                   "\"pretokenizers\":["
                                   "{\"type\":\"Digits\",\"individual_digits\":true},"
                                   "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
                                   "\"use_regex\":true}]},"
                                   "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{"
                                   "\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
                                   "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[{\"Sequence\":{"
                                   "\"id\":\"A\",\"type_id\":0}},"
                                   "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],"
                                   "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[1],\"tokens\":[\"<s>"
                                   "\"]}}},"
                                   "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_"
                                   "offsets\":true,\"use_regex\":true},"
                                   "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
                                   "\"continuing_subword_prefix\":null,"
                                   "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,"
                                   "\"vocab\":{\"a\":0,\"b\":3,\"ab\":4},\"merges\":[\"a b\"]}}";

static const char tokenizer_config[] = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"chat_template\":"
                                       "\"{% for m in messages %}{{ m.content }}{% endfor %}\"}";

static void a_directory_brings_tokenizer_and_chat_template(void **state) {
    (void)state;
    sf_plan plan = sf_the_plan;
    char dir[64];
    sf_engine_config c;
    sf_engine *e = NULL;
    sf_err err = {0};
    sf_ids ids = {0};
    st_directory(dir);
    st_write_text(dir, "tokenizer.json", tokenizer_json);
    st_write_text(dir, "tokenizer_config.json", tokenizer_config);
    sf_engine_config_default(&c);
    c.weights = dir;
    c.text_only = true;
    if (sf_engine_open(&plan, &c, &e, &err) != SF_OK) fail_msg("%s", err.msg);
    assert_non_null(sf_engine_chat(e));
    assert_int_equal(sf_tokenizer_encode(sf_engine_tokenizer(e), "abb", 3, NULL, &ids, &err), SF_OK);
    assert_true(ids.len == 2 && ids.data[0] == 4 && ids.data[1] == 3);
    sf_ids_fini(&ids);
    sf_engine_close(e);
    plan.model.tokenizer_split = "qwen2";
    assert_int_equal(sf_engine_open(&plan, &c, &e, &err), SF_INVALID);
    assert_non_null(strstr(err.msg, "tokenizer.json splits text otherwise than 'qwen2'"));
    plan = sf_the_plan;
    plan.model.vocab = 4; /* the tokenizer has 5 */
    assert_int_equal(sf_engine_open(&plan, &c, &e, &err), SF_INVALID);
    assert_non_null(strstr(err.msg, "the tokenizer has 5 tokens"));
    plan = sf_the_plan;
    st_unlink(dir, "tokenizer_config.json");
    if (sf_engine_open(&plan, &c, &e, &err) != SF_OK) fail_msg("%s", err.msg);
    assert_non_null(strstr(sf_engine_chat_missing(e), "no chat template"));
    sf_engine_close(e);
    char link[96];
    snprintf(link, sizeof link, "%s/tokenizer.json", dir);
    st_unlink(dir, "tokenizer.json");
    assert_int_equal(symlink("nowhere", link), 0);
    assert_int_equal(sf_engine_open(&plan, &c, &e, &err), SF_IO);
    assert_string_equal(err.msg, "tokenizer.json: No such file or directory");
    st_unlink(dir, "tokenizer.json");
    st_remove(dir);
}

static void a_lying_device_loses_deterministic_service(void **state) {
    (void)state;
    int rows = 9;
    sf_engine_config c;
    config(&c);
    c.wrap_device = sf_fault_device;
    c.wrap_ctx = &rows;
    sf_engine *e = open_engine(&c);
    const char *why = sf_engine_sched_config(e)->refuse_deterministic;
    assert_non_null(why);
    assert_non_null(strstr(why, "log-probability at position"));
    int32_t ids[4];
    sf_err err;
    assert_int_equal(run_request(e, true, 4, ids, &err), SF_NONDET);
    assert_non_null(strstr(err.msg, "log-probability at position"));
    assert_int_equal(run_request(e, false, 4, ids, &err), SF_OK);
    sf_engine_close(e);
}

static void the_same_request_has_the_same_tokens_in_any_engine(void **state) {
    (void)state;
    int32_t first[24], other[24];
    for (int i = 0; i < 3; i++) {
        sf_engine_config c;
        config(&c);
        c.threads = 1 + i;
        c.window = 3 + 4 * i;
        c.policy = i == 2 ? "pin" : "verify";
        sf_engine *e = open_engine(&c);
        sf_err err;
        assert_int_equal(run_request(e, true, 24, i ? other : first, &err), SF_OK);
        if (i) assert_memory_equal(first, other, sizeof first);
        sf_engine_close(e);
    }
}

static sf_code open_other(void *ctx, sf_isa isa, int threads, int n_pages, sf_device **out, sf_err *err) {
    return sf_engine_device_open(ctx, sf_isa_name(isa), threads, n_pages, out, err);
}

static void print_failed(void *ctx, const sf_selftest_line *l) {
    int *poisoned = ctx;
    if (l->failed) print_error("%s: %s\n", l->name, l->first);
    if (strcmp(l->name, "poisoned neighbours") == 0) *poisoned = (int)l->rows;
}

static void the_real_kernels_pass_the_selftest(void **state) {
    (void)state;
    sf_engine_config c;
    config(&c);
    c.skip_probe = true;
    c.kv_pages = sf_selftest_pages(&sf_the_plan);
    sf_engine *e = open_engine(&c);
    int poisoned = 0;
    sf_selftest_config s = {.device = sf_engine_device(e),
                            .open = open_other,
                            .open_ctx = e,
                            .threads = 2,
                            .poison = sf_engine_poison,
                            .poison_ctx = e,
                            .report = print_failed,
                            .report_ctx = &poisoned};
    s.n_isas = sf_engine_isas(&sf_the_plan, s.isas);
    sf_selftest_result r;
    sf_err err;
    assert_int_equal(sf_selftest_run(&s, &r, &err), SF_OK);
    assert_int_equal(r.failed, 0);
    assert_true(r.rows > 500);
    assert_true(poisoned > 0);
    sf_engine_close(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_weights_need_no_checkpoint),
        cmocka_unit_test(the_fingerprint_follows_weights_not_threads),
        cmocka_unit_test(settings_out_of_range_are_named),
        cmocka_unit_test(a_window_wider_than_a_pass_is_refused),
        cmocka_unit_test(policies_not_in_this_build_are_refused),
        cmocka_unit_test(weights_are_asked_for),
        cmocka_unit_test(safetensors_serve_from_a_directory_and_a_file),
        cmocka_unit_test(text_alone_needs_a_tokenizer),
        cmocka_unit_test(a_directory_brings_tokenizer_and_chat_template),
        cmocka_unit_test(a_lying_device_loses_deterministic_service),
        cmocka_unit_test(the_same_request_has_the_same_tokens_in_any_engine),
        cmocka_unit_test(the_real_kernels_pass_the_selftest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
