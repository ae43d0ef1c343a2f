#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Bits of what is wrong in a child that starts with the given descriptors closed. */
static int wrong_after_closing(const int *closed, int n) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char byte;
        int wrong = 0;
        for (int i = 0; i < n; i++)
            close(closed[i]);
        sf_fds_open_std();
        int next = open("/dev/null", O_RDWR);
        if (next < 3) wrong |= 1;
        for (int i = 0; i < n; i++) {
            struct stat st;
            if (fstat(closed[i], &st) != 0 || !S_ISCHR(st.st_mode)) wrong |= 2;
            if (closed[i] == 0 && !(read(0, &byte, 1) < 0 && errno == EBADF)) wrong |= 4;
            if (closed[i] == 1 && !(write(1, "x", 1) < 0 && errno == EBADF)) wrong |= 8;
            if (closed[i] == 2 && write(2, "x", 1) != 1) wrong |= 16;
        }
        _exit(wrong);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void closed_descriptors_are_filled_and_still_fail(void **state) {
    (void)state;
    static const int all[] = {0, 1, 2};
    for (int from = 0; from < 3; from++)
        for (int n = 1; n <= 3 - from; n++)
            assert_int_equal(wrong_after_closing(all + from, n), 0);
    static const int outer[] = {0, 2};
    assert_int_equal(wrong_after_closing(outer, 2), 0);
}

static void open_descriptors_are_left_alone(void **state) {
    (void)state;
    struct stat before[3], after[3];
    for (int fd = 0; fd < 3; fd++)
        assert_int_equal(fstat(fd, &before[fd]), 0);
    sf_fds_open_std();
    for (int fd = 0; fd < 3; fd++) {
        assert_int_equal(fstat(fd, &after[fd]), 0);
        assert_int_equal(before[fd].st_ino, after[fd].st_ino);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_descriptors_are_filled_and_still_fail),
        cmocka_unit_test(open_descriptors_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
