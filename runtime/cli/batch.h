/* `run --input`: requests from lines, batched dynamically, answers as lines. */
#ifndef SF_CLI_BATCH_H
#define SF_CLI_BATCH_H

#include "cli/output.h"
#include "cli/setup.h"

/* What a run writes, open and locked before the weights are read; closed by who opened them. */
typedef struct sf_run_files {
    sf_output out, report; /* report.fd < 0: no report */
} sf_run_files;

/* Returns an exit code. */
int sf_cli_batch(sf_engine *e, const sf_api_model *m, const sf_cli_opts *o, sf_run_files *f);

/* What a run counted, for --report and the closing line. */
typedef struct sf_run_counts {
    int64_t requests, failed, prompt_tokens, output_tokens;
    double seconds;
} sf_run_counts;

/* Writes --report, where asked for, in place of what the file held. */
SF_CHECKED sf_code sf_cli_write_report(const sf_engine *e, sf_output *report, const sf_run_counts *c,
                                       sf_err *err);
/* "12 requests, ... tokens/s; 7 windows verified, 1 rollback" on stderr. */
void sf_cli_print_figures(const sf_engine *e, const sf_run_counts *c);

#endif
