#include "model/chat.h"
#include "model/jinja_eval_priv.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TREE = 64 << 20, MAX_RENDER = 256 << 20, MAX_TEXT = 32 << 20, MAX_STEPS = 20000000 };

struct sf_chat {
    sf_jarena arena;
    const char *name;
    const sf_jnode *root;
    const char *bos, *eos; /* NULL: none */
};

static sf_code keep(sf_chat *c, const char *s, const char **out, sf_err *err) {
    if (!s) return SF_OK;
    size_t n = strlen(s) + 1;
    char *copy = sf_jarena_get(&c->arena, n);
    if (!copy) return SF_FAIL(err, SF_NOMEM, "%s", c->name);
    memcpy(copy, s, n);
    *out = copy;
    return SF_OK;
}

sf_code sf_chat_open(const char *name, const char *source, size_t len, const char *bos, const char *eos,
                     sf_chat **out, sf_err *err) {
    sf_chat *c = calloc(1, sizeof *c);
    if (!c) return SF_FAIL(err, SF_NOMEM, "%s", name);
    sf_jnode *root;
    c->name = name;
    sf_jarena_init(&c->arena, MAX_TREE);
    sf_code rc = sf_jinja_parse(&c->arena, name, source, len, &root, err);
    if (rc != SF_OK) goto done;
    c->root = root;
    rc = keep(c, bos, &c->bos, err);
    if (rc == SF_OK) rc = keep(c, eos, &c->eos, err);
done:
    if (rc == SF_OK)
        *out = c;
    else
        sf_chat_close(c);
    return rc;
}

void sf_chat_close(sf_chat *c) {
    if (!c) return;
    sf_jarena_fini(&c->arena);
    free(c);
}

static sf_code from_json(sf_jx *x, const json_t *j, sf_jv *out);

static sf_code from_array(sf_jx *x, const json_t *j, sf_jv *out) {
    size_t n = json_array_size(j);
    SF_TRY(sf_jv_list(x, SF_JV_LIST, n, out));
    for (size_t i = 0; i < n; i++) {
        sf_jv v;
        SF_TRY(from_json(x, json_array_get(j, i), &v));
        SF_TRY(sf_jv_push(x, *out, v));
    }
    return SF_OK;
}

static sf_code from_object(sf_jx *x, const json_t *j, sf_jv *out) {
    SF_TRY(sf_jv_dict(x, json_object_size(j), out));
    void *it = json_object_iter((json_t *)(uintptr_t)j);
    for (; it; it = json_object_iter_next((json_t *)(uintptr_t)j, it)) {
        sf_jv key, v;
        const char *name = json_object_iter_key(it);
        SF_TRY(sf_jv_str(x, name, strlen(name), 1, &key));
        SF_TRY(from_json(x, json_object_iter_value(it), &v));
        SF_TRY(sf_jv_put(x, *out, key, v));
    }
    return SF_OK;
}

/* A value of the request: everything printed for it is marked plain. */
static sf_code from_json(sf_jx *x, const json_t *j, sf_jv *out) {
    SF_TRY(sf_jx_enter(x));
    switch (json_typeof(j)) {
    case JSON_STRING:
        SF_TRY(sf_jv_str(x, json_string_value(j), json_string_length(j), 1, out));
        break;
    case JSON_INTEGER:
        *out = sf_jv_int(json_integer_value(j));
        break;
    case JSON_REAL:
        *out = sf_jv_float(json_real_value(j));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = sf_jv_bool(json_is_true(j));
        break;
    case JSON_NULL:
        *out = sf_jv_none();
        break;
    case JSON_ARRAY:
        SF_TRY(from_array(x, j, out));
        break;
    case JSON_OBJECT:
        SF_TRY(from_object(x, j, out));
        break;
    }
    out->plain = 1;
    x->depth--;
    return SF_OK;
}

static sf_code set_json(sf_jx *x, const char *name, const json_t *j) {
    sf_jv v = sf_jv_none();
    if (j) SF_TRY(from_json(x, j, &v));
    return sf_jenv_set(x, x->env, name, v);
}

static sf_code set_token(sf_jx *x, const char *name, const char *token) {
    sf_jv v;
    if (!token) return SF_OK;
    SF_TRY(sf_jv_str(x, token, strlen(token), 0, &v));
    return sf_jenv_set(x, x->env, name, v);
}

static sf_code render(sf_jx *x, const sf_chat *c, const sf_chat_vars *vars) {
    sf_jflow flow = SF_JFLOW_NEXT;
    SF_TRY(sf_jenv_push(x, NULL, &x->env));
    SF_TRY(set_json(x, "messages", vars->messages));
    SF_TRY(set_json(x, "tools", vars->tools));
    SF_TRY(set_json(x, "documents", vars->documents));
    SF_TRY(set_token(x, "bos_token", c->bos));
    SF_TRY(set_token(x, "eos_token", c->eos));
    SF_TRY(sf_jenv_set(x, x->env, "add_generation_prompt", sf_jv_bool(vars->add_generation_prompt)));
    SF_TRY(sf_jenv_push(x, x->env, &x->env));
    return sf_jexec(x, c->root, &flow);
}

sf_code sf_chat_render(const sf_chat *c, const sf_chat_vars *vars, sf_buf *text, sf_buf *plain, sf_err *err) {
    sf_jout out = {0};
    sf_jx x = {.at = {c->name, 0, 0}, .err = err, .max_steps = MAX_STEPS, .max_out = MAX_TEXT, .out = &out};
    x.date = vars->date;
    sf_jarena_init(&x.arena, MAX_RENDER);
    sf_code rc = render(&x, c, vars);
    if (rc != SF_OK) goto done;
    rc = sf_buf_reserve(plain, out.len, err);
    if (rc == SF_OK) rc = sf_buf_append(text, out.data, out.len, err);
    if (rc == SF_OK) rc = sf_buf_append(plain, out.plain, out.len, err);
done:
    sf_jarena_fini(&x.arena);
    return rc;
}
