/* What the verbs share: opening the engine from the flags, errors on stderr, signals. */
#ifndef SF_CLI_SETUP_H
#define SF_CLI_SETUP_H

#include "api/request.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "engine/engine.h"

int sf_verb_serve(const sf_plan *plan, const sf_cli_opts *o);
int sf_verb_run(const sf_plan *plan, const sf_cli_opts *o);
int sf_verb_audit(const sf_plan *plan, const sf_cli_opts *o);
int sf_verb_bench(const sf_plan *plan, const sf_cli_opts *o);
int sf_verb_selftest(const sf_plan *plan, const sf_cli_opts *o);
int sf_verb_info(const sf_plan *plan, const sf_cli_opts *o);
int sf_verb_tokenize(const sf_plan *plan, const sf_cli_opts *o);

/* "steadfast: message" on stderr; returns code, for `return sf_cli_error(...)`. */
int sf_cli_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for an error record; returns the exit code it means (a bad setting is wrong usage). */
int sf_cli_report(const sf_err *err);

void sf_cli_engine_config(const sf_cli_opts *o, sf_engine_config *out);
/* Opens the engine, or says why not; returns an exit code. */
int sf_cli_engine_open(const sf_plan *plan, const sf_engine_config *c, sf_engine **out);
/* The model as requests need it. e may be NULL: then without tokenizer and chat, for checking fields early.
 */
void sf_cli_api_model(const sf_plan *plan, const sf_engine *e, const sf_cli_opts *o, sf_api_model *out);
/* Flags about chats that make no sense together or alone; returns an exit code. */
int sf_cli_check_chat(const sf_cli_opts *o);
/* [{"role": "user", "content": text}], with a system message before it. NULL: not UTF-8, or out of memory. */
json_t *sf_cli_messages(const sf_cli_opts *o);

/* SIGINT, SIGTERM and SIGHUP are noted once and the second one kills; SIGPIPE and SIGXFSZ become errors of
 * write. */
void sf_cli_signals(void);
int sf_cli_signalled(void); /* 0, or the signal's number */

/* fault.c: a device that flips one bit of the log-probabilities of pinned passes with ctx (an int *) rows or
 * more, over another one. */
sf_device *sf_fault_device(void *ctx, sf_device *inner);

#endif
