/* Plans for backend cuda, with the small templates of tests/gen/templates/cuda: weights in tiles, routes by
 * row bucket, two attention ops, sources as text. */
#include "gen_scratch.h"

#include "cost.h"
#include "emit.h"
#include "explain.h"
#include "plan_priv.h"

/* A copy of the templates with the runtime folder beside them, in which one file of tests/gen is changed. */
static const char *changed(const char *name, const char *file, const char *find, const char *replacement) {
    char command[400], from[200], to[200], folder[64];
    snprintf(command, sizeof command, "mkdir '%s/%s' && cp -r tests/gen/templates tests/gen/runtime '%s/%s'",
             scratch, name, scratch, name);
    assert_int_equal(system(command), 0);
    snprintf(from, sizeof from, "tests/gen/%s", file);
    snprintf(to, sizeof to, "%s/%s/%s", scratch, name, file);
    copy_file(from, to, find, replacement);
    snprintf(folder, sizeof folder, "%s/templates", name);
    return at(folder);
}

static sf_planned *gpu_plan(sf_arena *a, const char *templates) {
    return plan_of(a, SMOLLM, TINY_GPU, templates);
}

static sf_code plan_code(sf_arena *a, const char *model, const char *templates, sf_err *err) {
    sf_inputs *in = NULL;
    sf_planned *p = NULL;
    sf_code rc = sf_inputs_read(a, model, TINY_GPU, templates, &in, err);
    return rc == SF_OK ? sf_planned_build(a, in, &p, err) : rc;
}

static const sf_weight_desc *weight(const sf_planned *p, const char *name) {
    for (int i = 0; i < p->plan.n_weights; i++)
        if (strcmp(p->plan.weights[i].name, name) == 0) return &p->plan.weights[i];
    fail_msg("no weight %s", name);
    return NULL;
}

/* The value of a parameter of the kernel that serves an op at a row count. */
static int64_t value_at(const sf_planned *p, const char *op, sf_class cls, int rows, const char *param) {
    const sf_op_desc *d = op_named(p, op);
    int r = 0, i = 0;
    while (r < d->n_routes[cls] - 1 && d->routes[cls][r].rows_max < rows)
        r++;
    const sf_planned_kernel *k = &p->kernels[d->routes[cls][r].kernel];
    assert_non_null(sf_param_find(k->t, param, &i));
    return k->values[i].i;
}

/* ---- weights ---- */

static void a_tile_is_an_even_share_or_as_measured(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = gpu_plan(a, TEST_TEMPLATES);
    assert_int_equal(weight(p, "qkv")->tile, 5);      /* 60 tiles for 12 multiprocessors */
    assert_int_equal(weight(p, "o")->tile, 3);        /* 36 */
    assert_int_equal(weight(p, "gate_up")->tile, 8);  /* 192 of 8 and 8 rows: 16, cut to 8 */
    assert_int_equal(weight(p, "tok_embd")->tile, 8); /* and the head's, which is tied */
    assert_int_equal(weight(p, "qkv")->format, SF_W_BF16_MMA);
    assert_int_equal(weight(p, "tok_embd")->format, SF_W_BF16_MMA);
    assert_int_equal(weight(p, "attn_norm")->format, SF_W_F32);
    assert_int_equal(weight(p, "attn_norm")->tile, 0);
    const char *config = at("tiles.yaml");
    copy_file(TINY_GPU, config, "tensor_parallel: 1",
              "tensor_parallel: 1\ntiles: [{n: 960, k: 576, tile: 7}, {n: 576, k: 1536, tile: 2}]");
    p = plan_of(a, SMOLLM, config, TEST_TEMPLATES);
    assert_int_equal(weight(p, "qkv")->tile, 7);
    assert_int_equal(weight(p, "down")->tile, 2);
    assert_int_equal(weight(p, "o")->tile, 3); /* [576, 576] is neither */
    assert_int_equal(value_at(p, "qkv", SF_CLASS_PINNED, 1, "T"), 7);
    assert_int_equal(value_at(p, "embed", SF_CLASS_PINNED, 1, "T"), 8);
    sf_arena_destroy(a);
}

static void weight_bytes_count_whole_groups(void **state) {
    (void)state;
    sf_weight_desc w = {.format = SF_W_BF16_MMA, .n = 100, .k = 72, .tile = 3};
    assert_int_equal(sf_cost_weight_bytes(&w), 144 * 128 * 2); /* 7 tiles to 9, 72 columns to 128 */
    sf_weight_desc swiglu = {.format = SF_W_BF16_MMA,
                             .interleave = true,
                             .n = 40,
                             .k = 64,
                             .tile = 2,
                             .n_parts = 2,
                             .parts = {{.rows = 20}, {.rows = 20}}};
    assert_int_equal(sf_weight_tiles(&swiglu), 3); /* 20 rows of each in eights */
    assert_int_equal(sf_cost_weight_bytes(&swiglu), 4 * 16 * 64 * 2);
}

static void columns_in_whole_pieces_are_asked_for(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    assert_int_equal(plan_code(a, TINY_MODEL, TEST_TEMPLATES, &err), SF_UNSUPPORTED);
    assert_string_equal(message(&err),
                        TINY_MODEL ": weight tok_embd has 44 columns, expected a multiple of 8 for "
                                   "backend cuda");
    sf_arena_destroy(a);
}

/* ---- routes ---- */

static void kernels_follow_the_row_bucket(void **state) {
    (void)state;
    static const int rows_max[] = {8, 16, 32, 64, 256}, value[] = {8, 16, 32, 64, 128};
    sf_arena *a = new_arena();
    sf_planned *p = gpu_plan(a, TEST_TEMPLATES);
    const sf_op_desc *qkv = op_named(p, "qkv");
    assert_int_equal(qkv->n_routes[SF_CLASS_PINNED], 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(qkv->routes[SF_CLASS_PINNED][i].rows_max, rows_max[i]);
        assert_int_equal(value_at(p, "qkv", SF_CLASS_PINNED, rows_max[i], "ROWS"),
                         value[i]); /* 256: clamped */
    }
    assert_int_equal(value_at(p, "qkv", SF_CLASS_PINNED, 9, "ROWS"), 16);
    assert_int_equal(value_at(p, "qkv", SF_CLASS_PINNED, 1, "ROWS"), 8);
    sf_arena_destroy(a);
}

static void a_bucket_that_changes_no_value_makes_no_route(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = gpu_plan(a, changed("clamp", "templates/cuda/gemm_many.cu", "in 64..128", "in 64..64"));
    const sf_op_desc *qkv = op_named(p, "qkv");
    assert_int_equal(qkv->n_routes[SF_CLASS_PINNED], 4);
    assert_int_equal(qkv->routes[SF_CLASS_PINNED][3].rows_max, 256);
    assert_int_equal(op_named(p, "embed")->n_routes[SF_CLASS_PINNED], 1);
    sf_arena_destroy(a);
}

static void a_head_op_ends_at_the_logit_rows(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = gpu_plan(a, TEST_TEMPLATES);
    const sf_op_desc *head = op_named(p, "lm_head");
    assert_int_equal(head->n_routes[SF_CLASS_PINNED], 4);
    assert_int_equal(head->routes[SF_CLASS_PINNED][3].rows_max, 64);
    assert_int_equal(value_at(p, "lm_head", SF_CLASS_PINNED, 64, "ROWS"), 64);
    sf_arena_destroy(a);
}

static void long_attention_has_no_kernel_at_few_rows(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = gpu_plan(a, TEST_TEMPLATES);
    const sf_op_desc *few = op_named(p, "attention"), *many = op_named(p, "attention_long");
    assert_true(many == few + 1);
    assert_int_equal(many->op, SF_OP_ATTENTION_LONG);
    assert_int_equal(many->in, few->in);
    assert_int_equal(many->out, few->out);
    for (int c = 0; c < SF_CLASS_COUNT; c++) {
        assert_int_equal(few->n_routes[c], 1);
        assert_int_equal(many->n_routes[c], 2);
        assert_int_equal(many->routes[c][0].rows_max, SF_FEW_ROWS);
        assert_int_equal(many->routes[c][0].kernel, -1);
        assert_int_equal(many->routes[c][1].rows_max, 256);
        assert_string_equal(p->plan.kernels[many->routes[c][1].kernel].name,
                            "attention_long_bf16_cuda_pinned");
    }
    assert_int_equal(value_at(p, "attention", SF_CLASS_PINNED, 1, "TO_ROWS"), SF_FEW_ROWS);
    assert_int_equal(value_at(p, "attention_long", SF_CLASS_PINNED, 65, "FEW_ROWS"), SF_FEW_ROWS);
    sf_arena_destroy(a);
}

static void long_attention_beyond_few_rows_is_asked_for(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    const char *dir = changed("gap", "templates/cuda/attention_long.cu", "rows 65..", "rows 66..");
    assert_int_equal(plan_code(a, SMOLLM, dir, &err), SF_UNSUPPORTED);
    assert_non_null(strstr(message(&err), "no template of class fast covers 65 rows of op attention_long"));
    dir = changed("gap2", "templates/cuda/attention.cu", "rows 1..", "rows 2..");
    assert_int_equal(plan_code(a, SMOLLM, dir, &err), SF_UNSUPPORTED);
    assert_non_null(strstr(message(&err), "no template of class fast covers 1 rows of op attention "));
    sf_arena_destroy(a);
}

static void rows_of_long_attention_are_priced_once(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = gpu_plan(a, TEST_TEMPLATES);
    sf_cost few = sf_cost_op(&p->in->machine, op_named(p, "attention"), SF_CLASS_PINNED, 128);
    sf_cost many = sf_cost_op(&p->in->machine, op_named(p, "attention_long"), SF_CLASS_PINNED, 128);
    assert_true(few.us > 0);
    assert_true(many.us == 0 && many.peak_share == 0); /* not 0 / 0 */
    sf_arena_destroy(a);
}

/* ---- sources ---- */

static void a_cuda_prelude_names_the_launch(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *gpu = gpu_plan(a, TEST_TEMPLATES), *cpu = tiny_plan(a);
    int k = op_named(gpu, "embed")->routes[SF_CLASS_PINNED][0].kernel;
    assert_non_null(strstr(gpu->kernels[k].text, "#define KERNEL_NAME embed_bf16_cuda_pinned\n"
                                                 "#define KERNEL_LAUNCH embed_bf16_cuda_pinned_launch\n"));
    assert_string_equal(gpu->plan.kernels[k].file, "kernels/embed_bf16_cuda_pinned.cu");
    assert_string_equal(gpu->plan.kernels[k].source, gpu->kernels[k].text);
    assert_null(strstr(cpu->kernels[0].text, "KERNEL_LAUNCH"));
    assert_null(cpu->plan.kernels[0].source);
    sf_arena_destroy(a);
}

static bool has_input(const sf_inputs *in, const char *name) {
    for (int i = 0; i < in->n_files; i++)
        if (strcmp(in->files[i].name, name) == 0) return true;
    return false;
}

static void inputs_are_what_templates_reach(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = gpu_plan(a, TEST_TEMPLATES);
    assert_true(has_input(p->in, "templates/cuda/gemm_few.cu"));
    assert_true(has_input(p->in, "templates/snippets/ring.cuh"));
    assert_true(has_input(p->in, "templates/snippets/step.cuh")); /* through ring.cuh */
    assert_true(has_input(p->in, "runtime/device/cuda/args.h"));
    assert_false(has_input(p->in, "templates/snippets/lonely.cuh"));
    assert_false(has_input(p->in, "templates/cpu/embed.c"));
    assert_int_equal(p->plan.n_headers, 4); /* args.h, draft.cuh, ring.cuh, step.cuh */
    sf_arena_destroy(a);
}

static void an_include_that_is_not_there_is_named(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    const char *dir =
        changed("lost", "templates/snippets/ring.cuh", "snippets/step.cuh", "snippets/stop.cuh");
    assert_int_equal(plan_code(a, SMOLLM, dir, &err), SF_NOT_FOUND);
    assert_non_null(strstr(message(&err),
                           "/snippets/ring.cuh:5:11: includes snippets/stop.cuh, expected it in "
                           "templates/"));
    dir = changed("foreign", "templates/snippets/ring.cuh", "snippets/step.cuh", "cuda/std/step.h");
    assert_int_equal(plan_code(a, SMOLLM, dir, &err), SF_INVALID);
    assert_non_null(
        strstr(message(&err), "includes cuda/std/step.h, expected a file of snippets/ or device/"));
    dir = changed("outside", "templates/snippets/ring.cuh", "snippets/step.cuh", "snippets/../step.cuh");
    assert_int_equal(plan_code(a, SMOLLM, dir, &err), SF_INVALID);
    sf_arena_destroy(a);
}

/* Whether gen_hash and pinned_hash differ once a file of tests/gen is changed. */
static void hashes_after(const char *copy, const char *file, const char *find, const char *replacement,
                         bool *gen, bool *pinned) {
    sf_arena *a = new_arena();
    sf_planned *before = gpu_plan(a, TEST_TEMPLATES),
               *after = gpu_plan(a, changed(copy, file, find, replacement));
    *gen = strcmp(before->plan.gen_hash, after->plan.gen_hash) != 0;
    *pinned = strcmp(before->plan.pinned_hash, after->plan.pinned_hash) != 0;
    sf_arena_destroy(a);
}

static void the_pinned_hash_follows_included_files(void **state) {
    (void)state;
    bool gen = false, pinned = false;
    hashes_after("h0", "templates/snippets/step.cuh", "n / 2", "n / 3", &gen, &pinned); /* through ring.cuh */
    assert_true(gen && pinned);
    hashes_after("h1", "runtime/device/cuda/args.h", "const void *in", "const char *in", &gen, &pinned);
    assert_true(gen && pinned);
    hashes_after("h2", "templates/snippets/draft.cuh", "return n", "return +n", &gen, &pinned);
    assert_true(gen && !pinned);
    hashes_after("h3", "templates/snippets/lonely.cuh", "nothing", "none", &gen, &pinned);
    assert_true(!gen && !pinned);
}

/* Undoes the literals of an array of sources.c. */
static char *array_text(sf_arena *a, const char *sources, const char *name) {
    char head[200];
    snprintf(head, sizeof head, "\nconst char %s[] =\n", name);
    const char *s = strstr(sources, head);
    if (!s) fail_msg("sources.c lacks %s", name);
    char *out = sf_arena_alloc(a, strlen(s) + 1, 1), *to = out;
    assert_non_null(out);
    bool inside = false;
    for (s += strlen(head); *s && (inside || *s != ';'); s++) {
        if (*s == '"')
            inside = !inside;
        else if (inside && *s == '\\' && s[1] >= '0' && s[1] <= '7') {
            *to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
            s += 3;
        } else if (inside && *s == '\\') {
            s++;
            *to++ = *s == 'n' ? '\n' : *s;
        } else if (inside) {
            *to++ = *s;
        }
    }
    return out;
}

static void sources_hold_the_texts_of_kernels_and_headers(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    sf_files *files = NULL;
    sf_planned *p = gpu_plan(a, TEST_TEMPLATES);
    assert_ok(sf_emit(a, p, &files, &err), &err);
    const char *sources = file_named(files, "sources.c"), *plan = file_named(files, "plan.c");
    for (int i = 0; i < p->plan.n_kernels; i++) {
        char name[160], row[200];
        snprintf(name, sizeof name, "%s_source", p->plan.kernels[i].name);
        assert_string_equal(array_text(a, sources, name), p->kernels[i].text);
        snprintf(row, sizeof row, "{NULL}, %s},\n", name);
        assert_non_null(strstr(plan, row));
        const char *kernel = file_named(files, p->plan.kernels[i].file);
        assert_non_null(strstr(kernel, p->kernels[i].text)); /* behind the head */
    }
    for (int i = 0; i < p->in->n_snippets; i++)
        if (strcmp(p->in->snippets[i].name, "snippets/step.cuh") == 0)
            assert_string_equal(array_text(a, sources, "snippets_step_cuh_source"), p->in->snippets[i].text);
    assert_non_null(strstr(plan, "    {\"snippets/step.cuh\", snippets_step_cuh_source},\n"));
    assert_non_null(strstr(plan, ".arch = \"sm_90a\", .sms = 12, .n_headers = 4, .headers = headers,\n"));
    sf_arena_destroy(a);
}

static void a_cpu_plan_has_no_sources(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    sf_files *files = NULL;
    sf_planned *p = tiny_plan(a);
    assert_ok(sf_emit(a, p, &files, &err), &err);
    for (int i = 0; i < files->n; i++)
        assert_string_not_equal(files->files[i].path, "sources.c");
    assert_null(p->plan.arch);
    assert_int_equal(p->plan.n_headers, 0);
    sf_arena_destroy(a);
}

static void explain_says_what_is_new(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    sf_planned *p = gpu_plan(a, TEST_TEMPLATES);
    sf_writer text = {.err = &err}, json = {.err = &err};
    sf_explain(&text, p);
    sf_emit_plan_json(&json, p);
    assert_int_equal(text.rc, SF_OK);
    assert_int_equal(json.rc, SF_OK);
    assert_non_null(strstr(text.buf.data, "    pinned rows 1..64  none\n"));
    assert_non_null(
        strstr(text.buf.data, "12 multiprocessors; weights in groups of 16-row tiles: tok_embd 8 qkv 5"));
    assert_null(strstr(text.buf.data, "nan"));
    assert_non_null(strstr(json.buf.data, "{\"rows_max\": 64, \"kernel\": \"none\", "));
    assert_non_null(strstr(json.buf.data, "\"format\": \"bf16_mma\""));
    assert_non_null(strstr(json.buf.data, "\"arch\": \"sm_90a\",\n  \"sms\": 12, \"headers\": [\""));
    sf_buf_fini(&text.buf);
    sf_buf_fini(&json.buf);
    sf_arena_destroy(a);
}

/* ---- the committed pairs ---- */

static void every_cuda_pair_is_planned(void **state) {
    (void)state;
    static const char *const models[] = {SMOLLM, "models/llama-3.1-8b.yaml"};
    static const char *const configs[] = {"build-configs/h200.yaml", "build-configs/h100.yaml"};
    sf_arena *a = new_arena();
    for (int m = 0; m < 2; m++)
        for (int c = 0; c < 2; c++) {
            sf_err err = {0};
            sf_files *files = NULL;
            sf_planned *p = plan_of(a, models[m], configs[c], "templates");
            assert_ok(sf_emit(a, p, &files, &err), &err);
            assert_int_equal(p->plan.n_kernels, c == 0 ? 69 : 64); /* four copies for a library, one SwiGLU */
            assert_int_equal(op_named(p, "qkv")->n_routes[SF_CLASS_PINNED], 10);
            assert_int_equal(op_named(p, "lm_head")->n_routes[SF_CLASS_PINNED], 5);
            assert_int_equal(op_named(p, "attention_long")->routes[SF_CLASS_FAST][0].kernel, -1);
        }
    sf_arena_destroy(a);
}

/* Included files are hashed in the order in which they are found. */
static void a_fast_template_changes_no_pinned_hash(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *before = gpu_plan(a, TEST_TEMPLATES);
    const char *dir = changed(
        "early", "templates/cuda/gemm_draft.cu", "#include \"snippets/draft.cuh\"",
        "#include \"snippets/step.cuh\"\n#include \"device/cuda/args.h\"\n#include \"snippets/draft.cuh\"");
    char command[256];
    snprintf(command, sizeof command, "cd '%s/early/templates/cuda' && mv gemm_draft.cu aaa.cu", scratch);
    assert_int_equal(system(command), 0);
    sf_planned *after = gpu_plan(a, dir);
    assert_string_not_equal(before->plan.gen_hash, after->plan.gen_hash);
    assert_string_equal(before->plan.pinned_hash, after->plan.pinned_hash);
    sf_arena_destroy(a);
}

/* The class of the kernel that an op's class is served by at a row count. */
static sf_class class_at(const sf_planned *p, const char *op, sf_class cls, int rows) {
    const sf_route *r = op_named(p, op)->routes[cls];
    while (r->rows_max < rows)
        r++;
    return p->plan.kernels[r->kernel].cls;
}

static void few_rows_have_fast_kernels_of_their_own(void **state) {
    (void)state;
    static const char *const ops[] = {"qkv", "o", "gate_up", "down", "lm_head", "attention"};
    sf_arena *a = new_arena();
    sf_planned *p = plan_of(a, SMOLLM, "build-configs/h200.yaml", "templates");
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        for (int rows = 1; rows <= 32; rows++) {
            assert_int_equal(class_at(p, ops[i], SF_CLASS_FAST, rows), SF_CLASS_FAST);
            assert_int_equal(class_at(p, ops[i], SF_CLASS_PINNED, rows), SF_CLASS_PINNED);
        }
        for (int rows = 33; rows <= 256; rows *= 2) /* one kernel that keeps the pinned promise */
            assert_int_equal(class_at(p, ops[i], SF_CLASS_FAST, rows), SF_CLASS_PINNED);
    }
    sf_arena_destroy(a);
}

static void a_class_of_its_own_comes_before_both(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    /* the same rows as gemm_few, which serves both: no collision */
    const char *dir = changed("own", "templates/cuda/gemm_draft.cu", "rows 1..8", "rows 1..32");
    sf_planned *p = gpu_plan(a, dir);
    assert_int_equal(class_at(p, "qkv", SF_CLASS_FAST, 32), SF_CLASS_FAST);
    assert_int_equal(class_at(p, "qkv", SF_CLASS_PINNED, 32), SF_CLASS_PINNED);
    /* two of class both are one too many */
    dir = changed("twice", "templates/cuda/gemm_draft.cu", "class fast\n//@ rows 1..8",
                  "class both\n//@ rows 1..32");
    assert_int_equal(plan_code(a, SMOLLM, dir, &err), SF_INVALID);
    assert_non_null(strstr(message(&err), "offers the same rows"));
    sf_arena_destroy(a);
}

static void llama_has_measured_tiles_and_scaled_frequencies(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = plan_of(a, "models/llama-3.1-8b.yaml", "build-configs/h200.yaml", "templates");
    assert_int_equal(weight(p, "qkv")->tile, 4);
    assert_int_equal(weight(p, "gate_up")->tile, 7);
    assert_int_equal(weight(p, "down")->tile, 2);
    assert_int_equal(weight(p, "lm_head")->tile, 8);
    const sf_model_desc *m = &p->plan.model;
    assert_string_equal(m->rope_kind, "llama3");
    assert_true(m->rope_factor == 8 && m->rope_low_freq == 1 && m->rope_high_freq == 4);
    assert_int_equal(m->rope_original_context, 8192);
    assert_true(m->rope_theta == 500000);
    assert_string_equal(m->tokenizer_split, "llama3");
    const char *model = at("llama.yaml");
    copy_file("models/llama-3.1-8b.yaml", model, "  factor: 8", "  factor: 4"); /* other tables, other bits */
    sf_planned *other = plan_of(a, model, "build-configs/h200.yaml", "templates");
    assert_string_not_equal(p->plan.pinned_hash, other->plan.pinned_hash);
    sf_arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tile_is_an_even_share_or_as_measured),
        cmocka_unit_test(weight_bytes_count_whole_groups),
        cmocka_unit_test(columns_in_whole_pieces_are_asked_for),
        cmocka_unit_test(kernels_follow_the_row_bucket),
        cmocka_unit_test(a_bucket_that_changes_no_value_makes_no_route),
        cmocka_unit_test(a_head_op_ends_at_the_logit_rows),
        cmocka_unit_test(long_attention_has_no_kernel_at_few_rows),
        cmocka_unit_test(long_attention_beyond_few_rows_is_asked_for),
        cmocka_unit_test(rows_of_long_attention_are_priced_once),
        cmocka_unit_test(a_cuda_prelude_names_the_launch),
        cmocka_unit_test(inputs_are_what_templates_reach),
        cmocka_unit_test(an_include_that_is_not_there_is_named),
        cmocka_unit_test(the_pinned_hash_follows_included_files),
        cmocka_unit_test(sources_hold_the_texts_of_kernels_and_headers),
        cmocka_unit_test(a_cpu_plan_has_no_sources),
        cmocka_unit_test(explain_says_what_is_new),
        cmocka_unit_test(every_cuda_pair_is_planned),
        cmocka_unit_test(a_fast_template_changes_no_pinned_hash),
        cmocka_unit_test(few_rows_have_fast_kernels_of_their_own),
        cmocka_unit_test(a_class_of_its_own_comes_before_both),
        cmocka_unit_test(llama_has_measured_tiles_and_scaled_frequencies),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
