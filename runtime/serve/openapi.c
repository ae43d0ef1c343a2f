/* The OpenAPI description, from the same tables that route requests and read their fields. */
#include "serve/http_priv.h"
#include "serve/serve_priv.h"

#include "api/fields.h"

#include <float.h>
#include <limits.h>
#include <string.h>

static json_t *typed(const char *type) {
    return json_pack("{s:s}", "type", type);
}

static json_t *list_of(json_t *items) {
    return json_pack("{s:s, s:o}", "type", "array", "items", items);
}

static json_t *integer_in(double min, double max, bool *ok) {
    json_t *o = typed("integer");
    sf_json_put(o, "minimum", json_integer((json_int_t)min), ok);
    sf_json_put(o, "maximum", json_integer((json_int_t)max), ok);
    return o;
}

static json_t *number_in(const sf_api_field *f, bool *ok) {
    json_t *o = typed("number");
    sf_json_put(o, f->open_min ? "exclusiveMinimum" : "minimum", json_real(f->min), ok);
    sf_json_put(o, "maximum", json_real(f->max), ok);
    return o;
}

static json_t *prompt_schema(void) {
    return json_pack("{s:[o, o, o, o]}", "anyOf", typed("string"), list_of(typed("string")),
                     list_of(typed("integer")), list_of(list_of(typed("integer"))));
}

static json_t *message_schema(void) {
    json_t *roles =
        json_pack("{s:[s, s, s, s, s]}", "enum", "system", "user", "assistant", "tool", "developer");
    json_t *part = json_pack("{s:s, s:[s, s], s:{s:{s:s}, s:o}}", "type", "object", "required", "type",
                             "text", "properties", "type", "const", "text", "text", typed("string"));
    json_t *content = json_pack("{s:[o, o, o]}", "anyOf", typed("string"), list_of(part), typed("null"));
    return json_pack("{s:s, s:[s, s], s:{s:o, s:o}}", "type", "object", "required", "role", "content",
                     "properties", "role", roles, "content", content);
}

static json_t *messages_schema(void) {
    return json_pack("{s:s, s:i, s:o}", "type", "array", "minItems", 1, "items", message_schema());
}

static json_t *schema_of(const sf_api_field *f, bool *ok) {
    switch (f->type) {
    case SF_API_BOOL:
        return typed("boolean");
    case SF_API_INT:
        return integer_in(f->min, f->max, ok);
    case SF_API_INT64:
        return json_pack("{s:s, s:s}", "type", "integer", "format", "int64");
    case SF_API_FLOAT:
        return number_in(f, ok);
    case SF_API_STRING:
    case SF_API_ID:
        return typed("string");
    case SF_API_OBJECT:
        return typed("object");
    case SF_API_ARRAY:
        return strcmp(f->name, "messages") == 0 ? messages_schema() : list_of(typed("object"));
    case SF_API_PROMPT:
        return prompt_schema();
    case SF_API_LOGPROBS:
        return json_pack("{s:[o, o]}", "anyOf", integer_in(f->min, f->max, ok), typed("boolean"));
    case SF_API_STOP:
        return json_pack("{s:[o, o]}", "anyOf", typed("string"), list_of(typed("string")));
    case SF_API_IDS:
        return list_of(typed("integer"));
    case SF_API_BIAS:
        return json_pack("{s:s, s:o}", "type", "object", "additionalProperties", typed("number"));
    }
    return NULL;
}

static json_t *nullable(json_t *schema) {
    return json_pack("{s:[o, {s:s}]}", "anyOf", schema, "type", "null");
}

static json_t *body_schema(unsigned kind, const char *required, bool *ok) {
    json_t *properties = json_object();
    for (int i = 0; i < sf_api_n_fields; i++) {
        const sf_api_field *f = &sf_api_fields[i];
        if (!(f->where & kind)) continue;
        json_t *schema = strcmp(f->name, required) == 0 ? schema_of(f, ok) : nullable(schema_of(f, ok));
        sf_json_put(schema, "description", json_string(f->help), ok);
        sf_json_put(properties, f->name, schema, ok);
    }
    return json_pack("{s:s, s:[s], s:o}", "type", "object", "required", required, "properties", properties);
}

static json_t *request_body(json_t *schema) {
    return json_pack("{s:b, s:{s:{s:o}}}", "required", 1, "content", "application/json", "schema", schema);
}

static json_t *body_of(const sf_endpoint *r, bool *ok) {
    if (strcmp(r->path, "/v1/completions") == 0)
        return request_body(body_schema(SF_API_COMPLETION, "prompt", ok));
    if (strcmp(r->path, "/v1/chat/completions") == 0)
        return request_body(body_schema(SF_API_CHAT, "messages", ok));
    if (strcmp(r->path, "/detokenize") == 0)
        return request_body(json_pack("{s:s, s:[s], s:{s:o}}", "type", "object", "required", "tokens",
                                      "properties", "tokens", list_of(typed("integer"))));
    if (strcmp(r->path, "/v1/audit") == 0)
        return request_body(json_pack("{s:s, s:[s, s], s:{s:{s:s}, s:{s:s}}}", "type", "object", "required",
                                      "request", "answer", "properties", "request", "type", "object",
                                      "answer", "type", "object"));
    return request_body(json_pack("{s:s, s:[{s:[s]}, {s:[s]}], s:{s:o, s:o, s:o, s:o}}", "type", "object",
                                  "anyOf", "required", "prompt", "required", "messages", "properties",
                                  "prompt", typed("string"), "messages", messages_schema(),
                                  "add_special_tokens", typed("boolean"), "with_pieces", typed("boolean")));
}

static json_t *shape(const char *name) {
    return json_pack("{s:{s:s+}}", "schema", "$ref", "#/components/schemas/", name);
}

static json_t *content_of(const sf_endpoint *r) {
    if (strchr(r->answer, '/')) return json_pack("{s:{s:{s:s}}}", r->answer, "schema", "type", "string");
    if (strstr(r->path, "completions"))
        return json_pack("{s:o, s:{}}", "application/json", shape(r->answer), "text/event-stream");
    return json_pack("{s:o}", "application/json", shape(r->answer));
}

static json_t *fault_json(const char *text) {
    return json_pack("{s:s, s:{s:o}}", "description", text, "content", "application/json", shape("error"));
}

static json_t *answers(const sf_server *s, const sf_endpoint *r, bool *ok) {
    const bool post = strcmp(r->methods, "POST") == 0, keys = s->cfg->n_api_keys > 0 && !r->open;
    const bool one = r->path[strlen(r->path) - 1] == '/' && r->path[1];
    const struct {
        bool here;
        const char *status, *text;
    } faults[] = {{post, "400", "a fault of the request"},
                  {keys, "401", "no valid key"},
                  {post || one, "404", "no such model"},
                  {true, "405", "another method"},
                  {true, "408", "the request did not come whole in time"},
                  {post, "413", "the body is too large"},
                  {post, "429", "the queue is full"},
                  {true, "431", "the head of the request is too large"},
                  {true, "500", "out of memory, or the device has failed"},
                  {true, "503", "loading or shutting down"}};
    json_t *o = json_object();
    sf_json_put(o, "200", json_pack("{s:s, s:o}", "description", "the answer", "content", content_of(r)), ok);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i].here) sf_json_put(o, faults[i].status, fault_json(faults[i].text), ok);
    /* the body of a health check says its state whatever the status */
    if (strcmp(r->answer, "status") == 0)
        sf_json_put(o, "503", json_pack("{s:s, s:o}", "description", "not ready", "content", content_of(r)),
                    ok);
    return o;
}

static json_t *operation(const sf_server *s, const sf_endpoint *r, bool post, bool *ok) {
    json_t *o = json_object();
    sf_json_put(o, "summary", json_string(r->summary), ok);
    sf_json_put(o, "responses", answers(s, r, ok), ok);
    if (!r->open && s->cfg->n_api_keys > 0) sf_json_put(o, "security", json_pack("[{s:[]}]", "key"), ok);
    if (post) sf_json_put(o, "requestBody", body_of(r, ok), ok);
    if (r->path[strlen(r->path) - 1] == '/')
        sf_json_put(o, "parameters",
                    json_pack("[{s:s, s:s, s:b, s:{s:s}}]", "name", "model", "in", "path", "required", 1,
                              "schema", "type", "string"),
                    ok);
    return o;
}

static json_t *paths(const sf_server *s, bool *ok) {
    json_t *o = json_object();
    for (int i = 0; i < sf_n_endpoints; i++) {
        const sf_endpoint *r = &sf_endpoints[i];
        const bool post = strcmp(r->methods, "POST") == 0,
                   below = r->path[strlen(r->path) - 1] == '/' && r->path[1];
        char path[80];
        snprintf(path, sizeof path, "%s%s", r->path, below ? "{model}" : "");
        json_t *item = json_object();
        sf_json_put(item, post ? "post" : "get", operation(s, r, post, ok), ok);
        sf_json_put(o, path, item, ok);
    }
    return o;
}

void sf_handle_openapi(sf_server *s, struct evhttp_request *req) {
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "openapi", json_string("3.1.0"), &ok);
    sf_json_put(o, "info", json_pack("{s:s, s:s}", "title", "Steadfast", "version", s->cfg->version), &ok);
    sf_json_put(o, "paths", paths(s, &ok), &ok);
    sf_json_put(o, "components",
                json_pack("{s:o, s:{s:{s:s, s:s}}}", "schemas", sf_shapes_json(&ok), "securitySchemes", "key",
                          "type", "http", "scheme", "bearer"),
                &ok);
    sf_http_ok(s, req, sf_json_done(o, ok));
}
