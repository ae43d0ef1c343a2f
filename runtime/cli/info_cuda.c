#include "cli/info_cuda.h"

#include "api/json.h"

static const char *class_name(sf_class cls) {
    return cls == SF_CLASS_PINNED ? "pinned" : "fast";
}

static json_t *shapes_json(const sf_device *cuda, bool *ok) {
    json_t *list = json_array();
    sf_cuda_shape_info s;
    for (int i = 0; sf_cuda_shape_get(cuda, i, &s); i++) {
        json_t *o = json_object();
        sf_json_put(o, "class", json_string(class_name(s.cls)), ok);
        sf_json_put(o, "rows", json_integer(s.rows), ok);
        sf_json_put(o, "logit_rows", json_integer(s.logits), ok);
        sf_json_put(o, "kernels", json_integer(s.kernels), ok);
        sf_json_put(o, "library", json_integer(s.library), ok);
        sf_json_put(o, "graph", json_boolean(s.graph), ok);
        sf_json_put(o, "graph_us", s.timed ? json_real(s.graph_us) : json_null(), ok);
        sf_json_put(o, "eager_us", s.timed ? json_real(s.eager_us) : json_null(), ok);
        sf_json_push(list, o, ok);
    }
    return list;
}

static json_t *library_json(const sf_device *cuda, bool *ok) {
    const sf_cuda_start s = sf_cuda_start_get(cuda);
    json_t *o = json_object(), *list = json_array();
    sf_cuda_library_info l;
    for (int i = 0; sf_cuda_library_get(cuda, i, &l); i++) {
        json_t *e = json_object();
        sf_json_put(e, "library", json_string(l.library), ok);
        sf_json_put(e, "op", json_string(l.op), ok);
        sf_json_put(e, "rows", json_integer(l.rows), ok);
        sf_json_put(e, "own_us", json_real(l.own_us), ok);
        sf_json_put(e, "library_us", json_real(l.library_us), ok);
        sf_json_put(e, "used", json_boolean(l.used), ok);
        sf_json_push(list, e, ok);
    }
    sf_json_put(o, "version", json_integer((json_int_t)s.library_version), ok);
    sf_json_put(o, "bytes", json_integer((json_int_t)s.library_bytes), ok);
    sf_json_put(o, "seconds", json_real(s.library_s), ok);
    sf_json_put(o, "note", s.library_note[0] ? json_string(s.library_note) : json_null(), ok);
    sf_json_put(o, "ops", list, ok);
    return o;
}

json_t *sf_info_cuda_json(const sf_device *cuda) {
    const sf_cuda_start s = sf_cuda_start_get(cuda);
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "kernels", json_integer(s.kernels), &ok);
    sf_json_put(o, "kernels_cached", json_integer(s.cached), &ok);
    sf_json_put(o, "compile_seconds", json_real(s.compile_s), &ok);
    sf_json_put(o, "graphs_seconds", json_real(s.graphs_s), &ok);
    sf_json_put(o, "weight_bytes", json_integer((json_int_t)s.weight_bytes), &ok);
    sf_json_put(o, "kv_bytes", json_integer((json_int_t)s.kv_bytes), &ok);
    sf_json_put(o, "buffer_bytes", json_integer((json_int_t)s.buffer_bytes), &ok);
    sf_json_put(o, "identity", json_string(sf_cuda_identity(cuda)), &ok);
    sf_json_put(o, "graphs", shapes_json(cuda, &ok), &ok);
    sf_json_put(o, "library", library_json(cuda, &ok), &ok);
    return sf_json_done(o, ok);
}

static void library_print(const sf_device *cuda, bool each) {
    const sf_cuda_start s = sf_cuda_start_get(cuda);
    sf_cuda_library_info l;
    const bool any = sf_cuda_library_get(cuda, 0, &l);
    if (s.library_version > 0)
        printf("library     cuBLASLt %zu serves products of the fast class: %.2f GiB of copies, %.2f s\n",
               s.library_version, (double)s.library_bytes / (1024.0 * 1024 * 1024), s.library_s);
    else if (any || s.library_note[0])
        printf("library     none: our own kernels serve all products\n");
    if (s.library_note[0]) printf("            %s\n", s.library_note);
    for (int i = 0; each && sf_cuda_library_get(cuda, i, &l); i++) {
        if (i == 0) printf("\nop         rows     own us  cublaslt us  used\n");
        printf("%-8s  %5d  %9.1f  %11.1f  %s\n", l.op, l.rows, l.own_us, l.library_us,
               l.used ? l.library : "own");
    }
}

void sf_info_cuda_print(const sf_device *cuda, bool shapes) {
    const sf_cuda_start s = sf_cuda_start_get(cuda);
    const double gib = 1024.0 * 1024 * 1024;
    printf("gpu memory  weights %.2f GiB, KV %.2f GiB, activations %.2f GiB\n", (double)s.weight_bytes / gib,
           (double)s.kv_bytes / gib, (double)s.buffer_bytes / gib);
    printf("start       %d kernels (%d from the cache) in %.2f s, %d graphs in %.2f s\n", s.kernels, s.cached,
           s.compile_s, s.graphs, s.graphs_s);
    if (s.note[0]) printf("            %s\n", s.note);
    library_print(cuda, shapes);
    sf_cuda_shape_info i;
    for (int k = 0; shapes && sf_cuda_shape_get(cuda, k, &i); k++) {
        if (k == 0) printf("\nclass   rows  logit rows  kernels  library  launched   graph us   eager us\n");
        printf("%-6s  %4d  %10d  %7d  %7d  %-8s", class_name(i.cls), i.rows, i.logits, i.kernels, i.library,
               i.graph ? "graph" : "eager");
        if (i.timed) printf("  %9.1f  %9.1f", i.graph_us, i.eager_us);
        printf("\n");
    }
}

void sf_info_cuda_library_note(const sf_cuda_start *s, FILE *to) {
    if (!s->library_note[0]) return;
    fprintf(to, "steadfast: %s %s\n",
            s->library_version > 0 ? "cuBLASLt serves the fast class, but not"
                                   : "cuBLASLt serves nothing, our own kernels make all products:",
            s->library_note);
}
