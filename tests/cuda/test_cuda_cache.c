/* The cubin cache with made-up code: no compiler is needed. */
#include "cuda/cuda_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cuda/cache.h"

static const sf_nvrtc compiler = {.major = 13, .build = "13.0, V13.0.88, CL-1"};
static const sf_cuda_header headers[] = {{"a.cuh", "int a;"}, {"b.cuh", "int b;"}};
static const sf_cuda_source source = {"k", "k.cu", NULL, "int k;"};
static const char log_text[] = "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
                               "ptxas info    : Used 38 registers, used 1 barriers\n";

typedef struct fixture {
    char root[64], key[65], file[256];
    sf_cubin_cache *cache;
} fixture;

static int setup(void **state) {
    static fixture f;
    sf_err err;
    f = (fixture){.root = "/tmp/sf_cache_XXXXXX"};
    assert_non_null(mkdtemp(f.root));
    assert_int_equal(sf_cubin_cache_create(f.root, &f.cache, &err), SF_OK);
    assert_int_equal(sf_cubin_key(&compiler, "sm_90a", &source, headers, 2, f.key, &err), SF_OK);
    snprintf(f.file, sizeof f.file, "%s/%s", f.root, f.key);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    char line[256];
    sf_cubin_cache_destroy(f->cache);
    snprintf(line, sizeof line, "chmod -R u+w %s && rm -r %s", f->root, f->root);
    return system(line);
}

/* Made-up code of n bytes. */
static sf_cubin make(size_t n, char fill) {
    sf_cubin c = {0};
    char byte = fill;
    for (size_t i = 0; i < n; i++, byte = (char)(byte + 1))
        assert_int_equal(sf_buf_append(&c.code, &byte, 1, NULL), SF_OK);
    assert_int_equal(sf_buf_append(&c.log, log_text, sizeof log_text, NULL), SF_OK);
    return c;
}

static void put(const fixture *f, size_t n, char fill) {
    sf_cubin c = make(n, fill);
    sf_cubin_cache_put(f->cache, f->key, &c);
    sf_cubin_fini(&c);
}

/* Whether the file is there, whole, and as `put` made it. */
static bool holds(const fixture *f, size_t n, char fill) {
    sf_cubin c = {0}, like = make(n, fill);
    const bool found = sf_cubin_cache_find(f->cache, f->key, &c);
    const bool same = found && c.code.len == n && memcmp(c.code.data, like.code.data, n) == 0;
    if (found) {
        assert_true(c.cached);
        assert_int_equal(c.report.entries[0].registers, 38);
    } else {
        assert_null(c.code.data);
    }
    sf_cubin_fini(&c);
    sf_cubin_fini(&like);
    return same;
}

static int files_in(const char *dir) {
    DIR *d = opendir(dir);
    int n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void what_was_put_is_found(void **state) {
    fixture *f = *state;
    assert_false(holds(f, 1000, 1));
    put(f, 1000, 1);
    assert_true(holds(f, 1000, 1));
    put(f, 10, 7); /* replaced */
    assert_true(holds(f, 10, 7));
    assert_int_equal(files_in(f->root), 1);
    const sf_cubin_cache_stats s = sf_cubin_cache_stats_get(f->cache);
    assert_int_equal(s.hits, 2);
    assert_int_equal(s.misses, 1);
    assert_int_equal(s.damaged + s.unwritten, 0);
    assert_null(sf_cubin_cache_note_take(f->cache));
}

static void every_input_changes_the_key(void **state) {
    fixture *f = *state;
    char keys[16][65];
    int n = 0;
    sf_err err;
    sf_nvrtc other = compiler;
    sf_cuda_source s = source;
    sf_cuda_header h[] = {headers[0], headers[1]};
    memcpy(keys[n++], f->key, 65);
    snprintf(other.build, sizeof other.build, "13.0, V13.0.89, CL-2");
    assert_int_equal(sf_cubin_key(&other, "sm_90a", &source, headers, 2, keys[n++], &err), SF_OK);
    other = compiler;
    other.major = 11; /* another set of options */
    assert_int_equal(sf_cubin_key(&other, "sm_90a", &source, headers, 2, keys[n++], &err), SF_OK);
    assert_int_equal(sf_cubin_key(&compiler, "sm_100a", &source, headers, 2, keys[n++], &err), SF_OK);
    s.text = "int k; ";
    assert_int_equal(sf_cubin_key(&compiler, "sm_90a", &s, headers, 2, keys[n++], &err), SF_OK);
    s = source;
    s.file = "j.cu";
    assert_int_equal(sf_cubin_key(&compiler, "sm_90a", &s, headers, 2, keys[n++], &err), SF_OK);
    assert_int_equal(sf_cubin_key(&compiler, "sm_90a", &source, headers, 1, keys[n++], &err), SF_OK);
    h[1].text = "int c;";
    assert_int_equal(sf_cubin_key(&compiler, "sm_90a", &source, h, 2, keys[n++], &err), SF_OK);
    h[1] = (sf_cuda_header){"c.cuh", "int b;"};
    assert_int_equal(sf_cubin_key(&compiler, "sm_90a", &source, h, 2, keys[n++], &err), SF_OK);
    h[1] = (sf_cuda_header){"b.cuhint", " b;"}; /* the same bytes, cut elsewhere */
    assert_int_equal(sf_cubin_key(&compiler, "sm_90a", &source, h, 2, keys[n++], &err), SF_OK);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(keys[i], keys[j]);
    assert_int_equal(sf_cubin_key(&compiler, "sm_90a", &source, headers, 2, keys[1], &err), SF_OK);
    assert_string_equal(keys[1], f->key);
}

static void any_flipped_byte_is_noticed(void **state) {
    fixture *f = *state;
    put(f, 100, 1);
    struct stat st;
    assert_int_equal(stat(f->file, &st), 0);
    const int fd = open(f->file, O_RDWR);
    for (off_t at = 0; at < st.st_size; at++) {
        unsigned char byte;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_false(holds(f, 100, 1));
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
    assert_true(holds(f, 100, 1));
    assert_int_equal(sf_cubin_cache_stats_get(f->cache).damaged, st.st_size);
}

static void any_truncation_is_noticed_and_repaired(void **state) {
    fixture *f = *state;
    put(f, 100, 1);
    struct stat st;
    assert_int_equal(stat(f->file, &st), 0);
    for (off_t len = st.st_size; len-- > 0;) {
        assert_int_equal(truncate(f->file, len), 0);
        assert_false(holds(f, 100, 1));
    }
    put(f, 100, 1);
    assert_true(holds(f, 100, 1));
    const int fd = open(f->file, O_WRONLY | O_APPEND); /* a longer file is no better */
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    assert_false(holds(f, 100, 1));
}

static void a_file_under_another_key_is_refused(void **state) {
    fixture *f = *state;
    char other[256];
    put(f, 100, 1);
    f->key[0] = f->key[0] == 'a' ? 'b' : 'a';
    snprintf(other, sizeof other, "%s/%s", f->root, f->key);
    assert_int_equal(rename(f->file, other), 0);
    assert_false(holds(f, 100, 1));
}

/* Writers of files of different sizes; a reader may never see a mixture. */
static void processes_write_at_once(void **state) {
    fixture *f = *state;
    enum { WRITERS = 4, ROUNDS = 100 };
    pid_t child[WRITERS];
    put(f, 20000, 0);
    for (int i = 0; i < WRITERS; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] == 0) {
            for (int j = 0; j < ROUNDS; j++)
                put(f, 20000 + (size_t)i * 7000, (char)i);
            _exit(sf_cubin_cache_stats_get(f->cache).unwritten > 0);
        }
    }
    for (int j = 0; j < ROUNDS; j++) {
        bool whole = false;
        sf_cubin c = {0};
        assert_true(sf_cubin_cache_find(f->cache, f->key, &c));
        for (int i = 0; i < WRITERS; i++)
            whole = whole || (c.code.len == 20000 + (size_t)i * 7000 && c.code.data[0] == (char)i);
        assert_true(whole);
        sf_cubin_fini(&c);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = 0;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(files_in(f->root), 1);
    assert_int_equal(sf_cubin_cache_stats_get(f->cache).damaged, 0);
}

/* A file stands where the directory should: also root cannot write there. */
static void a_directory_that_cannot_be_is_said_once(void **state) {
    fixture *f = *state;
    char path[256];
    sf_cubin_cache *c = NULL;
    sf_cubin out = {0}, made = make(10, 1);
    sf_err err;
    put(f, 10, 1);
    snprintf(path, sizeof path, "%s/%s/deeper", f->root, f->key);
    assert_int_equal(sf_cubin_cache_create(path, &c, &err), SF_OK);
    assert_false(sf_cubin_cache_find(c, f->key, &out));
    sf_cubin_cache_put(c, f->key, &made);
    sf_cubin_cache_put(c, f->key, &made);
    const char *note = sf_cubin_cache_note_take(c);
    assert_non_null(note);
    assert_non_null(strstr(note, "compiled kernels are not kept: cannot make "));
    assert_non_null(strstr(note, "Not a directory"));
    assert_null(sf_cubin_cache_note_take(c));
    assert_int_equal(sf_cubin_cache_stats_get(c).unwritten, 2);
    assert_int_equal(sf_cubin_cache_stats_get(c).damaged, 0);
    sf_cubin_cache_destroy(c);
    sf_cubin_fini(&made);
}

/* Root may write anywhere, so the test becomes somebody who owns nothing. */
static void a_directory_that_is_not_ours_is_left_alone(void **state) {
    fixture *f = *state;
    const bool root = geteuid() == 0;
    assert_int_equal(chmod(f->root, 0555), 0);
    if (root) assert_int_equal(seteuid(65534), 0);
    put(f, 10, 1);
    assert_false(holds(f, 10, 1));
    const char *note = sf_cubin_cache_note_take(f->cache);
    if (root) assert_int_equal(seteuid(0), 0);
    assert_non_null(note);
    assert_non_null(strstr(note, "cannot write to"));
    assert_non_null(strstr(note, "Permission denied"));
    assert_int_equal(files_in(f->root), 0);
}

static void the_user_s_cache_directory_is_the_default(void **state) {
    fixture *f = *state;
    char path[256];
    sf_cubin_cache *c = NULL;
    sf_err err;
    struct stat st;
    assert_int_equal(setenv("XDG_CACHE_HOME", f->root, 1), 0);
    assert_int_equal(sf_cubin_cache_create(NULL, &c, &err), SF_OK);
    sf_cubin_cache_destroy(c);
    snprintf(path, sizeof path, "%s/steadfast/cubin", f->root);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0); /* to be ignored, says its specification */
    assert_int_equal(setenv("HOME", f->root, 1), 0);
    assert_int_equal(sf_cubin_cache_create(NULL, &c, &err), SF_OK);
    sf_cubin_cache_destroy(c);
    snprintf(path, sizeof path, "%s/.cache/steadfast/cubin", f->root);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(unsetenv("XDG_CACHE_HOME") + unsetenv("HOME"), 0);
    assert_int_equal(sf_cubin_cache_create(NULL, &c, &err), SF_OK);
    assert_non_null(sf_cubin_cache_note_take(c));
    sf_cubin_cache_destroy(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_put_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(every_input_changes_the_key, setup, teardown),
        cmocka_unit_test_setup_teardown(any_flipped_byte_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(any_truncation_is_noticed_and_repaired, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_under_another_key_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(processes_write_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_directory_that_cannot_be_is_said_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_directory_that_is_not_ours_is_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(the_user_s_cache_directory_is_the_default, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
