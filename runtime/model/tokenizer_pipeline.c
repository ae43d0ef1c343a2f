/* What tokenizer.json says of the steps before and after the merging. Sequences are flattened, and the list
 * of steps must be one of those that are computed. */
#include "model/tokenizer_json_priv.h"

#include <string.h>

enum { MAX_STEPS = 8 };

typedef struct steps {
    const char *key; /* "normalizer" */
    const json_t *step[MAX_STEPS];
    const char *type[MAX_STEPS];
    int n;
} steps;

static const char *text_of(const json_t *o, const char *key) {
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* Absent is false. */
static bool is_set(const json_t *o, const char *key) {
    return json_is_true(json_object_get(o, key));
}

/* Flattens one level of Sequence, which is as deep as published files go. */
static sf_code collect(sf_tokenizer_json *r, const json_t *root, const char *key, const char *list_key,
                       steps *s) {
    const json_t *top = json_object_get(root, key);
    const json_t *list = json_object_get(top, list_key);
    bool sequence = !strcmp(text_of(top, "type"), "Sequence");
    size_t n = sequence ? json_array_size(list) : 1;
    *s = (steps){.key = key};
    if (!top || json_is_null(top)) return SF_OK;
    if (!json_is_object(top) || (sequence && !json_is_array(list)))
        return SF_TOKENIZER_JSON_FAIL(r, SF_FORMAT, "%s is no object with a type%s", key,
                                      sequence ? " and a list" : "");
    if (n > MAX_STEPS) return SF_TOKENIZER_JSON_FAIL(r, SF_UNSUPPORTED, "%s has %zu steps", key, n);
    for (size_t i = 0; i < n; i++) {
        s->step[i] = sequence ? json_array_get(list, i) : top;
        s->type[i] = text_of(s->step[i], "type");
        s->n++;
    }
    return SF_OK;
}

static bool are(const steps *s, int n, const char *const *types) {
    bool same = s->n == n;
    for (int i = 0; same && i < n; i++)
        same = !strcmp(s->type[i], types[i]);
    return same;
}

static sf_code refuse(sf_tokenizer_json *r, const steps *s) {
    char list[160];
    size_t n = 0;
    list[0] = 0;
    for (int i = 0; i < s->n && n < sizeof list - 32; i++) {
        sf_str type = {s->type[i], strlen(s->type[i])};
        if (type.len > 24) type.len = 24;
        if (i) memcpy(list + n, ", ", 2);
        n += i ? 2 : 0;
        memcpy(list + n, type.data, type.len);
        n += type.len;
        list[n] = 0;
    }
    return SF_TOKENIZER_JSON_FAIL(r, SF_UNSUPPORTED, "%s: [%s] with these settings is not computed", s->key,
                                  list);
}

static bool replaces(const json_t *o, const char *from, const char *to) {
    return !strcmp(text_of(json_object_get(o, "pattern"), "String"), from) &&
           !strcmp(text_of(o, "content"), to);
}

static sf_code read_normalizer(sf_tokenizer_json *r, const json_t *root) {
    static const char *const nfc[] = {"NFC"}, *const llama[] = {"Prepend", "Replace"};
    steps s;
    SF_TRY(collect(r, root, "normalizer", "normalizers", &s));
    if (!s.n) return SF_OK;
    if (are(&s, 1, nfc) && !r->parts.spm) {
        r->parts.nfc = true;
        return SF_OK;
    }
    if (are(&s, 2, llama) && r->parts.spm && !strcmp(text_of(s.step[0], "prepend"), SF_PIECE_SPACE) &&
        replaces(s.step[1], " ", SF_PIECE_SPACE)) {
        r->parts.prefix = SF_PREFIX_PREPEND;
        return SF_OK;
    }
    return refuse(r, &s);
}

static const sf_split *split_of(sf_tokenizer_json *r, const json_t *o) {
    const json_t *regex = json_object_get(json_object_get(o, "pattern"), "Regex");
    if (strcmp(text_of(o, "behavior"), "Isolated") != 0 || is_set(o, "invert")) return NULL;
    if (!json_is_string(regex)) return NULL;
    r->parts.pattern = (sf_str){json_string_value(regex), json_string_length(regex)};
    const sf_split *known = sf_split_of_pattern(json_string_value(regex));
    return known ? known : &sf_split_regex;
}

/* Byte-level: one step that cuts, if any, then ByteLevel, which cuts by GPT-2's pattern if asked. */
static const sf_split *byte_level_split(sf_tokenizer_json *r, const steps *s) {
    static const char *const alone[] = {"ByteLevel"}, *const digits[] = {"Digits", "ByteLevel"},
                             *const split[] = {"Split", "ByteLevel"};
    const json_t *last = s->n ? s->step[s->n - 1] : NULL, *regex = json_object_get(last, "use_regex");
    bool gpt2 = !regex || json_is_true(regex);
    if (is_set(last, "add_prefix_space")) return NULL;
    if (are(s, 1, alone) && gpt2) return sf_split_find("gpt2", 4);
    if (are(s, 2, digits) && gpt2 && is_set(s->step[0], "individual_digits"))
        return sf_split_find("smollm", 6);
    return are(s, 2, split) && !gpt2 ? split_of(r, s->step[0]) : NULL;
}

static bool metaspace(sf_tokenizer_json *r, const json_t *o) {
    const char *scheme = text_of(o, "prepend_scheme");
    const json_t *split = json_object_get(o, "split"), *old = json_object_get(o, "add_prefix_space");
    if (strcmp(text_of(o, "replacement"), SF_PIECE_SPACE) != 0) return false;
    if (!*scheme)
        scheme = !old || json_is_true(old) ? "always" : "never"; /* files from before prepend_scheme */
    r->parts.words = !split || json_is_true(split) ? &sf_split_pieces : &sf_split_whole;
    r->parts.prefix = !strcmp(scheme, "first")    ? SF_PREFIX_FIRST
                      : !strcmp(scheme, "always") ? SF_PREFIX_ALWAYS
                                                  : SF_PREFIX_NONE;
    return r->parts.prefix != SF_PREFIX_NONE || !strcmp(scheme, "never");
}

static sf_code read_pre_tokenizer(sf_tokenizer_json *r, const json_t *root) {
    static const char *const meta[] = {"Metaspace"};
    steps s;
    SF_TRY(collect(r, root, "pre_tokenizer", "pretokenizers", &s));
    if (!r->parts.spm) {
        r->parts.words = byte_level_split(r, &s);
        return r->parts.words ? SF_OK : refuse(r, &s);
    }
    r->parts.words = &sf_split_whole;
    bool prepends = r->parts.prefix == SF_PREFIX_PREPEND; /* the normaliser has made all spaces visible */
    if (!s.n && prepends) return SF_OK;
    return are(&s, 1, meta) && !prepends && metaspace(r, s.step[0]) ? SF_OK : refuse(r, &s);
}

static sf_code read_decoder(sf_tokenizer_json *r, const json_t *root) {
    static const char *const bytes[] = {"ByteLevel"}, *const llama[] = {"Replace", "ByteFallback", "Fuse",
                                                                        "Strip"};
    steps s;
    SF_TRY(collect(r, root, "decoder", "decoders", &s));
    if (!r->parts.spm) return are(&s, 1, bytes) ? SF_OK : refuse(r, &s);
    if (!are(&s, 3, llama) && !are(&s, 4, llama)) return refuse(r, &s);
    if (!replaces(s.step[0], SF_PIECE_SPACE, " ")) return refuse(r, &s);
    r->parts.strip = s.n == 4;
    if (s.n == 4 && (strcmp(text_of(s.step[3], "content"), " ") != 0 ||
                     json_integer_value(json_object_get(s.step[3], "start")) != 1 ||
                     json_integer_value(json_object_get(s.step[3], "stop")) != 0))
        return refuse(r, &s);
    return SF_OK;
}

/* A template "$A", or "BOS $A". */
static sf_code read_template(sf_tokenizer_json *r, const json_t *o, const steps *s) {
    const json_t *single = json_object_get(o, "single");
    size_t n = json_array_size(single);
    const json_t *first = json_object_get(json_array_get(single, 0), "SpecialToken");
    if (n < 1 || n > 2 || !json_object_get(json_array_get(single, n - 1), "Sequence") || (n == 2 && !first))
        return refuse(r, s);
    if (n == 1) return SF_OK;
    r->bos_name = text_of(first, "id");
    r->parts.add_bos = true;
    return SF_OK;
}

static sf_code read_post_processor(sf_tokenizer_json *r, const json_t *root) {
    steps s;
    SF_TRY(collect(r, root, "post_processor", "processors", &s));
    for (int i = 0; i < s.n; i++) {
        if (!strcmp(s.type[i], "ByteLevel")) continue; /* offsets only */
        if (strcmp(s.type[i], "TemplateProcessing") != 0 || r->bos_name) return refuse(r, &s);
        SF_TRY(read_template(r, s.step[i], &s));
    }
    return SF_OK;
}

sf_code sf_tokenizer_json_pipeline(sf_tokenizer_json *r, const json_t *root) {
    SF_TRY(read_normalizer(r, root));
    SF_TRY(read_pre_tokenizer(r, root));
    SF_TRY(read_decoder(r, root));
    return read_post_processor(r, root);
}
