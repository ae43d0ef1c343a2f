/* Every tensor of a checkpoint left out, renamed, reshaped, of another type, or cut, one at a time, in one
 * file of safetensors, in shards, and in GGUF: the error names the file and the tensor. */
#include "model/weights.h"

#include "model/gguf_priv.h"
#include "model/hf_config_priv.h"
#include "model/safetensors_priv.h"
#include "model/tiny_st.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define INDEX "model.safetensors.index.json"

enum { SHARDS = 3 };
static const int cuts[SHARDS + 1] = {0, 10, 17, TINY_TENSORS};

static sf_pool *pool;

static int set_up(void **state) {
    (void)state;
    return sf_pool_create(2, &pool, NULL) == SF_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    sf_pool_destroy(pool);
    return 0;
}

/* Of the directory or file; the error as a person sees it. */
static sf_code load_st(const char *path, char msg[600]) {
    const sf_plan plan = tiny_st_plan();
    sf_safetensors *st = NULL;
    sf_hf_config *c = NULL;
    sf_weights *w = NULL;
    sf_err err = {0};
    assert_int_equal(sf_hf_config_open_text("tiny", TINY_CONFIG, strlen(TINY_CONFIG), &c, &err), SF_OK);
    sf_code rc = sf_safetensors_open(path, &st, &err);
    if (rc == SF_OK) rc = sf_weights_load_st(&plan, st, c, pool, false, NULL, &w, &err);
    assert_true((rc == SF_OK) == (w != NULL));
    sf_err_format(&err, msg, 600);
    sf_weights_destroy(w);
    sf_safetensors_close(st);
    sf_hf_config_close(c);
    return rc;
}

/* The message is "DIR/FILE: ..." or "DIR: FILE: ..." and holds the tensor's name. */
static void expect_named(sf_code rc, const char *msg, const char *dir, const char *file, const char *tensor) {
    char at[160];
    snprintf(at, sizeof at, "tensor %s", tensor);
    if (rc == SF_OK || strncmp(msg, dir, strlen(dir)) != 0 || (file && !strstr(msg, file)) ||
        !strstr(msg, at))
        fail_msg("code %d '%s', expected %s, %s and '%s'", (int)rc, msg, dir, file ? file : "-", at);
}

static void write_shards(const char *dir, const tiny_st_change *change) {
    gm index = {0};
    for (int s = 0; s < SHARDS; s++) {
        char file[40];
        snprintf(file, sizeof file, "model-%d-of-3.safetensors", s + 1);
        st_save(dir, file, tiny_st_part(change, cuts[s], cuts[s + 1]));
        for (int i = cuts[s]; i < cuts[s + 1]; i++) {
            char name[96], line[160];
            tiny_st_name(tiny_tensors[i].name, name);
            int n = snprintf(line, sizeof line, "%s\"%s\":\"%s\"", i ? "," : "{\"weight_map\":{", name, file);
            gm_bytes(&index, line, (size_t)n);
        }
    }
    gm_bytes(&index, "}}", 2);
    st_save(dir, INDEX, index);
}

typedef enum damage { GOOD, DROPPED, RENAMED, RESHAPED, RETYPED, DAMAGES } damage;

static tiny_st_change change_of(damage d, const char *name) {
    tiny_st_change c = {0};
    if (d == DROPPED) c.without = name;
    if (d == RENAMED) {
        c.rename = name;
        c.to = "model.other.weight";
    }
    if (d == RESHAPED) c.reshape = name;
    if (d == RETYPED) c.retype = name;
    return c;
}

static void every_tensor_of_one_file(void **state) {
    (void)state;
    char dir[64], path[96], name[96], msg[600];
    st_directory(dir);
    snprintf(path, sizeof path, "%s/one.safetensors", dir);
    for (damage d = GOOD; d < DAMAGES; d++) {
        for (int i = 0; i < TINY_TENSORS; i++) {
            tiny_st_name(tiny_tensors[i].name, name);
            const tiny_st_change c = change_of(d, name);
            st_save(dir, "one.safetensors", tiny_st_file(&c));
            sf_code rc = load_st(path, msg);
            if (d == GOOD && rc != SF_OK) fail_msg("%s", msg);
            if (d != GOOD) expect_named(rc, msg, path, NULL, name);
        }
    }
    st_remove(dir);
}

static void every_tensor_of_shards(void **state) {
    (void)state;
    char dir[64], name[96], msg[600], file[40];
    st_directory(dir);
    for (damage d = GOOD; d < DAMAGES; d++) {
        for (int i = 0; i < TINY_TENSORS; i++) {
            const int shard = i < cuts[1] ? 1 : i < cuts[2] ? 2 : 3;
            tiny_st_name(tiny_tensors[i].name, name);
            snprintf(file, sizeof file, "model-%d-of-3.safetensors", shard);
            const tiny_st_change c = change_of(d, name);
            write_shards(dir, &c);
            sf_code rc = load_st(dir, msg);
            if (d == GOOD && rc != SF_OK) fail_msg("%s", msg);
            /* a name that the index lacks is said before one that it has too many */
            if (d != GOOD) expect_named(rc, msg, dir, file, d == RENAMED ? "model.other.weight" : name);
        }
    }
    st_remove(dir);
}

static uint64_t st_bytes(const tiny_tensor *t) {
    return (t->rows ? t->rows : 1) * t->cols * (t->type == SF_GGML_F32 ? 4 : 2);
}

/* A file, or a shard, that ends inside of a tensor's data. */
static void every_tensor_cut_in_safetensors(void **state) {
    (void)state;
    const tiny_st_change none = {0};
    char dir[64], path[112], name[96], msg[600], file[40];
    st_directory(dir);
    for (int sharded = 0; sharded < 2; sharded++) {
        for (int i = 0; i < TINY_TENSORS; i++) {
            const int shard = i < cuts[1] ? 0 : i < cuts[2] ? 1 : 2;
            const int first = sharded ? cuts[shard] : 0, end = sharded ? cuts[shard + 1] : TINY_TENSORS;
            gm m = tiny_st_part(&none, first, end);
            uint64_t head = 0, at = 0;
            memcpy(&head, m.data, sizeof head);
            for (int k = first; k <= i; k++)
                at += st_bytes(&tiny_tensors[k]);
            m.len = 8 + (size_t)head + (size_t)at - 1;
            tiny_st_name(tiny_tensors[i].name, name);
            snprintf(file, sizeof file, sharded ? "model-%d-of-3.safetensors" : "cut.safetensors", shard + 1);
            if (sharded) write_shards(dir, &none);
            st_save(dir, file, m);
            snprintf(path, sizeof path, "%s%s%s", dir, sharded ? "" : "/", sharded ? "" : file);
            expect_named(load_st(path, msg), msg, path, sharded ? file : NULL, name);
        }
    }
    st_remove(dir);
}

static void each_shard_left_out_is_listed(void **state) {
    (void)state;
    const tiny_st_change none = {0};
    char dir[64], msg[600], want[600], file[40];
    for (int s = 0; s < SHARDS; s++) {
        st_directory(dir);
        write_shards(dir, &none);
        snprintf(file, sizeof file, "model-%d-of-3.safetensors", s + 1);
        st_unlink(dir, file);
        snprintf(want, sizeof want, "%s: 1 of 3 files of " INDEX " is missing: %s", dir, file);
        assert_int_equal(load_st(dir, msg), SF_NOT_FOUND);
        assert_string_equal(msg, want);
        st_remove(dir);
    }
}

static sf_code load_gguf(const void *data, size_t len, char msg[600]) {
    sf_gguf *g = NULL;
    sf_weights *w = NULL;
    sf_err err = {0};
    sf_code rc = sf_gguf_open_bytes("tiny.gguf", data, len, &g, &err);
    if (rc == SF_OK) rc = sf_weights_load(&tiny_plan, g, pool, false, NULL, &w, &err);
    assert_true((rc == SF_OK) == (w != NULL));
    sf_err_format(&err, msg, 600);
    sf_weights_destroy(w);
    sf_gguf_close(g);
    return rc;
}

static void every_tensor_of_a_gguf_file(void **state) {
    (void)state;
    char msg[600];
    for (damage d = GOOD; d < DAMAGES; d++) {
        for (int i = 0; i < TINY_TENSORS; i++) {
            const tiny_tensor *t = &tiny_tensors[i];
            tiny_change c = {0};
            if (d == DROPPED || d == RENAMED) c.without = t->name;
            if (d == RENAMED) c.tensor = (tiny_tensor){"other.weight", t->rows, t->cols, t->type};
            if (d == RESHAPED)
                c.tensor = (tiny_tensor){t->name, t->rows ? t->rows + 1 : 0, t->cols + !t->rows, t->type};
            if (d == RETYPED) c.tensor = (tiny_tensor){t->name, t->rows, t->cols, 25}; /* I16 */
            gm m = tiny_file(&c);
            sf_code rc = load_gguf(m.data, m.len, msg);
            gm_fini(&m);
            if (d == GOOD && rc != SF_OK) fail_msg("%s", msg);
            if (d != GOOD) expect_named(rc, msg, "tiny.gguf", NULL, t->name);
        }
    }
}

static void every_tensor_cut_in_gguf(void **state) {
    (void)state;
    char msg[600];
    gm m = tiny_file(&(tiny_change){0});
    size_t from = m.len;
    for (int i = 0; i < TINY_TENSORS; i++)
        from -= (tiny_bytes(&tiny_tensors[i]) + 31) / 32 * 32;
    for (int i = 0; i < TINY_TENSORS; i++) {
        size_t len = from + tiny_bytes(&tiny_tensors[i]) - 1;
        expect_named(load_gguf(m.data, len, msg), msg, "tiny.gguf", NULL, tiny_tensors[i].name);
        from += (tiny_bytes(&tiny_tensors[i]) + 31) / 32 * 32;
    }
    assert_int_equal(from, m.len);
    gm_fini(&m);
}

/* The two versions differ in the number alone. */
static void gguf_of_version_2_gives_the_same(void **state) {
    (void)state;
    gm m = tiny_file(&(tiny_change){0});
    char hash[2][65];
    for (uint8_t version = 2; version <= 3; version++) {
        sf_gguf *g = NULL;
        sf_weights *w = NULL;
        sf_err err = {0};
        m.data[4] = version;
        if (sf_gguf_open_bytes("tiny.gguf", m.data, m.len, &g, &err) != SF_OK) fail_msg("%s", err.msg);
        if (sf_weights_load(&tiny_plan, g, pool, false, NULL, &w, &err) != SF_OK) fail_msg("%s", err.msg);
        snprintf(hash[version - 2], sizeof hash[0], "%s", sf_weights_hash(w));
        sf_weights_destroy(w);
        sf_gguf_close(g);
    }
    assert_string_equal(hash[0], hash[1]);
    gm_fini(&m);
}

/* What stands where a file should: nothing, a directory, a link to nothing. */
static void what_is_no_file_is_named(void **state) {
    (void)state;
    const tiny_st_change none = {0};
    char dir[64], path[128], msg[600];
    sf_hf_config *c = NULL;
    sf_err err = {0};
    st_directory(dir);
    st_save(dir, "model.safetensors", tiny_st_file(&none));
    assert_int_equal(load_st(dir, msg), SF_OK);
    assert_int_not_equal(sf_hf_config_open(dir, &c, &err), SF_OK); /* no config.json */
    sf_err_format(&err, msg, sizeof msg);
    if (strncmp(msg, dir, strlen(dir)) != 0 || !strstr(msg, "config.json")) fail_msg("%s", msg);
    st_unlink(dir, "model.safetensors");

    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(load_st(dir, msg), SF_IO);
    if (!strstr(msg, "model.safetensors: not a regular file")) fail_msg("%s", msg);
    assert_int_equal(rmdir(path), 0);

    write_shards(dir, &none);
    st_unlink(dir, "model-2-of-3.safetensors");
    snprintf(path, sizeof path, "%s/model-2-of-3.safetensors", dir);
    assert_int_equal(symlink("/nonexistent/blob", path), 0); /* as a cache that lost a blob has */
    assert_int_equal(load_st(dir, msg), SF_NOT_FOUND);
    if (!strstr(msg, "model-2-of-3.safetensors")) fail_msg("%s", msg);
    st_remove(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tensor_of_one_file),         cmocka_unit_test(every_tensor_of_shards),
        cmocka_unit_test(every_tensor_cut_in_safetensors),  cmocka_unit_test(each_shard_left_out_is_listed),
        cmocka_unit_test(every_tensor_of_a_gguf_file),      cmocka_unit_test(every_tensor_cut_in_gguf),
        cmocka_unit_test(gguf_of_version_2_gives_the_same), cmocka_unit_test(what_is_no_file_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
