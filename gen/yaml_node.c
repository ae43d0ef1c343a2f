#include "yaml_node.h"

#include <string.h>
#include <yaml.h>

typedef struct reader {
    yaml_parser_t parser;
    sf_arena *arena;
    const char *file;
    int nodes;
    sf_err *err;
} reader;

static sf_loc at(const reader *r, yaml_mark_t mark) {
    return (sf_loc){r->file, (int)mark.line + 1, (int)mark.column + 1};
}

/* The place of a byte offset: libyaml gives no mark for bytes that are not characters. */
static sf_loc at_offset(const char *file, const char *text, size_t len, size_t offset) {
    sf_loc loc = {file, 1, 1};
    for (size_t i = 0; i < len && i < offset; i++) {
        loc.col++;
        if (text[i] == '\n') {
            loc.line++;
            loc.col = 1;
        }
    }
    return loc;
}

static sf_code next_event(reader *r, yaml_event_t *ev) {
    if (yaml_parser_parse(&r->parser, ev)) return SF_OK;
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "syntax error";
    if (p->error == YAML_MEMORY_ERROR) return sf_arena_full(r->err);
    if (p->error == YAML_READER_ERROR) {
        sf_loc loc = at_offset(r->file, (const char *)p->input.string.start,
                               (size_t)(p->input.string.end - p->input.string.start), p->problem_offset);
        return SF_FAIL_AT(r->err, SF_FORMAT, loc, "%s, expected UTF-8 text", problem);
    }
    return SF_FAIL_AT(r->err, SF_FORMAT, at(r, p->problem_mark), "%s%s%s, expected valid YAML", problem,
                      p->context ? " " : "", p->context ? p->context : "");
}

/* Anchors and tags would let one file mean several things. */
static sf_code refuse_marks(const reader *r, const yaml_event_t *ev, const yaml_char_t *anchor,
                            const yaml_char_t *tag) {
    if (anchor)
        return SF_FAIL_AT(r->err, SF_FORMAT, at(r, ev->start_mark),
                          "found the anchor '&%.64s', expected a plain value", (const char *)anchor);
    if (tag)
        return SF_FAIL_AT(r->err, SF_FORMAT, at(r, ev->start_mark),
                          "found the tag '%.64s', expected a plain value", (const char *)tag);
    return SF_OK;
}

static sf_code new_node(reader *r, const yaml_event_t *ev, sf_yaml_kind kind, int depth, sf_yaml_node **out) {
    if (depth > SF_YAML_MAX_DEPTH)
        return SF_FAIL_AT(r->err, SF_FULL, at(r, ev->start_mark), "nested over %d deep, expected less",
                          SF_YAML_MAX_DEPTH);
    if (++r->nodes > SF_YAML_MAX_NODES)
        return SF_FAIL_AT(r->err, SF_FULL, at(r, ev->start_mark), "over %d values, expected fewer",
                          SF_YAML_MAX_NODES);
    sf_yaml_node *n = sf_arena_alloc(r->arena, 1, sizeof *n);
    if (!n) return sf_arena_full(r->err);
    n->kind = kind;
    n->loc = at(r, ev->start_mark);
    *out = n;
    return SF_OK;
}

static sf_code copy_scalar(reader *r, const yaml_event_t *ev, const char **out) {
    const char *value = (const char *)ev->data.scalar.value;
    size_t len = ev->data.scalar.length;
    if (memchr(value, 0, len))
        return SF_FAIL_AT(r->err, SF_FORMAT, at(r, ev->start_mark), "found a NUL character, expected text");
    *out = sf_arena_text(r->arena, value, len);
    return *out ? SF_OK : sf_arena_full(r->err);
}

static sf_code read_scalar(reader *r, const yaml_event_t *ev, int depth, sf_yaml_node **out) {
    SF_TRY(refuse_marks(r, ev, ev->data.scalar.anchor, ev->data.scalar.tag));
    SF_TRY(new_node(r, ev, SF_YAML_SCALAR, depth, out));
    (*out)->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return copy_scalar(r, ev, &(*out)->text);
}

static void add_child(sf_yaml_node *parent, sf_yaml_node *child) {
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->n++;
}

static sf_code read_node(reader *r, const yaml_event_t *ev, int depth, sf_yaml_node **out);

static sf_code read_list(reader *r, const yaml_event_t *ev, int depth, sf_yaml_node **out) {
    SF_TRY(refuse_marks(r, ev, ev->data.sequence_start.anchor, ev->data.sequence_start.tag));
    SF_TRY(new_node(r, ev, SF_YAML_LIST, depth, out));
    for (;;) {
        yaml_event_t item;
        SF_TRY(next_event(r, &item));
        sf_yaml_node *child = NULL;
        bool end = item.type == YAML_SEQUENCE_END_EVENT;
        sf_code rc = end ? SF_OK : read_node(r, &item, depth + 1, &child);
        yaml_event_delete(&item);
        if (rc != SF_OK || end) return rc;
        add_child(*out, child);
    }
}

static sf_code read_key(reader *r, const sf_yaml_node *map, const yaml_event_t *ev, const char **key) {
    if (ev->type != YAML_SCALAR_EVENT)
        return SF_FAIL_AT(r->err, SF_FORMAT, at(r, ev->start_mark), "found %s as a key, expected a word",
                          ev->type == YAML_ALIAS_EVENT ? "an alias" : "a list or a mapping");
    SF_TRY(refuse_marks(r, ev, ev->data.scalar.anchor, ev->data.scalar.tag));
    SF_TRY(copy_scalar(r, ev, key));
    const sf_yaml_node *first = sf_yaml_find(map, *key);
    if (first)
        return SF_FAIL_AT(r->err, SF_FORMAT, at(r, ev->start_mark),
                          "found the key '%.64s' again, expected it once (first at line %d)", *key,
                          first->key_loc.line);
    return SF_OK;
}

static sf_code read_map(reader *r, const yaml_event_t *ev, int depth, sf_yaml_node **out) {
    SF_TRY(refuse_marks(r, ev, ev->data.mapping_start.anchor, ev->data.mapping_start.tag));
    SF_TRY(new_node(r, ev, SF_YAML_MAP, depth, out));
    for (;;) {
        yaml_event_t item;
        SF_TRY(next_event(r, &item));
        const char *key = NULL;
        sf_loc key_loc = at(r, item.start_mark);
        bool end = item.type == YAML_MAPPING_END_EVENT;
        sf_code rc = end ? SF_OK : read_key(r, *out, &item, &key);
        yaml_event_delete(&item);
        if (rc != SF_OK || end) return rc;

        SF_TRY(next_event(r, &item));
        sf_yaml_node *child = NULL;
        rc = read_node(r, &item, depth + 1, &child);
        yaml_event_delete(&item);
        if (rc != SF_OK) return rc;
        child->key = key;
        child->key_loc = key_loc;
        add_child(*out, child);
    }
}

static sf_code read_node(reader *r, const yaml_event_t *ev, int depth, sf_yaml_node **out) {
    switch (ev->type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(r, ev, depth, out);
    case YAML_SEQUENCE_START_EVENT:
        return read_list(r, ev, depth, out);
    case YAML_MAPPING_START_EVENT:
        return read_map(r, ev, depth, out);
    case YAML_ALIAS_EVENT:
        return SF_FAIL_AT(r->err, SF_FORMAT, at(r, ev->start_mark),
                          "found the alias '*%.64s', expected a plain value",
                          (const char *)ev->data.alias.anchor);
    default:
        return SF_FAIL_AT(r->err, SF_FORMAT, at(r, ev->start_mark), "found no value, expected one");
    }
}

/* Reads one event of a kind that carries no data we keep. */
static sf_code expect(reader *r, yaml_event_type_t type, const char *else_found, const char *expected) {
    yaml_event_t ev;
    SF_TRY(next_event(r, &ev));
    sf_loc loc = at(r, ev.start_mark);
    bool ok = ev.type == type;
    yaml_event_delete(&ev);
    if (ok) return SF_OK;
    return SF_FAIL_AT(r->err, SF_FORMAT, loc, "found %s, expected %s", else_found, expected);
}

static sf_code read_stream(reader *r, sf_yaml_node **root) {
    SF_TRY(expect(r, YAML_STREAM_START_EVENT, "no text", "a YAML stream"));
    SF_TRY(expect(r, YAML_DOCUMENT_START_EVENT, "an empty file", "a mapping"));
    yaml_event_t ev;
    SF_TRY(next_event(r, &ev));
    sf_loc loc = at(r, ev.start_mark);
    sf_code rc = read_node(r, &ev, 1, root);
    yaml_event_delete(&ev);
    if (rc != SF_OK) return rc;
    if ((*root)->kind != SF_YAML_MAP)
        return SF_FAIL_AT(r->err, SF_FORMAT, loc, "found %s, expected a mapping",
                          (*root)->kind == SF_YAML_LIST ? "a list" : "a scalar");
    SF_TRY(expect(r, YAML_DOCUMENT_END_EVENT, "more text", "the end of the document"));
    return expect(r, YAML_STREAM_END_EVENT, "a second document", "one only");
}

sf_code sf_yaml_parse(sf_arena *a, const char *file, const char *text, size_t len, sf_yaml_node **root,
                      sf_err *err) {
    if (len > SF_YAML_MAX_BYTES)
        return SF_FAIL_AT(err, SF_FULL, ((sf_loc){file, 0, 0}), "%zu bytes, expected at most %zu", len,
                          SF_YAML_MAX_BYTES);
    reader r = {.arena = a, .file = file, .err = err};
    if (!yaml_parser_initialize(&r.parser)) {
        yaml_parser_delete(&r.parser);
        return sf_arena_full(err);
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    sf_yaml_node *node = NULL;
    sf_code rc = read_stream(&r, &node);
    yaml_parser_delete(&r.parser);
    if (rc == SF_OK) *root = node;
    return rc;
}
