#include "cli/warn.h"

#include "api/fields.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "cli/options.h"
#include "cli/setup.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *sf_cli_s(int64_t n) {
    return n == 1 ? "" : "s";
}

static bool told(const sf_warned *w, const char *name) {
    for (int i = 0; i < w->n_names; i++)
        if (strcmp(w->names[i], name) == 0) return true;
    return false;
}

static void warn_unknown(sf_warned *w, const char *key, unsigned kind, const char *source, int64_t line) {
    char name[sizeof w->names[0]];
    snprintf(name, sizeof name, "%s", key);
    sf_utf8_one_line(name);
    if (told(w, name)) return;
    if (w->n_names == SF_WARN_NAMES) {
        if (!w->more)
            fprintf(stderr, "steadfast: warning: %s:%lld: more unknown fields, not told of one by one\n",
                    source, (long long)line);
        w->more = true;
        return;
    }
    memcpy(w->names[w->n_names++], name, sizeof name);
    const char *near = sf_api_field_near(key, kind);
    fprintf(stderr,
            "steadfast: warning: %s:%lld: unknown field %s is ignored%s%s%s (--strict makes it an error)\n",
            source, (long long)line, name, near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

static void warn_fields(sf_warned *w, const sf_api_request *r, const char *source, int64_t line) {
    const char *key;
    json_t *v;
    w->lines++;
    json_object_foreach(r->body, key, v) {
        const sf_api_field *f = sf_api_field_find(key);
        if (!f || !(f->where & r->kind)) warn_unknown(w, key, r->kind, source, line);
    }
}

static void warn_clamped(sf_warned *w, const char *name, int wanted, int room, int context,
                         const char *source, int64_t line) {
    w->clamped = true;
    fputs("steadfast: warning: ", stderr);
    if (source) fprintf(stderr, "%s:%lld: ", source, (long long)line);
    fprintf(stderr, "%s is %d, but the context of %d leaves %d for the answer%s\n", name, wanted, context,
            room, source ? " (told once a run)" : "");
}

void sf_cli_warn_request(sf_warned *w, const sf_api_model *m, const sf_api_request *r, const char *source,
                         int64_t line) {
    if (r->ignored && source) warn_fields(w, r, source, line);
    int room = m->max_context - (int)r->prompts[0].len, wanted = r->params.max_tokens;
    if (wanted <= room || w->clamped) return;
    const char *name = !source                         ? "--max-tokens"
                       : r->max_completion_tokens >= 0 ? "max_completion_tokens"
                                                       : "max_tokens";
    warn_clamped(w, name, wanted, room, m->max_context, source, line);
}

void sf_cli_warn_total(const sf_warned *w) {
    if (w->lines > 0)
        fprintf(stderr, "steadfast: warning: %lld line%s with unknown fields\n", (long long)w->lines,
                sf_cli_s(w->lines));
}

void sf_cli_warn_env(void) {
    static const char head[] = "STEADFAST_";
    char names[SF_OPTS_MAX][64];
    const char *known[SF_OPTS_MAX + 3] = {"STEADFAST_DEBUG", "STEADFAST_BINARY"}; /* the latter: bench/ */
    int n = 2;
    for (int i = 0; i < sf_n_opts; i++)
        known[n++] = sf_opt_env(&sf_opts[i], names[i], sizeof names[i]);
    for (char **v = environ; *v; v++) {
        char name[64];
        if (strncmp(*v, head, sizeof head - 1) != 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*v, "="), *v);
        bool is_known = false;
        for (int i = 0; i < n && !is_known; i++)
            is_known = strcmp(known[i], name) == 0;
        if (is_known) continue;
        const char *near = sf_suggest(name, known);
        sf_cli_error(0, "warning: %s is set, and no flag has it%s%s%s", name, near ? ", did you mean " : "",
                     near ? near : "", near ? "?" : "");
    }
}
