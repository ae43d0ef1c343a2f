/* The plan for a person. */
#ifndef SF_GEN_EXPLAIN_H
#define SF_GEN_EXPLAIN_H

#include "plan.h"
#include "writer.h"

/* Shapes, memory, kernels with their order, and per class a table of expected time and roofline share. */
void sf_explain(sf_writer *w, const sf_planned *p);

#endif
