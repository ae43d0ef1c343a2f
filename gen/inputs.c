#include "inputs.h"

#include "base/hash.h"
#include "include.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

sf_code sf_inputs_read_file(sf_arena *a, sf_inputs *in, const char *path, const char *folder, size_t max,
                            const char **text, size_t *len, sf_err *err) {
    sf_buf b = {0};
    sf_input *f = &in->files[in->n_files];
    sf_code rc = sf_buf_read_file(&b, path, max, err);
    if (rc == SF_OK) {
        f->name = sf_arena_printf(a, "%s/%s", folder, base_name(path));
        *text = sf_arena_text(a, b.len ? b.data : "", b.len);
        *len = b.len;
        if (!f->name || !*text || !sf_sha256_of(*text, b.len, f->sha256)) rc = sf_arena_full(err);
    }
    if (rc == SF_OK) in->n_files++;
    sf_buf_fini(&b);
    return rc;
}

static sf_code read_yaml(sf_arena *a, sf_inputs *in, const char *path, const char *folder,
                         sf_yaml_node **root, sf_err *err) {
    const char *text = NULL;
    size_t len = 0;
    SF_TRY(sf_inputs_read_file(a, in, path, folder, SF_YAML_MAX_BYTES, &text, &len, err));
    return sf_yaml_parse(a, path, text, len, root, err);
}

static int by_name(const void *x, const void *y) {
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static bool ends_with(const char *s, const char *suffix) {
    size_t n = strlen(s), m = strlen(suffix);
    return n > m && strcmp(s + n - m, suffix) == 0;
}

sf_code sf_inputs_list(sf_arena *a, const char *dir, const char *suffix, int max, const char **out, int *n,
                       sf_err *err) {
    sf_code rc = SF_OK;
    int count = 0;
    sf_loc loc = {dir, 0, 0};
    *n = 0;
    DIR *d = opendir(dir);
    if (!d && errno == ENOENT) return SF_OK;
    if (!d) return SF_FAIL_AT(err, errno == ENOMEM ? SF_NOMEM : SF_IO, loc, "%s", strerror(errno));
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e) break;
        if (e->d_name[0] == '.' || !ends_with(e->d_name, suffix)) continue;
        if (count == max) {
            rc = SF_FAIL_AT(err, SF_FULL, loc, "over %d files, expected fewer", max);
            goto done;
        }
        out[count] = sf_arena_text(a, e->d_name, strlen(e->d_name));
        if (!out[count++]) {
            rc = sf_arena_full(err);
            goto done;
        }
    }
    if (errno) {
        rc = SF_FAIL_AT(err, SF_IO, loc, "%s", strerror(errno));
        goto done;
    }
    qsort(out, (size_t)count, sizeof *out, by_name);
    *n = count;
done:
    closedir(d);
    return rc;
}

/* sources [SF_TEMPLATES_MAX]: their texts. */
static sf_code read_templates(sf_arena *a, const char *template_dir, sf_inputs *in, const char **sources,
                              sf_err *err) {
    const char *names[SF_TEMPLATES_MAX];
    int n = 0;
    const char *folder = sf_arena_printf(a, "templates/%s", in->machine.backend);
    const char *dir = sf_arena_printf(a, "%s/%s", template_dir, in->machine.backend);
    if (!folder || !dir) return sf_arena_full(err);
    SF_TRY(sf_inputs_list(a, dir, in->machine.cuda ? ".cu" : ".c", SF_TEMPLATES_MAX, names, &n, err));
    for (int i = 0; i < n; i++) {
        const char *path = sf_arena_printf(a, "%s/%s", dir, names[i]), *text = NULL;
        size_t len = 0;
        if (!path) return sf_arena_full(err);
        SF_TRY(sf_inputs_read_file(a, in, path, folder, SF_TEMPLATE_MAX_BYTES, &text, &len, err));
        SF_TRY(
            sf_template_parse(a, path, in->files[in->n_files - 1].name, text, len, &in->templates[i], err));
        for (int j = 0; j < i; j++)
            if (strcmp(in->templates[i]->name, in->templates[j]->name) == 0)
                return SF_FAIL_AT(err, SF_INVALID, ((sf_loc){path, 1, 1}),
                                  "template %s is in %s too, expected distinct names", in->templates[i]->name,
                                  in->templates[j]->path);
        sources[i] = text;
        in->n_templates = i + 1;
    }
    return SF_OK;
}

static sf_code read_snippets(sf_arena *a, const char *template_dir, sf_inputs *in, sf_err *err) {
    const char *names[SF_SNIPPETS_MAX];
    int n = 0;
    const char *dir = sf_arena_printf(a, "%s/snippets", template_dir);
    if (!dir) return sf_arena_full(err);
    SF_TRY(sf_inputs_list(a, dir, ".h", SF_SNIPPETS_MAX, names, &n, err));
    for (int i = 0; i < n; i++) {
        sf_snippet *s = &in->snippets[i];
        const char *path = sf_arena_printf(a, "%s/%s", dir, names[i]);
        s->path = path;
        s->name = sf_arena_printf(a, "snippets/%s", names[i]);
        if (!path || !s->name) return sf_arena_full(err);
        SF_TRY(sf_inputs_read_file(a, in, path, "templates/snippets", SF_TEMPLATE_MAX_BYTES, &s->text,
                                   &s->len, err));
        in->n_snippets = i + 1;
    }
    return SF_OK;
}

sf_code sf_inputs_check_folder(const char *dir, sf_err *err) {
    DIR *d = opendir(dir);
    if (!d)
        return SF_FAIL_AT(err, errno == ENOMEM ? SF_NOMEM : SF_IO, ((sf_loc){dir, 0, 0}), "%s",
                          strerror(errno));
    closedir(d);
    return SF_OK;
}

sf_code sf_inputs_read(sf_arena *a, const char *model_path, const char *config_path, const char *template_dir,
                       sf_inputs **out, sf_err *err) {
    const char *sources[SF_TEMPLATES_MAX];
    sf_yaml_node *root = NULL;
    sf_inputs *in = sf_arena_alloc(a, 1, sizeof *in);
    if (!in) return sf_arena_full(err);
    SF_TRY(read_yaml(a, in, model_path, "models", &root, err));
    SF_TRY(sf_model_read(root, model_path, &in->model, err));
    SF_TRY(read_yaml(a, in, config_path, "build-configs", &root, err));
    SF_TRY(sf_machine_read(root, config_path, &in->machine, err));
    SF_TRY(sf_inputs_check_folder(template_dir, err));
    SF_TRY(read_templates(a, template_dir, in, sources, err));
    if (in->machine.cuda)
        SF_TRY(sf_include_read(a, template_dir, sources, in, err));
    else
        SF_TRY(read_snippets(a, template_dir, in, err));
    *out = in;
    return SF_OK;
}
