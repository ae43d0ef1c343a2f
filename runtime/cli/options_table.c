/* Which flags there are, of which verbs, and where their values go. A letter stands for a verb. */
#include "cli/options.h"

#include <limits.h>

#define V     (1u << SF_VERB_SERVE)
#define R     (1u << SF_VERB_RUN)
#define A     (1u << SF_VERB_AUDIT)
#define B     (1u << SF_VERB_BENCH)
#define S     (1u << SF_VERB_SELFTEST)
#define I     (1u << SF_VERB_INFO)
#define T     (1u << SF_VERB_TOKENIZE)
#define AT(f) offsetof(sf_cli_opts, f)
#define STR(n, v, arg, f, help)                                                                              \
    { n, SF_OPT_STR, v, arg, 0, 0, AT(f), NULL, help }
#define INT(n, v, min, max, f, help)                                                                         \
    { n, SF_OPT_INT, v, "N", min, max, AT(f), NULL, help }
#define BOOL(n, v, f, help)                                                                                  \
    { n, SF_OPT_BOOL, v, NULL, 0, 0, AT(f), NULL, help }
#define NUM(n, v, min, max, f, help)                                                                         \
    { n, SF_OPT_NUM, v, "X", min, max, AT(f), NULL, help }
#define FIELD(n, v, arg, field)                                                                              \
    { n, SF_OPT_FIELD, v, arg, 0, 0, 0, field, NULL }

const char *const sf_verb_names[SF_VERB_COUNT] = {"serve",    "run",  "audit",   "bench",
                                                  "selftest", "info", "tokenize"};

/* clang-format off */
const sf_opt sf_opts[] = {
    STR("weights", V | R | A | S | I | T, "FILE", weights, "GGUF file or Hugging Face directory: weights and tokenizer"),
    {"random-weights", SF_OPT_RANDOM, V | R | A | S | I, "SEED", 0, 0, AT(random_seed), NULL, "random weights in place of a checkpoint's"},
    STR("weights", B, "FILE", weights, "a checkpoint whose tokenizer counts tokens and makes text; the server's answers count them too"),
    STR("base-url", B, "URL", base_url, "of the server, http:// or https:// (default: --host and --port)"),
    STR("host", B, "HOST", host, "of the server (default 127.0.0.1)"),
    INT("port", B, 1, 65535, port, "of the server (default 8000)"),
    STR("endpoint", B, "PATH", endpoint, "/v1/completions (default) or /v1/chat/completions"),
    STR("model", B, "NAME", model, "to ask for (default: the first that the server lists)"),
    {"api-key", SF_OPT_KEY, B, "KEY", 0, 0, 0, NULL, "the server's key (default: OPENAI_API_KEY)"},
    BOOL("insecure", B, insecure, "take any certificate of an https server (SSL_CERT_FILE names authorities to trust)"),
    INT("timeout", B, 1, 1 << 20, timeout, "seconds for a whole answer (default 21600)"),
    INT("ready-check-timeout-sec", B, 0, 1 << 20, ready_timeout, "seconds to wait for the server to be ready (default 0)"),
    STR("dataset-name", B, "NAME", dataset_name, "random (default; answered past eos unless --ignore-eos=false), sharegpt, or custom: JSON lines with prompt or messages, and output_tokens"),
    STR("dataset-path", B, "FILE", dataset_path, "the file of sharegpt or custom"),
    INT("num-prompts", B, 1, 1 << 22, num_prompts, "how many (default 1000)"),
    INT("random-input-len", B, 1, 1 << 20, input_len, "tokens of a random prompt (default 1024)"),
    INT("input-len", B, 1, 1 << 20, input_len, "as --random-input-len"),
    INT("output-len", B, 1, 1 << 20, output_len, "tokens of an answer (default: random 128, sharegpt the second turn's, custom the line's, or 256)"),
    INT("random-output-len", B, 1, 1 << 20, output_len, "as --output-len"),
    INT("sharegpt-output-len", B, 1, 1 << 20, output_len, "as --output-len"),
    INT("custom-output-len", B, 1, 1 << 20, output_len, "as --output-len"),
    NUM("random-range-ratio", B, 0, 1, range_ratio, "random lengths are drawn from length * (1 - X) to length * (1 + X) (default 0)"),
    INT("random-prefix-len", B, 0, 1 << 20, prefix_len, "tokens before them that all random prompts share (default 0)"),
    NUM("request-rate", B, 0, INT_MAX, request_rate, "requests a second, Poisson arrivals (default inf: all at once)"),
    NUM("burstiness", B, 0, INT_MAX, burstiness, "shape of the gamma distribution of gaps (default 1: Poisson; more is more even)"),
    INT("max-concurrency", B, 1, 1 << 20, max_concurrency, "requests in progress at most (default: no limit)"),
    INT("num-warmups", B, 0, 1 << 20, num_warmups, "requests before the run that are not counted (default 0)"),
    NUM("deterministic-ratio", B, 0, 1, deterministic_ratio, "share of the prompts marked is_deterministic, the others marked not (default: no mark)"),
    INT("repeat", B, 1, 4096, repeat, "copies of each prompt, spread through the run, with equal seeds: do they get one answer?"),
    STR("extra-body", B, "JSON", extra_body, "an object of further request fields"),
    STR("metric-percentiles", B, "P,P,...", percentiles, "of the report (default 99)"),
    STR("percentile-metrics", B, "M,M,...", percentile_metrics, "some of ttft,tpot,itl,e2el (default: all)"),
    STR("goodput", B, "M:MS,...", goodput, "goals, as ttft:500,e2el:2000: requests a second that keep them all"),
    BOOL("save-result", B, save_result, "write the result as JSON, to --output or a name of rate and date"),
    BOOL("save-detailed", B, save_detailed, "with the lengths, times, texts and errors of each request"),
    STR("output", B, "FILE", output, "write the result as JSON to this file"),
    STR("result-filename", B, "FILE", output, "as --output"),
    {"seed", SF_OPT_SEED, B, "SEED", 0, 0, AT(seed), NULL, "of what is drawn: prompts, marks, order, arrivals; with --repeat of the requests too (default 0)"},
    STR("host", V, "HOST", host, "address to listen on (default 127.0.0.1; 0.0.0.0 or :: for all)"),
    INT("port", V, 0, 65535, port, "default 8000; 0 takes a free one"),
    {"api-key", SF_OPT_KEY, V, "KEY", 0, 0, 0, NULL, "clients must give this key, or another --api-key"},
    STR("api-key-file", V, "FILE", api_key_file, "keys, one a line"),
    STR("served-model-name", V, "NAME", served_model_name, "the model's name in requests and answers (default: the engine's)"),
    STR("ssl-certfile", V, "FILE", ssl_certfile, "PEM certificate chain: serve HTTPS"),
    STR("ssl-keyfile", V, "FILE", ssl_keyfile, "its PEM key"),
    STR("allowed-origin", V, "ORIGIN", allowed_origin, "let pages of this origin (* for any) use the server"),
    STR("log-format", V, "text|json", log_format, "of the lines on stderr, one a request"),
    BOOL("log-prompts", V, log_prompts, "put the bodies of requests in the log"),
    INT("shutdown-timeout", V, 0, 86400, shutdown_timeout, "seconds that running requests have after SIGTERM (default 30)"),
    INT("receive-timeout", V, 1, 86400, receive_timeout, "seconds in which a request must have come whole (default 60); then 408"),
    INT("max-queue", V, 1, 1 << 20, max_queue, "requests that may wait; further ones get 429"),
    STR("prompt", R, "TEXT", prompt, "answer this text, streamed to stdout"),
    STR("chat", R | T, "TEXT", chat, "the same as a user's message through the chat template"),
    STR("system", R | T, "TEXT", system, "system message before --chat"),
    STR("answers", A, "FILE", answers, "the answers to them, in the same order; without it a line of --input is {\"request\", \"answer\"}"),
    STR("input", R | A, "FILE", input, "requests, one JSON object a line; - is stdin"),
    STR("output", R | A, "FILE", output, "answers or verdicts, one line each (default: stdout); - is stdout"),
    BOOL("ordered", R | A, ordered, "answers in the order of the requests (default true); false: as they finish"),
    STR("report", R | A, "FILE", report, "write counters of the whole run as JSON"),
    STR("date", V | R | A | T, "YYYY-MM-DD", date, "today's date for chat templates that ask for it"),
    FIELD("temperature", R | B, "T", "temperature"),
    FIELD("top-k", R | B, "N", "top_k"),
    FIELD("top-p", R | B, "P", "top_p"),
    FIELD("min-p", R | B, "P", "min_p"),
    FIELD("repetition-penalty", R | B, "X", "repetition_penalty"),
    FIELD("frequency-penalty", R | B, "X", "frequency_penalty"),
    FIELD("presence-penalty", R | B, "X", "presence_penalty"),
    FIELD("max-tokens", R, "N", "max_tokens"),
    FIELD("min-tokens", R, "N", "min_tokens"),
    FIELD("stop", R, "TEXT", "stop"),
    FIELD("n", R, "N", "n"),
    FIELD("logprobs", R | B, "N", "logprobs"),
    FIELD("prompt-logprobs", R, "N", "prompt_logprobs"),
    FIELD("ignore-eos", R | B, NULL, "ignore_eos"),
    FIELD("echo", R, NULL, "echo"),
    FIELD("return-token-ids", R, NULL, "return_token_ids"),
    FIELD("deterministic", R, NULL, "is_deterministic"),
    {"seed", SF_OPT_SEED, V | R | A, "SEED", 0, 0, AT(seed), NULL, "of requests that give none (default: 0 for deterministic ones, a new one for each other)"},
    BOOL("deterministic-default", V | R, deterministic_default, "requests are deterministic unless they say otherwise"),
    BOOL("strict", V | R | A, strict, "unknown request fields are errors"),
    STR("policy", V | R, "verify|pin", policy, "draft and verify in windows, or pinned passes only"),
    INT("window", V | R, 2, 64, window, "rows of a verify window"),
    INT("verify-wait", V | R, 0, 1000, verify_wait, "passes that a full window may wait for a group"),
    INT("verify-group", V | R, 0, 4096, verify_group, "full windows that start a verify pass at once; 0: all that draft"),
    INT("max-num-seqs", V | R | A, 1, 4096, max_num_seqs, "answers in progress at once"),
    INT("max-num-batched-tokens", V | R | A, 2, INT_MAX, max_num_batched_tokens, "rows of one pass"),
    INT("prefill-chunk", V | R | A, 1, INT_MAX, prefill_chunk, "rows of prefill in one pass"),
    INT("prefill-split", V | R, 0, 1 << 20, prefill_split, "waiting rows of ordinary prompts that get fast passes of their own; 0: they ride in pinned ones"),
    INT("max-model-len", V | R | A | T, 2, INT_MAX, max_model_len, "positions of prompt and answer together"),
    INT("kv-pages", V | R | A | S, 1, 1 << 24, kv_pages, "pages of the KV pool"),
    INT("threads", V | R | A | S | I, 1, 256, threads, "default: the cores this process may use"),
    INT("gpu", V | R | A | S | I, 0, 1024, gpu, "which GPU a CUDA engine runs on (default 0)"),
    STR("kernel-cache", V | R | A | S | I, "DIR", kernel_cache, "where a CUDA engine keeps compiled kernels (default: the user's cache)"),
    BOOL("kernels", I, kernels, "the kernels by operation and rows, with expected times (--json has them always)"),
    BOOL("graphs", I, graphs, "how a CUDA engine launches each shape of pass, with measured times"),
    STR("isa", V | R | A | S | I, "NAME", isa, "auto, or an instruction set that info lists as usable"),
    STR("chat-template", V | R | A | T, "FILE", chat_template, "in place of the checkpoint's"),
    STR("text", T, "TEXT", text, "text to tokenize (default: stdin)"),
    STR("decode", T, "IDS", decode, "token ids, separated by commas or blanks, in brackets or not, back to text"),
    BOOL("ids", T, ids, "print the ids alone, not JSON"),
    BOOL("pieces", T, pieces, "with the text of each token"),
    BOOL("add-special-tokens", T, add_special_tokens, "BOS where the model has one (default true)"),
    BOOL("json", R | S | I, json, "print JSON"),
    BOOL("help-fields", R, help_fields, "the fields of a line of --input, with types, ranges and defaults"),
    BOOL("help", V | R | A | B | S | I | T, help, "this text"),
};
/* clang-format on */
_Static_assert(sizeof sf_opts / sizeof *sf_opts <= SF_OPTS_MAX, "one flag too many");
const int sf_n_opts = (int)(sizeof sf_opts / sizeof *sf_opts);
