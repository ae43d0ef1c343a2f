#include "plan_priv.h"

#include "expand.h"

#include <ctype.h>
#include <string.h>

/* Types in a kernel's name: those of the operands that it reads most of. */
static const char *types(sf_op op) {
    bool half = op == SF_OP_GEMM || op == SF_OP_ATTENTION || op == SF_OP_ATTENTION_LONG || op == SF_OP_EMBED;
    return half ? "bf16" : "f32";
}

/* <op>[_<site>]_<types>[_<tile>]_<backend>_<class> */
static sf_code kernel_name(sf_arena *a, const sf_inputs *in, const sf_ops *ops, const sf_planned_kernel *k,
                           bool with_site, const char **out, sf_err *err) {
    const char *op = sf_op_name(k->t->op), *site = ops->ops[k->op].desc.name;
    bool add = with_site && strcmp(site, op) != 0;
    sf_buf tile = {0};
    sf_code rc = sf_expand_tile(k->t, k->values, &tile, err);
    if (rc == SF_OK) {
        *out = sf_arena_printf(a, "%s%s%s_%s%s%s_%s_%s", op, add ? "_" : "", add ? site : "", types(k->t->op),
                               tile.len ? "_" : "", tile.len ? tile.data : "", in->machine.backend,
                               sf_class_name(sf_template_class(k->t)));
        if (!*out) rc = sf_arena_full(err);
    }
    sf_buf_fini(&tile);
    return rc;
}

static sf_code check_name(const sf_planned_kernel *k, const char *name, sf_err *err) {
    for (const char *s = name; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return sf_template_fail(k->t, k->t->tile_line, k->t->tile.col, SF_INVALID, err,
                                    "kernel name '%s', expected letters, digits and '_'", name);
    return SF_OK;
}

/* Kernels of one op for different sites: each is then named for its own. */
static bool sites(const sf_planned_kernel *x, const sf_planned_kernel *y) {
    return x->t->op == y->t->op && x->op != y->op;
}

sf_code sf_plan_name_kernels(sf_arena *a, const sf_inputs *in, const sf_ops *ops,
                             const sf_planned_kernel *kernels, sf_kernel *table, int n, sf_err *err) {
    const char *names[SF_KERNELS_MAX];
    for (int i = 0; i < n; i++)
        SF_TRY(kernel_name(a, in, ops, &kernels[i], false, &names[i], err));
    for (int i = 0; i < n; i++) {
        bool shared = false;
        for (int j = 0; j < n; j++)
            shared =
                shared || (j != i && (strcmp(names[i], names[j]) == 0 || sites(&kernels[i], &kernels[j])));
        table[i].name = names[i];
        if (shared) SF_TRY(kernel_name(a, in, ops, &kernels[i], true, &table[i].name, err));
        SF_TRY(check_name(&kernels[i], table[i].name, err));
        for (int j = 0; j < i; j++)
            if (strcmp(table[i].name, table[j].name) == 0)
                return SF_FAIL_AT(
                    err, SF_INVALID, ((sf_loc){kernels[i].t->path, 0, 0}),
                    "gives a kernel named %s, as %s does, expected '//@ name' to tell them apart",
                    table[i].name, kernels[j].t->path);
        table[i].file = sf_arena_printf(a, "kernels/%s.%s", table[i].name, in->machine.cuda ? "cu" : "c");
        if (!table[i].file) return sf_arena_full(err);
    }
    return SF_OK;
}
