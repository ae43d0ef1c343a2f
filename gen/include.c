#include "include.h"

#include <string.h>
#include <unistd.h>

static const char mark[] = "#include \"";

const char *sf_include_find(const char *s, size_t *len) {
    for (const char *line = s; *line;) {
        const char *at = line + strspn(line, " \t");
        if (strncmp(at, mark, sizeof mark - 1) == 0) {
            *len = strcspn(at + sizeof mark - 1, "\"\n");
            return at + sizeof mark - 1;
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return NULL;
}

static int find_snippet(const sf_inputs *in, const char *name, size_t len) {
    for (int i = 0; i < in->n_snippets; i++)
        if (strlen(in->snippets[i].name) == len && memcmp(in->snippets[i].name, name, len) == 0) return i;
    return -1;
}

/* The runtime folder beside the templates'. */
static const char *runtime_dir(sf_arena *a, const char *template_dir) {
    size_t len = strlen(template_dir);
    while (len > 1 && template_dir[len - 1] == '/')
        len--;
    while (len > 0 && template_dir[len - 1] != '/')
        len--;
    return sf_arena_printf(a, "%.*sruntime", (int)len, template_dir);
}

/* The place of `at` in a file's text. */
static sf_loc place(const char *path, const char *text, const char *at) {
    sf_loc loc = {path, 1, 1};
    for (const char *s = text; s < at; s++) {
        loc.col++;
        if (*s != '\n') continue;
        loc.line++;
        loc.col = 1;
    }
    return loc;
}

/* One included file; folder: what its name is relative to, as output spells it. */
static sf_code read_one(sf_arena *a, const char *dir, const char *folder, const char *name, sf_inputs *in,
                        sf_err *err) {
    sf_snippet *s = &in->snippets[in->n_snippets];
    const char *slash = strrchr(name, '/');
    const char *input = sf_arena_printf(a, "%s/%.*s", folder, (int)(slash - name), name);
    s->name = name;
    s->path = sf_arena_printf(a, "%s/%s", dir, name);
    if (!input || !s->path) return sf_arena_full(err);
    SF_TRY(sf_inputs_read_file(a, in, s->path, input, SF_TEMPLATE_MAX_BYTES, &s->text, &s->len, err));
    in->n_snippets++;
    return SF_OK;
}

static sf_code read_of(sf_arena *a, const char *template_dir, const char *path, const char *text,
                       sf_inputs *in, sf_err *err) {
    size_t len = 0;
    for (const char *s = sf_include_find(text, &len); s; s = sf_include_find(s + len, &len)) {
        if (find_snippet(in, s, len) >= 0) continue;
        if (in->n_snippets == SF_SNIPPETS_MAX)
            return SF_FAIL_AT(err, SF_FULL, place(path, text, s), "over %d included files, expected fewer",
                              SF_SNIPPETS_MAX);
        char *name = sf_arena_text(a, s, len);
        const char *runtime = runtime_dir(a, template_dir);
        if (!name || !runtime) return sf_arena_full(err);
        bool snippet = strncmp(name, "snippets/", 9) == 0, device = strncmp(name, "device/", 7) == 0;
        if ((!snippet && !device) || strstr(name, ".."))
            return SF_FAIL_AT(err, SF_INVALID, place(path, text, s),
                              "includes %.80s, expected a file of snippets/ or device/", name);
        const char *dir = snippet ? template_dir : runtime;
        const char *whole = sf_arena_printf(a, "%s/%s", dir, name);
        if (!whole) return sf_arena_full(err);
        if (access(whole, R_OK) != 0)
            return SF_FAIL_AT(err, SF_NOT_FOUND, place(path, text, s), "includes %.80s, expected it in %s",
                              name, snippet ? "templates/" : "runtime/");
        SF_TRY(read_one(a, dir, snippet ? "templates" : "runtime", name, in, err));
    }
    return SF_OK;
}

sf_code sf_include_read(sf_arena *a, const char *template_dir, const char *const *sources, sf_inputs *in,
                        sf_err *err) {
    int done = 0;
    for (int fast = 0; fast < 2; fast++) {
        for (int i = 0; i < in->n_templates; i++)
            if (in->templates[i]->serves[SF_CLASS_PINNED] != fast)
                SF_TRY(read_of(a, template_dir, in->templates[i]->path, sources[i], in, err));
        for (; done < in->n_snippets; done++) /* grows on the way */
            SF_TRY(read_of(a, template_dir, in->snippets[done].path, in->snippets[done].text, in, err));
    }
    return SF_OK;
}

sf_code sf_include_mark(const sf_inputs *in, const char *path, const char *text, bool *used, sf_err *err) {
    size_t len = 0;
    for (const char *s = sf_include_find(text, &len); s; s = sf_include_find(s + len, &len)) {
        int found = find_snippet(in, s, len);
        if (found < 0 && strncmp(s, "snippets/", 9) == 0)
            return SF_FAIL_AT(err, SF_NOT_FOUND, ((sf_loc){path, 0, 0}),
                              "includes %.*s, expected it in templates/", len < 80 ? (int)len : 80, s);
        if (found < 0 || used[found]) continue;
        used[found] = true;
        SF_TRY(sf_include_mark(in, in->snippets[found].name, in->snippets[found].text, used, err));
    }
    return SF_OK;
}
