/* The command line: `steadfast VERB FLAGS`. */
#ifndef SF_CLI_CLI_H
#define SF_CLI_CLI_H

#include "device/plan.h"

#define SF_VERSION "0.1.0"

/* Exit codes. A run ended by SIGINT, SIGTERM or SIGHUP exits with 128 plus the signal's number. */
enum { SF_EXIT_OK = 0, SF_EXIT_FAILED = 1, SF_EXIT_USAGE = 2 };

int sf_cli_main(const sf_plan *plan, int argc, char **argv);

#endif
