#include "device/cuda/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *after(const char *line, const char *words) {
    const char *at = strstr(line, words);
    return at ? at + strlen(words) : NULL;
}

/* The number that stands before `unit` ("32 bytes smem"); 0 where there is none. */
static int number_before(const char *line, const char *unit) {
    const char *at = strstr(line, unit);
    if (!at) return 0;
    while (at > line && at[-1] == ' ')
        at--;
    const char *first = at;
    while (first > line && first[-1] >= '0' && first[-1] <= '9')
        first--;
    return first < at ? (int)strtol(first, NULL, 10) : 0;
}

static void raise_to(int *value, int seen) {
    if (seen > *value) *value = seen;
}

static void begin_entry(sf_cuda_report *r, const char *quoted) {
    if (r->n_entries == SF_CUDA_ENTRIES_MAX) return;
    sf_cuda_entry *e = r->entries + r->n_entries++;
    const char *end = strchr(quoted, '\'');
    snprintf(e->name, sizeof e->name, "%.*s", end ? (int)(end - quoted) : (int)strlen(quoted), quoted);
}

static void note_line(int *n, char *first, size_t size, const char *line) {
    if ((*n)++ == 0) snprintf(first, size, "%.*s", (int)size - 1, line);
}

/* ptxas writes "(C7510)" after the note's kind; "info    : (C7510) Potential Performance Loss: ..." */
static const char *wgmma_note(const char *line) {
    for (const char *at = line; (at = strstr(at, "(C75")); at++)
        if (at[4] >= '0' && at[4] <= '9' && at[5] >= '0' && at[5] <= '9' && at[6] == ')') return at;
    return NULL;
}

static void take_line(sf_cuda_report *r, const char *line) {
    const char *name = after(line, "Compiling entry function '");
    if (name) begin_entry(r, name);
    const char *note = wgmma_note(line);
    if (note)
        note_line(&r->notes, r->note, sizeof r->note, note);
    else if (strstr(line, ": warning") || strstr(line, "warning :"))
        note_line(&r->warnings, r->warning, sizeof r->warning, line);
    if (r->n_entries == 0) return;
    sf_cuda_entry *e = r->entries + r->n_entries - 1;
    raise_to(&e->stack, number_before(line, "bytes stack frame"));
    raise_to(&e->stack, number_before(line, "bytes lmem"));
    raise_to(&e->spill_stores, number_before(line, "bytes spill stores"));
    raise_to(&e->spill_loads, number_before(line, "bytes spill loads"));
    raise_to(&e->registers, number_before(line, "registers"));
    raise_to(&e->barriers, number_before(line, "barriers"));
    raise_to(&e->shared, number_before(line, "bytes smem"));
}

void sf_cuda_report_parse(sf_cuda_report *r, const char *log) {
    *r = (sf_cuda_report){0};
    char line[512];
    while (*log) {
        const size_t len = strcspn(log, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(len < sizeof line ? len : sizeof line - 1), log);
        take_line(r, line);
        log += len + (log[len] == '\n');
    }
}

sf_code sf_cuda_report_check(const sf_cuda_report *r, const char *kernel, sf_err *err) {
    if (r->n_entries == 0)
        return SF_FAIL(err, SF_UNSUPPORTED, "the compiler's log of kernel %s reports no kernel", kernel);
    for (int i = 0; i < r->n_entries; i++) {
        const sf_cuda_entry *e = r->entries + i;
        if (e->spill_stores || e->spill_loads)
            return SF_FAIL(err, SF_UNSUPPORTED,
                           "kernel %s spills registers (%d bytes stored, %d loaded), expected none", kernel,
                           e->spill_stores, e->spill_loads);
        if (e->stack)
            return SF_FAIL(err, SF_UNSUPPORTED, "kernel %s uses %d bytes of local memory, expected none",
                           kernel, e->stack);
    }
    if (r->notes) return SF_FAIL(err, SF_UNSUPPORTED, "kernel %s: ptxas says %s", kernel, r->note);
    return SF_OK;
}
