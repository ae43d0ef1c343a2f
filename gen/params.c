#include "plan_priv.h"

#include "suggest.h"

#include <stdio.h>
#include <string.h>

/* A source's value: a number, or a word for an enum. */
typedef struct source {
    const char *word;
    bool integer;
    bool clamped; /* into the parameter's range */
    double number;
} source;

static bool op_source(const char *field, const sf_op_spec *op, source *out) {
    *out = (source){.integer = true};
    if (strcmp(field, "n") == 0)
        out->number = op->desc.n;
    else if (strcmp(field, "k") == 0)
        out->number = op->desc.k;
    else if (strcmp(field, "epilogue") == 0)
        out->word = sf_epilogue_name(op->epilogue);
    else if (strcmp(field, "has_bias") == 0)
        out->number = op->desc.bias >= 0;
    else if (strcmp(field, "input_rows") == 0)
        out->number = op->gathered;
    else if (strcmp(field, "logit_rows") == 0)
        out->number = op->desc.scope == SF_SCOPE_HEAD;
    else if (strcmp(field, "tile") == 0)
        out->number = op->tile;
    else
        return false;
    return true;
}

static bool find_source(const sf_inputs *in, const sf_op_spec *op, int rows, const char *from, source *out) {
    const sf_model_desc *m = &in->model.desc;
    const sf_machine *c = &in->machine;
    const struct {
        const char *name;
        bool integer;
        double number;
    } table[] = {{"model.vocab", true, m->vocab},
                 {"model.hidden", true, m->hidden},
                 {"model.layers", true, m->layers},
                 {"model.heads", true, m->heads},
                 {"model.kv_heads", true, m->kv_heads},
                 {"model.head_dim", true, m->head_dim},
                 {"model.intermediate", true, m->intermediate},
                 {"model.norm_eps", false, (double)m->norm_eps},
                 {"model.qk_norm", true, m->qk_norm},
                 {"config.kv_page", true, c->kv_page},
                 {"config.max_rows", true, c->max_rows},
                 {"config.max_logit_rows", true, c->max_logit_rows},
                 {"config.sms", true, c->sms},
                 {"config.few_rows", true, SF_FEW_ROWS},
                 {"config.context", true, c->context < m->context ? c->context : m->context}};
    if (strncmp(from, "op.", 3) == 0) return op_source(from + 3, op, out);
    if (strcmp(from, "bucket.rows") == 0) {
        *out = (source){.integer = true, .clamped = true, .number = sf_machine_bucket(c, rows)};
        return true;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, from) == 0) {
            *out = (source){.integer = table[i].integer, .number = table[i].number};
            return true;
        }
    return false;
}

static sf_code from_source(const sf_inputs *in, const sf_op_spec *op, int rows, const sf_template *t,
                           const sf_param *p, sf_value *out, sf_err *err) {
    source s = {0};
    char msg[160];
    if (!find_source(in, op, rows, p->from.text, &s))
        return sf_template_fail(
            t, p->line, p->from.col, SF_INVALID, err,
            "the source '%.40s' is unknown, expected op.*, model.*, config.* or bucket.rows", p->from.text);
    bool fits = s.word ? p->kind == SF_PARAM_ENUM : p->kind == (s.integer ? SF_PARAM_INT : SF_PARAM_FLOAT);
    if (!fits)
        return sf_template_fail(t, p->line, p->from.col, SF_INVALID, err, "%s is %s, expected the type of %s",
                                p->from.text,
                                s.word      ? "a word"
                                : s.integer ? "an integer"
                                            : "a float",
                                p->name.text);
    if (s.word) {
        if (sf_param_value(p, s.word, out, msg, sizeof msg) == SF_OK) return SF_OK;
        return sf_template_fail(t, p->line, p->name.col, SF_INVALID, err, "parameter %s of op %s is %s",
                                p->name.text, op->desc.name, msg);
    }
    if (s.clamped && p->ranged) s.number = s.number < p->lo ? p->lo : s.number > p->hi ? p->hi : s.number;
    *out = p->kind == SF_PARAM_INT ? (sf_value){.i = (int64_t)s.number} : (sf_value){.f = s.number};
    if (sf_param_in_range(p, *out, msg, sizeof msg)) return SF_OK;
    return sf_template_fail(t, p->line, p->name.col, SF_INVALID, err, "parameter %s of op %s is %s",
                            p->name.text, op->desc.name, msg);
}

static const sf_tune *find_tune(const sf_machine *c, const char *template, const char *param) {
    for (int i = 0; i < c->n_tunes; i++)
        if (strcmp(c->tunes[i].template, template) == 0 && strcmp(c->tunes[i].param, param) == 0)
            return &c->tunes[i];
    return NULL;
}

sf_code sf_params_resolve(const sf_inputs *in, const sf_op_spec *op, int rows, const sf_template *t,
                          sf_value *values, sf_err *err) {
    for (int i = 0; i < t->n_params; i++) {
        const sf_param *p = &t->params[i];
        const sf_tune *tune = find_tune(&in->machine, t->name, p->name.text);
        char msg[160];
        values[i] = p->def;
        if (p->from.text) {
            SF_TRY(from_source(in, op, rows, t, p, &values[i], err));
        } else if (tune && sf_param_value(p, tune->value, &values[i], msg, sizeof msg) != SF_OK) {
            return SF_FAIL_AT(err, SF_INVALID, tune->value_loc, "%s of template %s is %s", p->name.text,
                              t->name, msg);
        }
    }
    return SF_OK;
}

static sf_code unknown_template(const sf_inputs *in, const sf_tune *tune, sf_err *err) {
    const char *names[SF_TEMPLATES_MAX + 1] = {NULL};
    for (int i = 0; i < in->n_templates; i++)
        names[i] = in->templates[i]->name;
    const char *close = sf_suggest(tune->template, names);
    if (close)
        return SF_FAIL_AT(err, SF_INVALID, tune->template_loc,
                          "template '%.64s' is unknown, did you mean '%s'?", tune->template, close);
    return SF_FAIL_AT(err, SF_INVALID, tune->template_loc,
                      "template '%.64s' is unknown, expected one of templates/%s", tune->template,
                      in->machine.backend);
}

sf_code sf_params_check_tunes(const sf_inputs *in, sf_err *err) {
    for (int i = 0; i < in->machine.n_tunes; i++) {
        const sf_tune *tune = &in->machine.tunes[i];
        const sf_template *t = NULL;
        for (int j = 0; j < in->n_templates; j++)
            if (strcmp(in->templates[j]->name, tune->template) == 0) t = in->templates[j];
        if (!t) return unknown_template(in, tune, err);
        const sf_param *p = sf_param_find(t, tune->param, NULL);
        if (!p)
            return SF_FAIL_AT(err, SF_INVALID, tune->param_loc, "template %s has no parameter '%.64s'",
                              t->name, tune->param);
        if (p->from.text)
            return SF_FAIL_AT(err, SF_INVALID, tune->param_loc,
                              "parameter %s of template %s comes from %s, expected one without a source",
                              p->name.text, t->name, p->from.text);
    }
    return SF_OK;
}
