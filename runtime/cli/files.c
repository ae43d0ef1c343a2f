#include "cli/files.h"

#include "cli/setup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 7
#define LINKS_MAX 40 /* as the kernel */

typedef struct file {
    const char *flag, *path; /* path "": the descriptor that flag names */
    bool written, there;
    struct stat st;
    char place[PATH_MAX]; /* where it would come to be, when it is not there; "" if unknown */
} file;

/* dir and name of a path, dir made canonical. */
static bool split(const char *path, char dir[PATH_MAX], const char **name) {
    char head[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + 1 : 0;
    if (len >= sizeof head) return false;
    memcpy(head, path, len);
    head[len] = 0;
    *name = path + len;
    return **name && realpath(len ? head : ".", dir) != NULL;
}

/* Where open would make the file: a link at the end may lead to nothing. */
static bool find_place(const char *path, char place[PATH_MAX]) {
    char at[PATH_MAX], dir[PATH_MAX], target[PATH_MAX];
    const char *name;
    if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at) return false;
    for (int i = 0; i < LINKS_MAX; i++) {
        if (!split(at, dir, &name)) return false;
        if (snprintf(place, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX) return false;
        ssize_t n = readlink(place, target, sizeof target - 1);
        if (n < 0) return true;
        target[n] = 0;
        int len = target[0] == '/' ? snprintf(at, sizeof at, "%s", target)
                                   : snprintf(at, sizeof at, "%s/%s", dir, target);
        if (len >= (int)sizeof at) return false;
    }
    return false;
}

/* path NULL: no such file in this run; "-": the descriptor. */
static void add(file *files, int *n, const char *flag, const char *path, int fd, const char *fd_name,
                bool written) {
    if (!path) return;
    file *f = &files[(*n)++];
    bool is_fd = strcmp(path, "-") == 0 && fd >= 0;
    f->flag = is_fd ? fd_name : flag;
    f->path = is_fd ? "" : path;
    f->written = written;
    f->there = is_fd ? fstat(fd, &f->st) == 0 : stat(path, &f->st) == 0;
    f->place[0] = 0;
    if (!is_fd && !f->there && !find_place(path, f->place)) f->place[0] = 0;
}

/* Pipes, terminals and /dev/null may be shared. */
static bool same(const file *a, const file *b) {
    if (a->there && b->there)
        return S_ISREG(a->st.st_mode) && a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino;
    return !a->there && !b->there && a->place[0] && strcmp(a->place, b->place) == 0;
}

int sf_cli_check_files(const sf_cli_opts *o) {
    file files[FILES_MAX];
    int n = 0;
    const char *output = o->output ? o->output : "-";
    /* `--report -` puts the report after the answers, which is what was asked for. */
    const char *report = o->report && strcmp(o->report, "-") != 0 ? o->report : NULL;
    add(files, &n, "--weights", o->weights, -1, NULL, false);
    add(files, &n, "--chat-template", o->chat_template, -1, NULL, false);
    add(files, &n, "--input", o->input, STDIN_FILENO, "stdin", false);
    add(files, &n, "--answers", o->answers, STDIN_FILENO, "stdin", false);
    add(files, &n, "--dataset-path", o->dataset_path, -1, NULL, false);
    add(files, &n, "--output", output, STDOUT_FILENO, "stdout", true);
    add(files, &n, "--report", report, -1, NULL, true);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) {
            const file *a = &files[i], *b = &files[j];
            if ((!a->written && !b->written) || !same(a, b)) continue;
            return sf_cli_error(SF_EXIT_USAGE, "%s%s%s and %s%s%s are the same file, expected two", a->flag,
                                a->path[0] ? " " : "", a->path, b->flag, b->path[0] ? " " : "", b->path);
        }
    }
    return SF_EXIT_OK;
}
