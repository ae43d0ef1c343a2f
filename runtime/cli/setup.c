#include "cli/setup.h"

#include "api/json.h"
#include "base/utf8.h"
#include "cli/info_cuda.h"
#include "device/cpu/cpu.h"
#include "device/cuda/cuda.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sf_cli_error(int code, const char *fmt, ...) {
    char text[1200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "steadfast: %s\n", sf_utf8_one_line(text));
    return code;
}

int sf_cli_report(const sf_err *err) {
    char text[640];
    sf_err_format(err, text, sizeof text);
    bool usage = (err->code == SF_INVALID || err->code == SF_UNSUPPORTED) && !err->user.file;
    if (!usage) return sf_cli_error(SF_EXIT_FAILED, "%s", text);
    char flags[800];
    return sf_cli_error(SF_EXIT_USAGE, "%s", sf_opt_message(text, flags, sizeof flags));
}

void sf_cli_engine_config(const sf_cli_opts *o, sf_engine_config *out) {
    sf_engine_config_default(out);
    out->weights = o->weights;
    out->random = o->random;
    out->random_seed = o->random_seed;
    out->threads = o->threads;
    out->isa = o->isa;
    out->gpu = o->gpu;
    out->kernel_cache = o->kernel_cache;
    out->kv_pages = o->kv_pages;
    out->max_context = o->max_model_len;
    out->max_seqs = o->max_num_seqs;
    out->window = o->window;
    out->verify_wait = o->verify_wait;
    out->verify_group = o->verify_group;
    out->prefill_chunk = o->prefill_chunk;
    out->prefill_split = o->prefill_split;
    out->max_rows = o->max_num_batched_tokens;
    out->max_queue = o->max_queue;
    out->policy = o->policy;
    out->chat_template = o->chat_template;
    out->inject_offset = o->debug_inject;
    out->progress = true;
    if (o->debug_fault) {
        out->wrap_device = sf_fault_device;
        out->wrap_ctx = (void *)(uintptr_t)&o->debug_fault;
    }
}

/* The engine runs without it, so this is no error. */
static void tell_library(const sf_engine *e) {
    const sf_device *cuda = sf_engine_cuda(e);
    if (!cuda) return;
    const sf_cuda_start s = sf_cuda_start_get(cuda);
    sf_info_cuda_library_note(&s, stderr);
}

int sf_cli_engine_open(const sf_plan *plan, const sf_engine_config *c, sf_engine **out) {
    if (!c->weights && !c->random) {
        return sf_cli_error(SF_EXIT_USAGE, "no weights: give --weights FILE%s",
                            c->text_only ? "" : " or --random-weights SEED");
    }
    sf_err err;
    sf_isa isa;
    sf_code rc = SF_OK;
    /* Told before the weights are loaded, which may take long. */
    if (!c->text_only && strcmp(plan->backend, "cpu") == 0) rc = sf_cpu_isa_pick(plan, c->isa, &isa, &err);
    if (rc == SF_OK) rc = sf_engine_open(plan, c, out, &err);
    if (rc != SF_OK) return sf_cli_report(&err);
    tell_library(*out);
    return SF_EXIT_OK;
}

void sf_cli_api_model(const sf_plan *plan, const sf_engine *e, const sf_cli_opts *o, sf_api_model *out) {
    int context = o->max_model_len ? o->max_model_len : plan->max_context;
    *out = (sf_api_model){.vocab = plan->model.vocab,
                          .max_context = context,
                          .bos = plan->model.bos,
                          .add_bos = plan->model.add_bos,
                          .date = o->date,
                          .deterministic_default = o->deterministic_default,
                          .strict = o->strict,
                          .seed = o->seed,
                          .seed_given = o->seed_given};
    if (!e) return;
    out->tokenizer = sf_engine_tokenizer(e);
    out->chat = sf_engine_chat(e);
    out->chat_missing = sf_engine_chat_missing(e);
    out->fingerprint = sf_engine_fingerprint(e);
}

static void push_message(json_t *list, const char *role, const char *text, bool *ok) {
    json_t *m = json_object();
    sf_json_put(m, "role", json_string(role), ok);
    sf_json_put(m, "content", json_string(text), ok);
    sf_json_push(list, m, ok);
}

int sf_cli_check_chat(const sf_cli_opts *o) {
    if (o->system && !o->chat) return sf_cli_error(SF_EXIT_USAGE, "--system needs --chat");
    if (o->date && !sf_chat_date_valid(o->date))
        return sf_cli_error(SF_EXIT_USAGE, "--date is \"%s\", expected YYYY-MM-DD", o->date);
    return SF_EXIT_OK;
}

json_t *sf_cli_messages(const sf_cli_opts *o) {
    json_t *list = json_array();
    bool ok = list != NULL;
    if (o->system) push_message(list, "system", o->system, &ok);
    push_message(list, "user", o->chat, &ok);
    return sf_json_done(list, ok);
}

/* A signal handler can reach nothing but a global. */
static volatile sig_atomic_t seen_signal;

static void on_signal(int number) {
    seen_signal = number;
}

void sf_cli_signals(void) {
    struct sigaction once = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, hup;
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
    if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN) /* nohup's wish stands */
        sigaction(SIGHUP, &once, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
}

int sf_cli_signalled(void) {
    return (int)seen_signal;
}
