#include "cli/info_cuda.h"

#include "api/json.h"

#include <stdio.h>

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
        sf_json_put(o, "graph", json_boolean(s.graph), ok);
        sf_json_put(o, "graph_us", s.timed ? json_real(s.graph_us) : json_null(), ok);
        sf_json_put(o, "eager_us", s.timed ? json_real(s.eager_us) : json_null(), ok);
        sf_json_push(list, o, ok);
    }
    return list;
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
    return sf_json_done(o, ok);
}

void sf_info_cuda_print(const sf_device *cuda, bool shapes) {
    const sf_cuda_start s = sf_cuda_start_get(cuda);
    const double gib = 1024.0 * 1024 * 1024;
    printf("gpu memory  weights %.2f GiB, KV %.2f GiB, activations %.2f GiB\n", (double)s.weight_bytes / gib,
           (double)s.kv_bytes / gib, (double)s.buffer_bytes / gib);
    printf("start       %d kernels (%d from the cache) in %.2f s, %d graphs in %.2f s\n", s.kernels, s.cached,
           s.compile_s, s.graphs, s.graphs_s);
    if (s.note[0]) printf("            %s\n", s.note);
    sf_cuda_shape_info i;
    for (int k = 0; shapes && sf_cuda_shape_get(cuda, k, &i); k++) {
        if (k == 0) printf("\nclass   rows  logit rows  kernels  launched   graph us   eager us\n");
        printf("%-6s  %4d  %10d  %7d  %-8s", class_name(i.cls), i.rows, i.logits, i.kernels,
               i.graph ? "graph" : "eager");
        if (i.timed) printf("  %9.1f  %9.1f", i.graph_us, i.eager_us);
        printf("\n");
    }
}
