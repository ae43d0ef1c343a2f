#include "base/progress.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

/* Standard error sent elsewhere for a while. */
typedef struct capture {
    int saved, from; /* from: what was written is read here */
} capture;

static void capture_start(capture *c, int to, int from) {
    fflush(stderr);
    c->saved = dup(STDERR_FILENO);
    c->from = from;
    assert_true(c->saved >= 0 && dup2(to, STDERR_FILENO) >= 0);
    assert_int_equal(close(to), 0);
}

/* Ends it; returns what was written so far. */
static size_t capture_end(capture *c, char *out, size_t size) {
    fflush(stderr);
    assert_int_equal(fcntl(c->from, F_SETFL, O_NONBLOCK), 0);
    ssize_t n = read(c->from, out, size - 1);
    size_t len = n > 0 ? (size_t)n : 0;
    out[len] = 0;
    assert_true(dup2(c->saved, STDERR_FILENO) >= 0);
    close(c->saved);
    close(c->from);
    return len;
}

static void capture_terminal(capture *c) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    capture_start(c, slave, master);
}

static void wait_ms(long ms) {
    struct timespec t = {0, ms * 1000000};
    nanosleep(&t, NULL);
}

static void nothing_is_drawn_where_no_terminal_is(void **state) {
    (void)state;
    capture c;
    int ends[2];
    char out[4096];
    assert_int_equal(pipe(ends), 0);
    capture_start(&c, ends[1], ends[0]);
    sf_progress p;
    sf_progress_init(&p, "loading", "B", 100);
    wait_ms(120);
    sf_progress_note(&p, 50, "half");
    sf_progress_fini(&p);
    size_t len = capture_end(&c, out, sizeof out);
    assert_int_equal(len, 0);
    assert_int_equal(p.done, 50);
}

static void a_terminal_sees_bar_rate_and_note_and_a_cleared_line(void **state) {
    (void)state;
    capture c;
    char out[4096];
    capture_terminal(&c);
    sf_progress p;
    sf_progress_init(&p, "loading", "B", 4000000);
    wait_ms(120);
    sf_progress_note(&p, 2000000, "blk.3");
    sf_progress_fini(&p);
    capture_end(&c, out, sizeof out);
    assert_non_null(strstr(out, "loading [############............] 50 %  "));
    assert_non_null(strstr(out, " MB/s  eta "));
    assert_non_null(strstr(out, "  blk.3"));
    const char *clear = "\r\033[K";
    assert_string_equal(out + strlen(out) - strlen(clear), clear);
}

static void it_draws_ten_times_a_second_at_most(void **state) {
    (void)state;
    capture c;
    static char out[65536];
    capture_terminal(&c);
    sf_progress p;
    sf_progress_init(&p, "run", "tokens", 100000);
    double start = sf_now_s();
    for (uint64_t i = 0; sf_now_s() - start < 0.35; i++)
        sf_progress_set(&p, i);
    sf_progress_fini(&p);
    capture_end(&c, out, sizeof out);
    int drawn = 0;
    for (const char *at = strstr(out, "run ["); at; at = strstr(at + 1, "run ["))
        drawn++;
    assert_true(drawn >= 1 && drawn <= 4); /* 0.35 s, and a stall at its end */
    assert_non_null(strstr(out, " tokens/s"));
}

static void short_work_draws_nothing(void **state) {
    (void)state;
    capture c;
    char out[256];
    capture_terminal(&c);
    sf_progress p;
    sf_progress_init(&p, "run", "B", 0);
    p.start_s = p.drawn_s = sf_now_s() + 1; /* however slow this machine is */
    sf_progress_set(&p, 0);
    sf_progress_fini(&p);
    size_t len = capture_end(&c, out, sizeof out);
    assert_int_equal(len, 0);
}

static void time_runs_forward(void **state) {
    (void)state;
    double a = sf_now_s();
    wait_ms(5);
    assert_true(sf_now_s() - a >= 0.004);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_drawn_where_no_terminal_is),
        cmocka_unit_test(a_terminal_sees_bar_rate_and_note_and_a_cleared_line),
        cmocka_unit_test(it_draws_ten_times_a_second_at_most),
        cmocka_unit_test(short_work_draws_nothing),
        cmocka_unit_test(time_runs_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
