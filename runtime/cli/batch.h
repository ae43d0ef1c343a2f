/* `run --input`: requests from lines, batched dynamically, answers as lines. */
#ifndef SF_CLI_BATCH_H
#define SF_CLI_BATCH_H

#include "cli/setup.h"

/* Returns an exit code. */
int sf_cli_batch(sf_engine *e, const sf_api_model *m, const sf_cli_opts *o);

/* What a run counted, for --report and the closing line. */
typedef struct sf_run_counts {
    int64_t requests, failed, prompt_tokens, output_tokens;
    double seconds;
} sf_run_counts;

/* Writes --report, where asked for. */
SF_CHECKED sf_code sf_cli_write_report(const sf_engine *e, const sf_cli_opts *o, const sf_run_counts *c,
                                       sf_err *err);
/* "12 requests, ... tokens/s; 7 windows verified, 1 rollback" on stderr. */
void sf_cli_print_figures(const sf_engine *e, const sf_run_counts *c);

#endif
