/* What tests/oracle asks of chat templates: for each u32 length and JSON object on standard input (template,
 * messages, tools, documents, add_generation_prompt, date, bos, eos) writes u32 code (sf_code), u32 length
 * and the text, or the message with its place. Little-endian. */
#include "model/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(uint32_t code, const char *data, size_t len) {
    uint32_t n = (uint32_t)len;
    fwrite(&code, sizeof code, 1, stdout);
    fwrite(&n, sizeof n, 1, stdout);
    if (n) fwrite(data, 1, n, stdout);
    fflush(stdout);
}

static sf_code render(const json_t *q, sf_buf *text, sf_err *err) {
    const json_t *source = json_object_get(q, "template"), *tools = json_object_get(q, "tools"),
                 *documents = json_object_get(q, "documents");
    sf_chat_vars vars = {.messages = json_object_get(q, "messages"),
                         .tools = json_is_null(tools) ? NULL : tools,
                         .documents = json_is_null(documents) ? NULL : documents,
                         .add_generation_prompt = json_is_true(json_object_get(q, "add_generation_prompt")),
                         .date = json_string_value(json_object_get(q, "date"))};
    sf_chat *chat = NULL;
    sf_buf plain = {0};
    if (!json_is_string(source)) return SF_FAIL(err, SF_FORMAT, "no template");
    SF_TRY(sf_chat_open("template", json_string_value(source), json_string_length(source),
                        json_string_value(json_object_get(q, "bos")),
                        json_string_value(json_object_get(q, "eos")), &chat, err));
    sf_code rc = sf_chat_render(chat, &vars, text, &plain, err);
    sf_buf_fini(&plain);
    sf_chat_close(chat);
    return rc;
}

int main(void) {
    uint32_t len;
    while (fread(&len, sizeof len, 1, stdin) == 1) {
        char *data = malloc((size_t)len + 1), line[600];
        sf_buf text = {0};
        sf_err err = {0};
        if (!data || fread(data, 1, len, stdin) != len) {
            free(data);
            return 1;
        }
        json_t *q = json_loadb(data, len, JSON_ALLOW_NUL, NULL);
        sf_code rc = render(q, &text, &err);
        const char *said = rc == SF_OK ? text.data : sf_err_format(&err, line, sizeof line);
        put((uint32_t)rc, said, rc == SF_OK ? text.len : strlen(said));
        json_decref(q);
        sf_buf_fini(&text);
        free(data);
    }
    return 0;
}
