/* What answers look like, one row a shape: "name:type" of the members that are always there. A type is
 * JSON's, or another shape; [type] is an array, ? after it lets null stand there too, and a|b is either.
 * Members beyond these come where a request asks for them. */
#include "serve/http_priv.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
    const char *name, *members;
} shapes[] = {
    {"any", ""},
    {"error", "error:fault"},
    {"fault", "message:string type:string param:string? code:string?"},
    {"status", "status:string"},
    {"version", "version:string"},
    {"models", "object:string data:[model]"},
    {"model", "id:string object:string created:integer owned_by:string root:string parent:string? max_model_len:integer"},
    {"usage", "prompt_tokens:integer completion_tokens:integer total_tokens:integer"},
    {"completion", "id:string object:string created:integer model:string system_fingerprint:string choices:[completion_choice] usage:usage"},
    {"completion_choice", "index:integer text:string logprobs:object? finish_reason:string"},
    {"chat", "id:string object:string created:integer model:string system_fingerprint:string choices:[chat_choice] usage:usage"},
    {"chat_choice", "index:integer message:message logprobs:object? finish_reason:string"},
    {"message", "role:string content:string"},
    {"audit", "object:string match:boolean system_fingerprint:string fingerprint_match:boolean? digest:string|[string] digest_match:boolean?|[boolean?] choices:[verdict] usage:usage"},
    {"verdict", "index:integer match:boolean tokens:integer mismatch:object?"},
    {"tokens", "count:integer max_model_len:integer tokens:[any]"},
    {"text", "prompt:string content:string"},
};
/* clang-format on */

static bool is_shape(const char *word) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, word) == 0) return true;
    return false;
}

/* word is cut as it is read. */
static json_t *type_json(char *word) {
    char *other = strchr(word, '|');
    if (other) {
        *other++ = 0;
        return json_pack("{s:[o, o]}", "anyOf", type_json(word), type_json(other));
    }
    const size_t len = strlen(word);
    if (len > 0 && word[len - 1] == '?') {
        word[len - 1] = 0;
        return json_pack("{s:[o, {s:s}]}", "anyOf", type_json(word), "type", "null");
    }
    if (word[0] == '[') {
        word[len - 1] = 0;
        return json_pack("{s:s, s:o}", "type", "array", "items", type_json(word + 1));
    }
    if (strcmp(word, "any") == 0) return json_object();
    if (!is_shape(word)) return json_pack("{s:s}", "type", word);
    return json_pack("{s:s+}", "$ref", "#/components/schemas/", word);
}

static json_t *shape_json(const char *members, bool *ok) {
    char text[256], *rest = NULL;
    json_t *o = json_object(), *properties = json_object(), *required = json_array();
    snprintf(text, sizeof text, "%s", members);
    for (char *m = strtok_r(text, " ", &rest); m; m = strtok_r(NULL, " ", &rest)) {
        char *type = strchr(m, ':');
        *type++ = 0;
        sf_json_put(properties, m, type_json(type), ok);
        sf_json_push(required, json_string(m), ok);
    }
    sf_json_put(o, "type", json_string("object"), ok);
    sf_json_put(o, "properties", properties, ok);
    sf_json_put(o, "required", required, ok);
    return o;
}

json_t *sf_shapes_json(bool *ok) {
    json_t *o = json_object();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        sf_json_put(o, shapes[i].name, shape_json(shapes[i].members, ok), ok);
    return o;
}
