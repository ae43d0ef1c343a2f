/* Cost model: a roofline of the measured bandwidth and FLOP rate (Williams, Waterman, Patterson, 2009):
 * time = max(bytes / bandwidth, FLOPs / rate). Bytes: a weight is read once a pass, an activation once per
 * row. The KV read by attention grows with the context and is left out. */
#ifndef SF_GEN_COST_H
#define SF_GEN_COST_H

#include "ops.h"

/* Bytes of one instance of a weight slot, padding included. */
uint64_t sf_cost_weight_bytes(const sf_weight_desc *w);
/* Fills weight_bytes, row_bytes and row_flops of every op. */
void sf_cost_fill(const sf_model_desc *m, sf_ops *ops);

typedef struct sf_cost {
    double bytes, flops, us;
    bool compute_bound;
    double peak_share; /* of the measured FLOP rate, that this op can reach at its intensity; 0..1 */
} sf_cost;

/* One launch of an op at `rows` rows. */
sf_cost sf_cost_op(const sf_machine *mc, const sf_op_desc *op, sf_class cls, int rows);
/* Rows and launches of an op in a pass of `rows` rows: head ops see logit rows, layer ops run per layer. */
int sf_cost_rows(const sf_machine *mc, const sf_op_desc *op, int rows);
int sf_cost_launches(const sf_model_desc *m, const sf_op_desc *op);
/* A whole pass, microseconds. */
double sf_cost_pass_us(const sf_machine *mc, const sf_model_desc *m, const sf_ops *ops, sf_class cls,
                       int rows);

#endif
