#include "device/cuda/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "device/cuda/dl.h"

/* NVRTC's own codes that we tell apart. */
enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_OUT_OF_MEMORY = 1 };

#define MAJOR_MIN 12 /* the first that knows sm_90a */

static const sf_dl_symbol symbols[] = {
    {"nvrtcVersion", offsetof(sf_nvrtc, nvrtcVersion)},
    {"nvrtcGetErrorString", offsetof(sf_nvrtc, nvrtcGetErrorString)},
    {"nvrtcCreateProgram", offsetof(sf_nvrtc, nvrtcCreateProgram)},
    {"nvrtcDestroyProgram", offsetof(sf_nvrtc, nvrtcDestroyProgram)},
    {"nvrtcCompileProgram", offsetof(sf_nvrtc, nvrtcCompileProgram)},
    {"nvrtcGetCUBINSize", offsetof(sf_nvrtc, nvrtcGetCUBINSize)},
    {"nvrtcGetCUBIN", offsetof(sf_nvrtc, nvrtcGetCUBIN)},
    {"nvrtcGetPTXSize", offsetof(sf_nvrtc, nvrtcGetPTXSize)},
    {"nvrtcGetPTX", offsetof(sf_nvrtc, nvrtcGetPTX)},
    {"nvrtcGetProgramLogSize", offsetof(sf_nvrtc, nvrtcGetProgramLogSize)},
    {"nvrtcGetProgramLog", offsetof(sf_nvrtc, nvrtcGetProgramLog)},
};

typedef int size_fn(sf_nvrtc_handle, size_t *);
typedef int text_fn(sf_nvrtc_handle, char *);

static sf_code fail(const sf_nvrtc *n, int r, const char *call, sf_err *err) {
    return SF_FAIL(err, r == NVRTC_ERROR_OUT_OF_MEMORY ? SF_NOMEM : SF_DEVICE, "%s: %s (%d)", call,
                   n->nvrtcGetErrorString(r), r);
}

/* One of NVRTC's pairs of calls that give a size, then so many bytes. */
static sf_code get(const sf_nvrtc *n, sf_nvrtc_handle p, size_fn *size_of, text_fn *text_of, const char *call,
                   sf_buf *to, sf_err *err) {
    size_t size = 0;
    int r = size_of(p, &size);
    if (r != NVRTC_SUCCESS) return fail(n, r, call, err);
    SF_TRY(sf_buf_reserve(to, size, err));
    r = text_of(p, to->data + to->len);
    if (r != NVRTC_SUCCESS) return fail(n, r, call, err);
    to->len += size;
    to->data[to->len] = 0;
    return SF_OK;
}

/* Takes what stands between the words and the end of their line. */
static void line_after(const char *text, const char *words, char *out, size_t size) {
    const char *at = strstr(text, words);
    if (!at) return;
    at += strlen(words);
    snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
}

/* nvrtcVersion stops at the minor number; the head of the PTX of an empty program tells builds apart. */
static sf_code find_build(sf_nvrtc *n, sf_err *err) {
    static const char *const options[] = {"--gpu-architecture=compute_90"};
    sf_nvrtc_handle p = NULL;
    int r = n->nvrtcCreateProgram(&p, "", "empty.cu", 0, NULL, NULL);
    if (r != NVRTC_SUCCESS) return fail(n, r, "nvrtcCreateProgram", err);
    sf_buf ptx = {0};
    char release[48] = "", id[32] = "";
    sf_code rc = SF_OK;
    r = n->nvrtcCompileProgram(p, 1, options);
    if (r != NVRTC_SUCCESS) {
        rc = fail(n, r, "nvrtcCompileProgram of an empty program", err);
        goto done;
    }
    rc = get(n, p, n->nvrtcGetPTXSize, n->nvrtcGetPTX, "nvrtcGetPTX", &ptx, err);
    if (rc != SF_OK) goto done;
    line_after(ptx.data, "compilation tools, release ", release, sizeof release);
    line_after(ptx.data, "Compiler Build ID: ", id, sizeof id);
    if (!release[0] || !id[0]) {
        rc = SF_FAIL(err, SF_UNSUPPORTED, "NVRTC %d.%d does not say which build it is", n->major, n->minor);
        goto done;
    }
    snprintf(n->build, sizeof n->build, "%s, %s", release, id);
done:
    n->nvrtcDestroyProgram(&p);
    sf_buf_fini(&ptx);
    return rc;
}

sf_code sf_nvrtc_open(sf_nvrtc *n, sf_err *err) {
    /* The plain names are the loader's to find; a CUDA toolkit that it does not know stands at its usual
     * place. */
    static const char *const names[] = {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13",
                                        "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.12", NULL};
    return sf_nvrtc_open_names(n, names, err);
}

sf_code sf_nvrtc_open_names(sf_nvrtc *n, const char *const *names, sf_err *err) {
    sf_nvrtc o = {0};
    SF_TRY(sf_dl_open(names, symbols, (int)(sizeof symbols / sizeof *symbols), &o, &o.lib, err));
    sf_code rc = SF_OK;
    const int r = o.nvrtcVersion(&o.major, &o.minor);
    if (r != NVRTC_SUCCESS)
        rc = fail(&o, r, "nvrtcVersion", err);
    else if (o.major < MAJOR_MIN)
        rc = SF_FAIL(err, SF_UNSUPPORTED, "NVRTC is %d.%d, expected %d.0 or later", o.major, o.minor,
                     MAJOR_MIN);
    else
        rc = find_build(&o, err);
    if (rc != SF_OK) {
        sf_dl_close(o.lib);
        return rc;
    }
    *n = o;
    return SF_OK;
}

void sf_nvrtc_close(sf_nvrtc *n) {
    sf_dl_close(n->lib);
    *n = (sf_nvrtc){0};
}

void sf_cubin_fini(sf_cubin *c) {
    sf_buf_fini(&c->code);
    sf_buf_fini(&c->log);
    *c = (sf_cubin){0};
}

int sf_nvrtc_options(const sf_nvrtc *n, const char *arch, char arch_option[64],
                     const char *options[SF_NVRTC_OPTIONS_MAX]) {
    int count = 0;
    snprintf(arch_option, 64, "--gpu-architecture=%.32s", arch);
    options[count++] = arch_option;
    options[count++] = "--std=c++17";
    options[count++] = "-default-device";
    options[count++] = "--fmad=false";        /* kernels fuse by name where they mean to */
    options[count++] = "--no-source-include"; /* nothing enters that the cache's key does not hold */
    options[count++] = "--ptxas-options=-v";
    /* From 12.9 on NVRTC has a disk cache of its own: nobody checks its files, and a hit brings no report. */
    if (n->major > 12 || (n->major == 12 && n->minor >= 9)) options[count++] = "--no-cache";
    return count;
}

/* The place in the caller's words, whose memory lasts as long as an sf_err needs it. */
static sf_loc place_of(const char *file, size_t len, int line, const sf_cuda_source *source,
                       const sf_cuda_header *headers, int n_headers) {
    if (strlen(source->file) == len && memcmp(file, source->file, len) == 0)
        return (sf_loc){source->file, line, 0};
    if (source->template && strlen(source->template) == len && memcmp(file, source->template, len) == 0)
        return (sf_loc){source->template, line, 0};
    for (int i = 0; i < n_headers; i++)
        if (strlen(headers[i].name) == len && memcmp(file, headers[i].name, len) == 0)
            return (sf_loc){headers[i].name, line, 0};
    return (sf_loc){0};
}

/* Reads "FILE(LINE): error: ..." (or "catastrophic error"); text points behind the place. */
static bool error_line(const char *line, size_t len, const char **text, size_t *file_len, int *number) {
    const char *mark = memmem(line, len, "error: ", 7);
    if (!mark) return false;
    *file_len = 0;
    *number = 0;
    *text = mark + 7;
    const char *open = memchr(line, '(', (size_t)(mark - line));
    if (open && strtol(open + 1, NULL, 10) > 0) {
        *file_len = (size_t)(open - line);
        *number = (int)strtol(open + 1, NULL, 10);
    }
    return true;
}

/* The first error's place, and as many of the errors' texts as the record holds. Where the log names none
 * (too much shared memory), its last lines are all there is to say. */
static sf_code fail_compile(const sf_nvrtc *n, int r, const char *arch, const char *log,
                            const sf_cuda_source *source, const sf_cuda_header *headers, int n_headers,
                            sf_err *err) {
    char words[300] = "";
    size_t used = 0;
    sf_loc at = {0};
    bool first = true;
    for (const char *line = log; *line && used + 1 < sizeof words;) {
        const size_t len = strcspn(line, "\n");
        const char *text = NULL;
        size_t file_len = 0;
        int number = 0;
        if (error_line(line, len, &text, &file_len, &number)) {
            if (first) at = place_of(line, file_len, number, source, headers, n_headers);
            /* a place that the record cannot hold, or a further one, stays in the text */
            const char *from = first && at.file ? text : line;
            const int wrote = snprintf(words + used, sizeof words - used, "%s%.*s", first ? "" : "; ",
                                       (int)(line + len - from), from);
            used += wrote > 0 ? (size_t)wrote : 0;
            first = false;
        }
        line += len + (line[len] == '\n');
    }
    if (first) {
        const size_t len = strlen(log), tail = len < 250 ? len : 250;
        snprintf(words, sizeof words, "no error is named; the log ends: %s", log + len - tail);
    }
    return SF_FAIL_AT(err, SF_FORMAT, at, "kernel %s does not compile for %s (%s): %s", source->name, arch,
                      n->nvrtcGetErrorString(r), words);
}

sf_code sf_nvrtc_compile(const sf_nvrtc *n, const char *arch, const sf_cuda_source *source,
                         const sf_cuda_header *headers, int n_headers, sf_cubin *out, sf_err *err) {
    sf_nvrtc_handle p = NULL;
    sf_cubin c = {0};
    const char *options[SF_NVRTC_OPTIONS_MAX];
    char arch_option[64];
    const double start = sf_now_s();
    int r = NVRTC_SUCCESS;
    sf_code rc = SF_OK;
    const char **tables = calloc(2 * (size_t)n_headers + 1, sizeof *tables);
    if (!tables) return SF_FAIL(err, SF_NOMEM, "no memory for %d headers", n_headers);
    for (int i = 0; i < n_headers; i++) {
        tables[i] = headers[i].text;
        tables[n_headers + i] = headers[i].name;
    }
    r = n->nvrtcCreateProgram(&p, source->text, source->file, n_headers, tables, tables + n_headers);
    if (r != NVRTC_SUCCESS) {
        rc = fail(n, r, "nvrtcCreateProgram", err);
        goto done;
    }
    r = n->nvrtcCompileProgram(p, sf_nvrtc_options(n, arch, arch_option, options), options);
    rc = get(n, p, n->nvrtcGetProgramLogSize, n->nvrtcGetProgramLog, "nvrtcGetProgramLog", &c.log, err);
    if (rc != SF_OK) goto done;
    if (r != NVRTC_SUCCESS) {
        rc = fail_compile(n, r, arch, c.log.data, source, headers, n_headers, err);
        goto done;
    }
    rc = get(n, p, n->nvrtcGetCUBINSize, n->nvrtcGetCUBIN, "nvrtcGetCUBIN", &c.code, err);
    if (rc != SF_OK) goto done;
    sf_cuda_report_parse(&c.report, c.log.data);
    c.seconds = sf_now_s() - start;
    *out = c;
    c = (sf_cubin){0};
done:
    if (p) n->nvrtcDestroyProgram(&p);
    sf_cubin_fini(&c);
    free(tables);
    return rc;
}
