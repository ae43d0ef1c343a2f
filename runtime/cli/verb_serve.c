#include "base/buf.h"
#include "cli/setup.h"
#include "engine/selftest.h"
#include "serve/serve.h"

#include <string.h>

#define KEY_FILE_MAX (1 << 20) /* bytes */
#define KEYS_MAX     4096

typedef struct keys {
    sf_buf text; /* the file's, cut into lines */
    const char *list[SF_API_KEYS_MAX + KEYS_MAX];
    int n;
} keys;

/* Without blanks at its ends. */
static char *trim(char *line) {
    line += strspn(line, " \t");
    size_t len = strlen(line);
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
        len--;
    line[len] = 0;
    return line;
}

static sf_code read_keys(const sf_cli_opts *o, keys *k, sf_err *err) {
    for (int i = 0; i < o->n_api_keys; i++)
        k->list[k->n++] = o->api_keys[i];
    if (!o->api_key_file) return SF_OK;
    SF_TRY(sf_buf_read_file(&k->text, o->api_key_file, KEY_FILE_MAX, err));
    const int before = k->n;
    char *rest = NULL;
    for (char *line = strtok_r(k->text.data, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        const char *key = trim(line);
        if (!*key) continue;
        if (k->n - before == KEYS_MAX)
            return SF_FAIL(err, SF_INVALID, "api_key_file %s has more than %d keys", o->api_key_file,
                           KEYS_MAX);
        k->list[k->n++] = key;
    }
    /* An empty file must not open the server to everybody. */
    if (k->n == before) return SF_FAIL(err, SF_INVALID, "api_key_file %s has no key", o->api_key_file);
    return SF_OK;
}

static int check(const sf_plan *plan, const sf_cli_opts *o) {
    if (strcmp(o->log_format, "text") != 0 && strcmp(o->log_format, "json") != 0)
        return sf_cli_error(SF_EXIT_USAGE, "--log-format is \"%s\", expected text or json", o->log_format);
    if (!o->ssl_certfile != !o->ssl_keyfile)
        return sf_cli_error(SF_EXIT_USAGE, "--ssl-certfile and --ssl-keyfile need each other");
    const int least = sf_selftest_probe_pages(plan);
    if (o->kv_pages > 0 && o->kv_pages < least)
        return sf_cli_error(SF_EXIT_USAGE,
                            "--kv-pages is %d, expected at least %d: the probe of the start-up needs them",
                            o->kv_pages, least);
    return sf_cli_check_chat(o);
}

/* The port answers from here on, so that whoever waits for /health sees the loading too. */
static int serve(const sf_plan *plan, const sf_cli_opts *o, const sf_serve_config *cfg) {
    sf_engine_config c;
    sf_engine *e = NULL;
    sf_server *s = NULL;
    sf_err err;
    sf_cli_engine_config(o, &c);
    if (sf_server_create(cfg, &s, &err) != SF_OK) return sf_cli_report(&err);
    int code = sf_cli_engine_open(plan, &c, &e);
    if (code == SF_EXIT_OK) {
        const char *refused = sf_engine_sched_config(e)->refuse_deterministic;
        if (refused) sf_cli_error(0, "warning: deterministic requests are refused: %s", refused);
        sf_api_model m;
        sf_cli_api_model(plan, e, o, &m);
        if (sf_server_run(s, e, &m, &err) != SF_OK) code = sf_cli_report(&err);
    }
    sf_server_destroy(s);
    sf_engine_close(e);
    return code;
}

int sf_verb_serve(const sf_plan *plan, const sf_cli_opts *o) {
    static keys k; /* large */
    sf_err err;
    int code = check(plan, o);
    if (code != SF_EXIT_OK) return code;
    if (!o->weights && !o->random)
        return sf_cli_error(SF_EXIT_USAGE, "no weights: give --weights FILE or --random-weights SEED");
    if (read_keys(o, &k, &err) != SF_OK) {
        code = sf_cli_report(&err);
    } else {
        const sf_serve_config cfg = {.host = o->host,
                                     .port = o->port,
                                     .api_keys = k.list,
                                     .n_api_keys = k.n,
                                     .model = o->served_model_name ? o->served_model_name : plan->model.name,
                                     .ssl_cert = o->ssl_certfile,
                                     .ssl_key = o->ssl_keyfile,
                                     .allowed_origin = o->allowed_origin,
                                     .version = SF_VERSION,
                                     .log_json = strcmp(o->log_format, "json") == 0,
                                     .log_prompts = o->log_prompts,
                                     .shutdown_timeout_s = o->shutdown_timeout,
                                     .max_context = o->max_model_len ? o->max_model_len : plan->max_context,
                                     .receive_timeout_s = o->receive_timeout};
        code = serve(plan, o, &cfg);
    }
    sf_buf_fini(&k.text);
    return code;
}
