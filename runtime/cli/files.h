/* The files of a run, before any of them is opened. */
#ifndef SF_CLI_FILES_H
#define SF_CLI_FILES_H

#include "cli/options.h"

/* Refuses a run that would write over what it reads (weights, chat template, input) or write two things to
 * one file: the same device and inode, whatever the path, or the same place where nothing is yet. stdin and
 * stdout count where the run uses them. Returns an exit code; the message names both. */
int sf_cli_check_files(const sf_cli_opts *o);

#endif
