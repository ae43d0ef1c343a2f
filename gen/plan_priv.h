/* Shared by the planner's sources. */
#ifndef SF_GEN_PLAN_PRIV_H
#define SF_GEN_PLAN_PRIV_H

#include "plan.h"

/* The values of t's parameters for an op at a row count: sources, then tuned values, then defaults. The rows
 * count by their bucket only. */
SF_CHECKED sf_code sf_params_resolve(const sf_inputs *in, const sf_op_spec *op, int rows,
                                     const sf_template *t, sf_value *values, sf_err *err);
/* Every tuned value names a template and a parameter that has no source. */
SF_CHECKED sf_code sf_params_check_tunes(const sf_inputs *in, sf_err *err);

/* Fills the descriptor table's names and files. */
SF_CHECKED sf_code sf_plan_name_kernels(sf_arena *a, const sf_inputs *in, const sf_ops *ops,
                                        const sf_planned_kernel *kernels, sf_kernel *table, int n,
                                        sf_err *err);
/* gen_hash (all inputs) and pinned_hash (expanded pinned kernels, the snippets they include, the schedule).
 */
SF_CHECKED sf_code sf_plan_hashes(sf_arena *a, sf_planned *p, sf_err *err);

#endif
