#include "model/safetensors.h"
#include "model/gguf_priv.h"
#include "model/safetensors_priv.h"

#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SINGLE "model.safetensors"
#define INDEX  "model.safetensors.index.json"

static sf_code no_memory(const char *path, sf_err *err) {
    return SF_FAIL_AT(err, SF_NOMEM, ((sf_loc){path, 0, 0}), "no memory to open it");
}

static sf_code print_to(char **out, const char *a, const char *b, const char *c) {
    size_t size = strlen(a) + strlen(b) + strlen(c) + 1;
    *out = malloc(size);
    if (!*out) return SF_NOMEM;
    snprintf(*out, size, "%s%s%s", a, b, c);
    return SF_OK;
}

/* Maps the file called name in the directory f->path; "" is f->path itself. */
static sf_code map_one(sf_st_file *f, sf_err *err) {
    char *path = NULL;
    sf_err why = {0};
    if (print_to(&path, f->path, f->name[0] ? "/" : "", f->name) != SF_OK) return no_memory(f->path, err);
    sf_code rc = sf_map_open(path, &f->map, &why);
    f->base = f->map.base;
    f->len = f->map.len;
    free(path);
    return rc == SF_OK ? SF_OK : SF_ST_FAIL(f, rc, "%s", why.msg);
}

/* Fills f but for its tensors. Unless base is given the file is mapped. */
static sf_code open_file(sf_st_file *f, const char *path, const char *name, const void *base, size_t len,
                         sf_err *err) {
    f->path = path;
    f->name = name;
    f->map = SF_MAP_NONE;
    f->base = base;
    f->len = len;
    if (print_to(&f->label, name, name[0] ? ": " : "", "") != SF_OK) return no_memory(path, err);
    if (!base) SF_TRY(map_one(f, err));
    return sf_st_read_header(f, err);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const sf_st_tensor *const *)a)->t.name, (*(const sf_st_tensor *const *)b)->t.name);
}

/* Every tensor of the files, which are open. */
static sf_code collect(sf_safetensors *s, sf_err *err) {
    int64_t n = 0;
    for (int i = 0; i < s->n_files; i++) {
        s->files[i].first = (int)n;
        n += s->files[i].n;
        if (n > INT32_MAX) return SF_ST_FAIL(s, SF_FORMAT, "%lld tensors are too many", (long long)n);
    }
    s->tensors = calloc((size_t)n + 1, sizeof *s->tensors);
    s->sorted = calloc((size_t)n + 1, sizeof *s->sorted);
    if (!s->tensors || !s->sorted) return SF_ST_FAIL(s, SF_NOMEM, "no memory for %lld tensors", (long long)n);
    for (int i = 0; i < s->n_files; i++)
        SF_TRY(sf_st_read_tensors(&s->files[i], i, &s->tensors[s->files[i].first], err));
    s->n_tensors = (int)n;
    for (int i = 0; i < s->n_tensors; i++)
        s->sorted[i] = &s->tensors[i];
    qsort(s->sorted, (size_t)n, sizeof *s->sorted, by_name);
    return SF_OK;
}

/* Not where it is, but what it is called in the directory: it can't lead elsewhere. */
static bool plain_name(const char *name) {
    return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           strlen(name) <= SF_ST_NAME_MAX;
}

/* The files that weight_map names, each once, as the keys of *out. */
static sf_code files_of_map(sf_safetensors *s, const json_t *map, json_t **out, sf_err *err) {
    const char *tensor;
    json_t *file, *files = json_object();
    if (!files) return no_memory(s->path, err);
    json_object_foreach((json_t *)(uintptr_t)map, tensor, file) {
        const char *name = json_string_value(file);
        sf_code rc = SF_OK;
        if (!name || !plain_name(name)) {
            rc = SF_ST_FAIL(s, SF_FORMAT, INDEX ": tensor %.100s: its file is no name in this directory",
                            tensor);
        } else if (json_object_set_new(files, name, json_null()) != 0) {
            rc = no_memory(s->path, err);
        }
        if (rc != SF_OK) {
            json_decref(files);
            return rc;
        }
    }
    *out = files;
    return SF_OK;
}

/* All that are missing in one message. */
static sf_code check_present(sf_safetensors *s, json_t *files, sf_err *err) {
    const char *name;
    json_t *unused;
    int missing = 0, shown = 0;
    char list[300] = "";
    size_t at = 0;
    json_object_foreach(files, name, unused) {
        char *path = NULL;
        struct stat st;
        if (print_to(&path, s->path, "/", name) != SF_OK) return no_memory(s->path, err);
        bool absent = stat(path, &st) != 0 && errno == ENOENT;
        free(path);
        if (!absent) continue; /* what else may be wrong, opening says */
        missing++;
        if (shown + 1 == missing && at + strlen(name) + 3 < sizeof list) {
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", name);
            shown++;
        }
    }
    if (missing == 0) return SF_OK;
    if (shown < missing) {
        return SF_ST_FAIL(s, SF_NOT_FOUND, "%d of %zu files of " INDEX " are missing: %s and %d more",
                          missing, json_object_size(files), list, missing - shown);
    }
    return SF_ST_FAIL(s, SF_NOT_FOUND, "%d of %zu files of " INDEX " %s missing: %s", missing,
                      json_object_size(files), missing == 1 ? "is" : "are", list);
}

/* The index and the shards say the same of every tensor; so no name stands in two shards. */
static sf_code check_map(const sf_safetensors *s, const json_t *map, sf_err *err) {
    const char *name;
    json_t *file;
    for (int i = 0; i < s->n_tensors; i++) {
        const sf_st_file *f = &s->files[s->tensors[i].file];
        const char *said = json_string_value(json_object_get(map, s->tensors[i].t.name));
        if (!said) return SF_ST_FAIL(f, SF_FORMAT, "tensor %s is not in " INDEX, s->tensors[i].t.name);
        if (strcmp(said, f->name) != 0) {
            return SF_ST_FAIL(f, SF_FORMAT, "tensor %s is in %.100s by " INDEX, s->tensors[i].t.name, said);
        }
    }
    json_object_foreach((json_t *)(uintptr_t)map, name, file) {
        if (!sf_safetensors_find_tensor(s, name)) {
            return SF_ST_FAIL(s, SF_FORMAT, "%.100s: tensor %.100s is missing, which " INDEX " lists",
                              json_string_value(file), name);
        }
    }
    return SF_OK;
}

static sf_code read_index(sf_safetensors *s, json_t **out, sf_err *err) {
    const sf_st_file at = {.path = s->path, .label = (char[]){INDEX ": "}};
    char *path = NULL;
    sf_buf text = {0};
    sf_err why = {0};
    if (print_to(&path, s->path, "/", INDEX) != SF_OK) return no_memory(s->path, err);
    sf_code rc = sf_buf_read_regular(&text, path, SF_ST_INDEX_MAX, &why);
    if (rc != SF_OK) rc = SF_ST_FAIL(&at, rc, "%s", why.msg);
    if (rc == SF_OK) rc = sf_st_parse_json(&at, text.data ? text.data : "", text.len, out, err);
    sf_buf_fini(&text);
    free(path);
    return rc;
}

static sf_code open_shards(sf_safetensors *s, const json_t *map, sf_err *err) {
    const char *name;
    json_t *unused;
    SF_TRY(files_of_map(s, map, &s->shards, err));
    SF_TRY(check_present(s, s->shards, err));
    s->files = calloc(json_object_size(s->shards) + 1, sizeof *s->files);
    if (!s->files) return no_memory(s->path, err);
    json_object_foreach(s->shards, name, unused)
        SF_TRY(open_file(&s->files[s->n_files++], s->path, name, NULL, 0, err));
    SF_TRY(collect(s, err));
    return check_map(s, map, err);
}

static sf_code open_indexed(sf_safetensors *s, sf_err *err) {
    json_t *index = NULL;
    SF_TRY(read_index(s, &index, err));
    const json_t *map = json_object_get(index, "weight_map");
    sf_code rc = json_is_object(map)
                     ? open_shards(s, map, err)
                     : SF_ST_FAIL(s, SF_FORMAT, "%s: weight_map is missing or no object", INDEX);
    json_decref(index);
    return rc;
}

static sf_code open_single(sf_safetensors *s, const char *name, const void *base, size_t len, sf_err *err) {
    s->files = calloc(1, sizeof *s->files);
    if (!s->files) return no_memory(s->path, err);
    s->n_files = 1;
    SF_TRY(open_file(&s->files[0], s->path, name, base, len, err));
    return collect(s, err);
}

/* -1: no memory to ask. */
static int holds(const char *directory, const char *name) {
    char *path = NULL;
    if (print_to(&path, directory, "/", name) != SF_OK) return -1;
    int there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static sf_code open_directory(sf_safetensors *s, sf_err *err) {
    int single = holds(s->path, SINGLE), index = holds(s->path, INDEX);
    if (single < 0 || index < 0) return no_memory(s->path, err);
    if (single) return open_single(s, SINGLE, NULL, 0, err);
    if (index) return open_indexed(s, err);
    return SF_ST_FAIL(s, SF_NOT_FOUND, "the directory has neither %s nor " INDEX, SINGLE);
}

static sf_code open_common(const char *path, const void *bytes, size_t len, sf_safetensors **out,
                           sf_err *err) {
    struct stat st;
    sf_safetensors *s = calloc(1, sizeof *s);
    if (!s) return no_memory(path, err);
    s->path = path;
    s->label = "";
    bool directory = !bytes && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    sf_code rc = directory ? open_directory(s, err) : open_single(s, "", bytes, len, err);
    if (rc != SF_OK) {
        sf_safetensors_close(s);
        return rc;
    }
    *out = s;
    return SF_OK;
}

sf_code sf_safetensors_open(const char *path, sf_safetensors **out, sf_err *err) {
    return open_common(path, NULL, 0, out, err);
}

sf_code sf_safetensors_open_bytes(const char *path, const void *bytes, size_t len, sf_safetensors **out,
                                  sf_err *err) {
    return open_common(path, bytes, len, out, err);
}

void sf_safetensors_close(sf_safetensors *s) {
    if (!s) return;
    for (int i = 0; i < s->n_files; i++) {
        sf_st_file *f = &s->files[i];
        sf_map_close(&f->map);
        json_decref(f->header);
        free(f->label);
    }
    json_decref(s->shards);
    free(s->files);
    free(s->tensors);
    free(s->sorted);
    free(s);
}

const char *sf_safetensors_path(const sf_safetensors *s) {
    return s->path;
}

int sf_safetensors_n_tensors(const sf_safetensors *s) {
    return s->n_tensors;
}

const sf_st_tensor *sf_safetensors_tensor_at(const sf_safetensors *s, int i) {
    return &s->tensors[i];
}

static int name_is(const void *key, const void *item) {
    return strcmp(key, (*(const sf_st_tensor *const *)item)->t.name);
}

const sf_st_tensor *sf_safetensors_find_tensor(const sf_safetensors *s, const char *name) {
    if (s->n_tensors == 0) return NULL;
    const sf_st_tensor **t = bsearch(name, s->sorted, (size_t)s->n_tensors, sizeof *s->sorted, name_is);
    return t ? *t : NULL;
}

const char *sf_safetensors_label(const sf_safetensors *s, const sf_st_tensor *t) {
    return s->files[t->file].label;
}
