/* The CPU backend. */
#ifndef SF_DEVICE_CPU_CPU_H
#define SF_DEVICE_CPU_CPU_H

#include "device/device.h"

struct sf_weights;

typedef struct sf_cpu_config {
    int threads;     /* 1..256 */
    const char *isa; /* as sf_cpu_isa_pick takes it */
    int n_pages;
} sf_cpu_config;

/* Weights are borrowed and outlive the device. Errors: those of sf_cpu_isa_pick, SF_UNSUPPORTED (a plan
 * that does not hold together), SF_NOMEM (with the size asked for). */
SF_CHECKED sf_code sf_cpu_open(const sf_plan *plan, const struct sf_weights *weights,
                               const sf_cpu_config *cfg, sf_device **out, sf_err *err);

/* The best instruction set both this machine and the plan have. */
sf_isa sf_cpu_isa_best(const sf_plan *plan);
bool sf_cpu_isa_here(sf_isa isa);    /* does this machine run it */
const char *sf_isa_name(sf_isa isa); /* the one list of names; they are the build's too */
bool sf_isa_find(const char *name, sf_isa *out);
/* name is one of those names; "auto" or NULL: the best set. Needs no weights, so that a wrong name can be
 * told before they are loaded. Errors: SF_INVALID (no such name), SF_UNSUPPORTED when the machine or the
 * build lacks the set; the message lists what there is. */
SF_CHECKED sf_code sf_cpu_isa_pick(const sf_plan *plan, const char *name, sf_isa *out, sf_err *err);

#endif
