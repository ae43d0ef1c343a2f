/* Compiles CUDA templates as they stand, and generated kernels, with no GPU: each must compile, spill
 * nothing, use no local memory, draw no note of ptxas about wgmma, and export its launch constant. What they
 * use is printed and compared with a golden file.
 *
 * usage: sf_nvrtc_check --root DIR [--arch sm_90a] [--golden FILE [--refresh]] [--kernels DIR] [TEMPLATE...]
 *        --kernels DIR: all .cu files of a generated engine's kernels folder
 * Exit: 0 all well, 1 a template fails or the table differs, 2 wrong usage, 77 NVRTC is not on this machine.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cuda/nvrtc.h"
#include "nvrtc/launch.h"

#define FILE_MAX    ((size_t)4 << 20)
#define HEADERS_MAX 128
#define SKIPPED     77

typedef struct options {
    const char *root, *arch, *golden, *kernels;
    bool refresh;
} options;

typedef struct check {
    options o;
    sf_nvrtc nvrtc;
    sf_cuda_header headers[HEADERS_MAX];
    int n_headers;
    sf_buf table;
    int failed;
} check;

static void complain(check *c, const char *what, const sf_err *err) {
    char text[1024];
    printf("%s: FAIL: %s\n", what, sf_err_format(err, text, sizeof text));
    c->failed++;
}

/* ---- sources ---- */

static sf_code read_header(check *c, const char *dir, const char *as, const char *file, sf_err *err) {
    char path[4096], name[512];
    sf_buf text = {0};
    if (c->n_headers == HEADERS_MAX) return SF_FAIL(err, SF_FULL, "more than %d headers", HEADERS_MAX);
    snprintf(path, sizeof path, "%s/%s/%s", c->o.root, dir, file);
    snprintf(name, sizeof name, "%s/%s", as, file);
    const sf_code rc = sf_buf_read_file(&text, path, FILE_MAX, err);
    if (rc != SF_OK) return SF_FAIL(err, rc, "cannot read %s", name);
    c->headers[c->n_headers++] = (sf_cuda_header){strdup(name), text.data ? text.data : strdup("")};
    return SF_OK;
}

/* All files of root/dir with that ending, under the name `as`/file. */
static sf_code read_headers(check *c, const char *dir, const char *as, const char *ending, sf_err *err) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", c->o.root, dir);
    DIR *d = opendir(path);
    if (!d) return SF_FAIL(err, SF_IO, "cannot read the folder %s of the root", dir);
    sf_code rc = SF_OK;
    for (struct dirent *e; rc == SF_OK && (e = readdir(d));) {
        const size_t len = strlen(e->d_name), n = strlen(ending);
        if (len > n && strcmp(e->d_name + len - n, ending) == 0) rc = read_header(c, dir, as, e->d_name, err);
    }
    closedir(d);
    return rc;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- one template ---- */

static sf_code add_row(check *c, const sf_cubin *cubin, const sf_cuda_entry *e, sf_err *err) {
    sf_cuda_launch l;
    if (!launch_of(cubin->code.data, cubin->code.len, e->name, &l))
        return SF_FAIL(err, SF_INVALID, "kernel %s does not export its launch constant %s_launch", e->name,
                       e->name);
    return sf_buf_printf(&c->table, err, "%-44s %5d %8d %7d %6d %8d %4d %8d %8d %11d %10llu\n", e->name,
                         e->registers, e->barriers, e->shared, l.grid, l.threads, l.pdl, l.shared, l.cluster,
                         l.row_blocks, l.workspace);
}

static sf_code check_rows(check *c, const char *file, const sf_cubin *cubin, sf_err *err) {
    SF_TRY(sf_cuda_report_check(&cubin->report, file, err));
    for (int i = 0; i < cubin->report.n_entries; i++)
        SF_TRY(add_row(c, cubin, cubin->report.entries + i, err));
    return SF_OK;
}

static void check_template(check *c, const char *path) {
    const char *file = base_name(path);
    sf_buf text = {0};
    sf_cubin cubin = {0};
    sf_err err = {0};
    sf_code rc = sf_buf_read_file(&text, path, FILE_MAX, &err);
    const sf_cuda_source source = {file, file, NULL, text.data ? text.data : ""};
    if (rc == SF_OK)
        rc = sf_nvrtc_compile(&c->nvrtc, c->o.arch, &source, c->headers, c->n_headers, &cubin, &err);
    if (rc == SF_OK) rc = check_rows(c, file, &cubin, &err);
    if (rc != SF_OK) complain(c, file, &err);
    if (rc == SF_OK && cubin.report.warnings) printf("%s: %s\n", file, cubin.report.warning);
    sf_cubin_fini(&cubin);
    sf_buf_fini(&text);
}

static int is_source(const struct dirent *e) {
    const size_t len = strlen(e->d_name);
    return len > 3 && strcmp(e->d_name + len - 3, ".cu") == 0;
}

static void check_kernels(check *c) {
    struct dirent **names = NULL;
    char path[4096];
    const int n = scandir(c->o.kernels, &names, is_source, alphasort);
    if (n <= 0) {
        printf("%s: FAIL: no kernels there\n", c->o.kernels);
        c->failed++;
    }
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", c->o.kernels, names[i]->d_name);
        check_template(c, path);
        free(names[i]);
    }
    free(names);
}

/* ---- the golden table ---- */

static int write_golden(const check *c) {
    FILE *f = fopen(c->o.golden, "w");
    if (!f || fwrite(c->table.data, 1, c->table.len, f) != c->table.len || fclose(f) != 0) {
        printf("cannot write %s\n", c->o.golden);
        return 1;
    }
    printf("wrote %s\n", c->o.golden);
    return 0;
}

/* The first line names the compiler: another build may use other registers, and that is no difference. */
static int compare_golden(const check *c) {
    sf_buf golden = {0};
    sf_err err = {0};
    if (sf_buf_read_file(&golden, c->o.golden, FILE_MAX, &err) != SF_OK) {
        printf("%s: %s; --refresh writes it\n", c->o.golden, err.msg);
        return 1;
    }
    const char *was = golden.data ? golden.data : "", *is = c->table.data;
    const size_t head = strcspn(is, "\n");
    int differs = 0;
    if (strncmp(was, is, head + 1) != 0) {
        printf("the golden table is of another compiler, and not compared\n");
    } else if (strcmp(was, is) != 0) {
        printf("the table differs from %s; --refresh takes it\n", base_name(c->o.golden));
        differs = 1;
    }
    sf_buf_fini(&golden);
    return differs;
}

/* ---- main ---- */

/* Returns the index of the first template (argc: none), 0 for wrong usage. */
static int parse(int argc, char **argv, options *o) {
    int i = 1;
    *o = (options){.arch = "sm_90a"};
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--refresh") == 0) {
            o->refresh = true;
            continue;
        }
        if (!value) return 0;
        if (strcmp(argv[i], "--root") == 0)
            o->root = value;
        else if (strcmp(argv[i], "--arch") == 0)
            o->arch = value;
        else if (strcmp(argv[i], "--golden") == 0)
            o->golden = value;
        else if (strcmp(argv[i], "--kernels") == 0)
            o->kernels = value;
        else
            return 0;
        i++;
    }
    return o->root && (i < argc || o->kernels) && (o->golden || !o->refresh) ? i : 0;
}

static sf_code begin(check *c, sf_err *err) {
    SF_TRY(read_headers(c, "templates/snippets", "snippets", ".cuh", err));
    SF_TRY(read_headers(c, "runtime/device/cuda", "device/cuda", ".h", err));
    return sf_buf_printf(&c->table, err, "# NVRTC %s, %s\n%-44s %5s %8s %7s %6s %8s %4s %8s %8s %11s %10s\n",
                         c->nvrtc.build, c->o.arch, "# kernel", "regs", "barriers", "static", "grid",
                         "threads", "pdl", "dynamic", "cluster", "blocks/row", "workspace");
}

int main(int argc, char **argv) {
    static check c;
    sf_err err = {0};
    const int first = parse(argc, argv, &c.o);
    if (!first) {
        fprintf(stderr,
                "usage: %s --root DIR [--arch sm_90a] [--golden FILE [--refresh]] [--kernels DIR] "
                "[TEMPLATE...]\n",
                argv[0]);
        return 2;
    }
    if (sf_nvrtc_open(&c.nvrtc, &err) != SF_OK) {
        printf("skipped: %s\n", err.msg);
        return SKIPPED;
    }
    if (begin(&c, &err) != SF_OK)
        complain(&c, argv[0], &err);
    else {
        if (c.o.kernels) check_kernels(&c);
        for (int i = first; i < argc; i++)
            check_template(&c, argv[i]);
    }
    if (c.table.data) fputs(c.table.data, stdout);
    int rc = c.failed > 0;
    if (c.o.golden && !rc) rc = c.o.refresh ? write_golden(&c) : compare_golden(&c);
    for (int i = 0; i < c.n_headers; i++) {
        free((void *)(uintptr_t)c.headers[i].name);
        free((void *)(uintptr_t)c.headers[i].text);
    }
    sf_buf_fini(&c.table);
    sf_nvrtc_close(&c.nvrtc);
    return rc;
}
