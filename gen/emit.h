/* Output files, made in memory: kernels, sources.c (cuda), plan.c, plan.json, LOCK. A pure function of the
 * plan: no dates, hosts or absolute paths. */
#ifndef SF_GEN_EMIT_H
#define SF_GEN_EMIT_H

#include "plan.h"
#include "writer.h"

typedef struct sf_file {
    const char *path; /* relative to the output folder: "kernels/x.c" */
    const char *text;
    size_t len;
} sf_file;

typedef struct sf_files {
    int n;
    sf_file files[SF_KERNELS_MAX + 4];
} sf_files;

/* Every file of the plan, LOCK last. Lives in the arena. */
SF_CHECKED sf_code sf_emit(sf_arena *a, const sf_planned *p, sf_files **out, sf_err *err);

/* Parts of sf_emit. Each writes one file's text. */
void sf_emit_kernel(sf_writer *w, const sf_planned *p, int kernel);
void sf_emit_plan_c(sf_writer *w, const sf_planned *p);
/* CUDA: the texts of kernels and headers as C arrays, which plan.c declares by sf_put_source_name. */
void sf_emit_sources(sf_writer *w, const sf_planned *p);
/* The array of a kernel or of an included file: its name as an identifier, "_source" appended. */
void sf_put_source_name(sf_writer *w, const char *name);
void sf_emit_plan_json(sf_writer *w, const sf_planned *p);
/* Generator version, every input and every file of `files` with its hash. */
void sf_emit_lock(sf_writer *w, const sf_planned *p, const sf_files *files);

#endif
