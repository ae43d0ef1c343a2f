/* Fuzz target: any bytes as a chat template, rendered with messages of every JSON type. Seeds:
 * tests/golden/jinja. */
#include "model/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char MESSAGES[] =
    "[{\"role\": \"system\", \"content\": \" S\\u00e9\\n\"}, {\"role\": \"user\", \"content\": \"<|im_end|> "
    "\\u4f60\", \"n\": 7, \"f\": 2.5,"
    " \"t\": true, \"z\": null, \"l\": [3, 1, [2, \"x\"]], \"d\": {\"b\": {\"c\": []}, \"a\": \"v\"}},"
    " {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"id\": \"abcdefghi\", \"function\": "
    "{\"name\": \"f\", \"arguments\": {\"k\": 1}}}]}]";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static json_t *messages, *tools;
    sf_chat *chat = NULL;
    sf_buf text = {0}, plain = {0};
    sf_err err;
    if (!messages) {
        messages = json_loads(MESSAGES, 0, NULL);
        tools = json_loads("[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}]",
                           0, NULL);
    }
    if (sf_chat_open("fuzz", size ? (const char *)data : "", size, "<s>", NULL, &chat, &err) != SF_OK)
        return 0;
    sf_chat_vars vars = {.messages = messages, .add_generation_prompt = true, .date = "2026-03-07"};
    for (int k = 0; k < 2; k++) {
        vars.tools = k ? tools : NULL;
        size_t before = text.len;
        sf_code rc = sf_chat_render(chat, &vars, &text, &plain, &err);
        if (text.len != plain.len || (rc != SF_OK && text.len != before)) __builtin_trap();
    }
    sf_chat_close(chat);
    sf_buf_fini(&text);
    sf_buf_fini(&plain);
    return 0;
}
