/* YAML read as a tree of located nodes (libyaml's events carry line and column). The subset is strict, so
 * that a file means one thing: no anchors, aliases, tags, duplicate keys or further documents.
 *
 * Every error carries file:line:column, what was found and what was expected. Nodes live in the arena; file
 * names are borrowed and must outlive nodes and errors. */
#ifndef SF_GEN_YAML_NODE_H
#define SF_GEN_YAML_NODE_H

#include "arena.h"

#include <stdbool.h>

#define SF_YAML_MAX_BYTES ((size_t)256 << 10)
#define SF_YAML_MAX_DEPTH 12
#define SF_YAML_MAX_NODES 4096

typedef enum sf_yaml_kind { SF_YAML_SCALAR, SF_YAML_LIST, SF_YAML_MAP } sf_yaml_kind;

typedef struct sf_yaml_node {
    sf_yaml_kind kind;
    sf_loc loc;
    const char *key; /* in a mapping: its key and where that stands; else NULL */
    sf_loc key_loc;
    const char *text;                         /* scalar: its value, without NUL bytes inside */
    bool quoted;                              /* scalar: quoted or a block, so never a number or a boolean */
    int n;                                    /* list, map: children */
    struct sf_yaml_node *first, *last, *next; /* children; next sibling */
} sf_yaml_node;

/* Parses len bytes into *root, which is a mapping. Errors: SF_FORMAT (syntax, or outside the subset), SF_FULL
 * (depth, nodes, bytes), SF_NOMEM. */
SF_CHECKED sf_code sf_yaml_parse(sf_arena *a, const char *file, const char *text, size_t len,
                                 sf_yaml_node **root, sf_err *err);

/* Fails at the first key that is not among keys (NULL-terminated); `what` names the mapping ("a model"). */
SF_CHECKED sf_code sf_yaml_check_keys(const sf_yaml_node *map, const char *what, const char *const *keys,
                                      sf_err *err);
/* The value of key, or NULL. */
const sf_yaml_node *sf_yaml_find(const sf_yaml_node *map, const char *key);

/* Values of required keys. Ranges are inclusive. SF_INVALID where the key is missing, or its value is of the
 * wrong kind or out of range. */
SF_CHECKED sf_code sf_yaml_get_int(const sf_yaml_node *map, const char *key, int lo, int hi, int *out,
                                   sf_err *err);
SF_CHECKED sf_code sf_yaml_get_num(const sf_yaml_node *map, const char *key, double lo, double hi,
                                   double *out, sf_err *err);
SF_CHECKED sf_code sf_yaml_get_bool(const sf_yaml_node *map, const char *key, bool *out, sf_err *err);
SF_CHECKED sf_code sf_yaml_get_text(const sf_yaml_node *map, const char *key, const char **out, sf_err *err);
/* A word of letters, digits, '-', '_' and '.', at most 64 long: a name that may stand in a file name. */
SF_CHECKED sf_code sf_yaml_get_name(const sf_yaml_node *map, const char *key, const char **out, sf_err *err);
/* *out is the index of the value in words (NULL-terminated). */
SF_CHECKED sf_code sf_yaml_get_word(const sf_yaml_node *map, const char *key, const char *const *words,
                                    int *out, sf_err *err);
/* A list of 1..max integers. */
SF_CHECKED sf_code sf_yaml_get_ints(const sf_yaml_node *map, const char *key, int lo, int hi, int max,
                                    int *out, int *n, sf_err *err);
/* A mapping with no other keys than `keys` (NULL-terminated; NULL: any). */
SF_CHECKED sf_code sf_yaml_get_map(const sf_yaml_node *map, const char *key, const char *const *keys,
                                   const sf_yaml_node **out, sf_err *err);
/* A list of 1..max nodes. */
SF_CHECKED sf_code sf_yaml_get_list(const sf_yaml_node *map, const char *key, int max,
                                    const sf_yaml_node **out, sf_err *err);

/* One node's value, as the getters above read it; `name` is for the message. */
SF_CHECKED sf_code sf_yaml_int(const sf_yaml_node *node, const char *name, int lo, int hi, int *out,
                               sf_err *err);
SF_CHECKED sf_code sf_yaml_num(const sf_yaml_node *node, const char *name, double lo, double hi, double *out,
                               sf_err *err);
SF_CHECKED sf_code sf_yaml_word(const sf_yaml_node *node, const char *name, const char *const *words,
                                int *out, sf_err *err);

#endif
