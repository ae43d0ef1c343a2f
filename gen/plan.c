#include "plan_priv.h"

#include "cost.h"
#include "expand.h"
#include "include.h"
#include "suggest.h"

#include <string.h>

typedef struct planner {
    sf_arena *arena;
    const sf_inputs *in;
    sf_planned *p;
    int n_kernels;
    sf_err *err;
} planner;

/* The range of t that covers a row count; NULL: none. */
static const sf_row_range *covering(const sf_template *t, int rows) {
    for (int i = 0; i < t->n_rows; i++)
        if (rows >= t->rows[i].lo && rows <= t->rows[i].hi) return &t->rows[i];
    return NULL;
}

/* Of two templates that cover a row count, the one made for fewer rows, then the one made for this class. */
static bool better(const sf_template *t, const sf_template *than, sf_class cls, int rows) {
    if (!than) return true;
    const sf_row_range *range = covering(t, rows), *other = covering(than, rows);
    if (range->hi != other->hi) return range->hi < other->hi;
    bool own = !t->serves[!cls], than_own = !than->serves[!cls];
    if (own != than_own) return own;
    return range->lo > other->lo;
}

/* NULL: an op that has nothing to do at so few rows. */
static sf_code choose(const planner *pl, const sf_op_desc *op, sf_class cls, int rows,
                      const sf_template **out) {
    const sf_template *best = NULL, *other = NULL;
    bool any = false;
    for (int i = 0; i < pl->in->n_templates; i++) {
        const sf_template *t = pl->in->templates[i];
        if (t->op != op->op || !t->serves[cls] || strcmp(t->backend, pl->in->machine.backend) != 0) continue;
        if (t->library) continue;
        any = true;
        if (!covering(t, rows)) continue;
        if (better(t, best, cls, rows)) {
            best = t;
            other = NULL;
        } else if (!better(best, t, cls, rows)) {
            other = t;
        }
    }
    sf_loc loc = pl->in->machine.backend_loc;
    if (!any)
        return SF_FAIL_AT(pl->err, SF_UNSUPPORTED, loc, "backend %s: no template for op %s (class %s)",
                          pl->in->machine.backend, sf_op_name(op->op), sf_class_name(cls));
    if (!best && !(op->op == SF_OP_ATTENTION_LONG && rows <= SF_FEW_ROWS))
        return SF_FAIL_AT(pl->err, SF_UNSUPPORTED, loc,
                          "backend %s: no template of class %s covers %d rows of op %s (%s)",
                          pl->in->machine.backend, sf_class_name(cls), rows, sf_op_name(op->op), op->name);
    if (other)
        return sf_template_fail(other, other->rows_line, 1, SF_INVALID, pl->err,
                                "template %s offers the same rows in class %s, expected one choice",
                                best->name, sf_class_name(cls));
    *out = best;
    return SF_OK;
}

/* The kernel of a template with these values: one that is planned already, or a new one. */
static sf_code find_kernel(planner *pl, int op, const sf_template *t, int rows, int *out) {
    sf_value values[SF_PARAMS_MAX] = {{0}};
    SF_TRY(sf_params_resolve(pl->in, &pl->p->ops.ops[op], rows, t, values, pl->err));
    for (int i = 0; i < pl->n_kernels; i++) {
        const sf_planned_kernel *k = &pl->p->kernels[i];
        bool same = k->t == t;
        for (int v = 0; same && v < t->n_params; v++)
            same = k->values[v].i == values[v].i && k->values[v].f == values[v].f;
        if (same) {
            *out = i;
            return SF_OK;
        }
    }
    if (pl->n_kernels == SF_KERNELS_MAX)
        return SF_FAIL(pl->err, SF_FULL, "over %d kernels, expected fewer", SF_KERNELS_MAX);
    sf_planned_kernel *k = &pl->p->kernels[pl->n_kernels];
    *k = (sf_planned_kernel){.t = t, .op = op};
    memcpy(k->values, values, sizeof values);
    *out = pl->n_kernels++;
    return SF_OK;
}

/* Routes of an op in a class: runs of row counts that one kernel serves. Another template or another row
 * bucket may mean another kernel. */
static sf_code route_op(planner *pl, int op, sf_class cls) {
    sf_op_desc *d = &pl->p->ops.ops[op].desc;
    const sf_machine *mc = &pl->in->machine;
    int limit = d->scope == SF_SCOPE_HEAD ? mc->max_logit_rows : mc->max_rows, n = 0;
    size_t most = (size_t)pl->in->n_templates * 2 + 1 + (size_t)mc->n_buckets;
    sf_route *routes = sf_arena_alloc(pl->arena, most, sizeof *routes);
    if (!routes) return sf_arena_full(pl->err);
    const sf_template *last = NULL;
    int last_bucket = 0;
    for (int rows = 1; rows <= limit; rows++) {
        const sf_template *t = NULL;
        int bucket = sf_machine_bucket(mc, rows), kernel = -1;
        SF_TRY(choose(pl, d, cls, rows, &t));
        if (t != last || bucket != last_bucket) {
            if (t) SF_TRY(find_kernel(pl, op, t, rows, &kernel));
            if (n == 0 || kernel != routes[n - 1].kernel) routes[n++].kernel = kernel;
        }
        last = t;
        last_bucket = bucket;
        routes[n - 1].rows_max = rows;
        routes[n - 1].us_at_max = sf_cost_op(mc, d, cls, rows).us;
    }
    d->n_routes[cls] = n;
    d->routes[cls] = routes;
    return SF_OK;
}

static const sf_template *library_template(const planner *pl, const sf_library_use *use, sf_op op,
                                           sf_library_part part) {
    for (int i = 0; i < pl->in->n_templates; i++) {
        const sf_template *t = pl->in->templates[i];
        if (t->library && t->part == part && t->op == op && strcmp(t->library, use->library) == 0) return t;
    }
    return NULL;
}

/* The op that the build configuration offers to a library. */
static sf_code offered_op(const planner *pl, const sf_library_use *use, int *out) {
    const char *names[SF_OPS_MAX + 1] = {NULL};
    for (int i = 0; i < pl->p->ops.n; i++) {
        names[i] = pl->p->ops.ops[i].desc.name;
        *out = i;
        if (strcmp(names[i], use->op) == 0) return SF_OK;
    }
    const char *close = sf_suggest(use->op, names);
    return SF_FAIL_AT(pl->err, SF_INVALID, use->loc, "op '%.64s' is unknown, %s%s%s", use->op,
                      close ? "did you mean '" : "expected one that multiplies", close ? close : "",
                      close ? "'?" : "");
}

static sf_code check_offer(planner *pl, const sf_library_use *use, const sf_op_spec *s,
                           const sf_template *t) {
    if (!t || s->desc.scope != SF_SCOPE_LAYER)
        return SF_FAIL_AT(pl->err, SF_INVALID, use->loc, "op %s by %s, expected a product of a layer",
                          use->op, use->library);
    if (t->rows[0].lo > pl->in->machine.max_rows)
        return SF_FAIL_AT(pl->err, SF_INVALID, use->loc,
                          "%s serves from %d rows, expected max_rows over that", use->library, t->rows[0].lo);
    if (s->desc.library)
        return SF_FAIL_AT(pl->err, SF_INVALID, use->loc, "op %s stands twice, expected once", use->op);
    return SF_OK;
}

static sf_code route_library(planner *pl, const sf_library_use *use) {
    int op = 0;
    SF_TRY(offered_op(pl, use, &op));
    sf_op_spec *s = &pl->p->ops.ops[op];
    const bool swiglu = s->epilogue == SF_EPILOGUE_SWIGLU;
    const sf_template *t = library_template(pl, use, s->desc.op, SF_PART_WEIGHT);
    const sf_template *finish = swiglu ? library_template(pl, use, s->desc.op, SF_PART_SWIGLU) : NULL;
    SF_TRY(check_offer(pl, use, s, swiglu && !finish ? NULL : t));
    sf_library_route *r = sf_arena_alloc(pl->arena, 1, sizeof *r);
    if (!r) return sf_arena_full(pl->err);
    *r = (sf_library_route){use->library, t->rows[0].lo, 0, -1, s->epilogue == SF_EPILOGUE_ADD};
    SF_TRY(find_kernel(pl, op, t, t->rows[0].lo, &r->kernel));
    if (finish) SF_TRY(find_kernel(pl, op, finish, t->rows[0].lo, &r->finish));
    s->desc.library = r;
    return SF_OK;
}

/* CUDA: what the kernels are compiled from. */
static sf_code fill_sources(planner *pl, sf_kernel *table) {
    bool used[SF_SNIPPETS_MAX] = {false};
    sf_plan *plan = &pl->p->plan;
    sf_source_file *headers = sf_arena_alloc(pl->arena, (size_t)pl->in->n_snippets + 1, sizeof *headers);
    if (!headers) return sf_arena_full(pl->err);
    for (int i = 0; i < pl->n_kernels; i++) {
        const sf_planned_kernel *k = &pl->p->kernels[i];
        table[i].source = k->text;
        SF_TRY(sf_include_mark(pl->in, k->t->path, k->text, used, pl->err));
    }
    for (int i = 0; i < pl->in->n_snippets; i++)
        if (used[i])
            headers[plan->n_headers++] = (sf_source_file){pl->in->snippets[i].name, pl->in->snippets[i].text};
    plan->headers = headers;
    plan->arch = pl->in->machine.arch;
    plan->sms = pl->in->machine.sms;
    return SF_OK;
}

static sf_code expand_kernels(planner *pl) {
    sf_plan *plan = &pl->p->plan;
    sf_kernel *table = sf_arena_alloc(pl->arena, (size_t)pl->n_kernels, sizeof *table);
    if (!table) return sf_arena_full(pl->err);
    SF_TRY(
        sf_plan_name_kernels(pl->arena, pl->in, &pl->p->ops, pl->p->kernels, table, pl->n_kernels, pl->err));
    for (int i = 0; i < pl->n_kernels; i++) {
        sf_planned_kernel *k = &pl->p->kernels[i];
        table[i].template = k->t->name;
        table[i].order = k->t->order;
        table[i].cls = sf_template_class(k->t);
        sf_buf b = {0};
        sf_code rc = sf_expand(k->t, k->values, table[i].name, &b, pl->err);
        if (rc == SF_OK) {
            k->text = sf_arena_text(pl->arena, b.len ? b.data : "", b.len);
            k->len = b.len;
            if (!k->text) rc = sf_arena_full(pl->err);
        }
        sf_buf_fini(&b);
        if (rc != SF_OK) return rc;
    }
    plan->kernels = table;
    plan->n_kernels = pl->n_kernels;
    return pl->in->machine.cuda ? fill_sources(pl, table) : SF_OK;
}

const char *sf_route_name(const sf_plan *p, const sf_route *r) {
    return r->kernel < 0 ? "none" : p->kernels[r->kernel].name;
}

static sf_code fill_buckets(planner *pl) {
    const sf_machine *mc = &pl->in->machine;
    sf_bucket *b = sf_arena_alloc(pl->arena, (size_t)mc->n_buckets, sizeof *b);
    if (!b) return sf_arena_full(pl->err);
    for (int i = 0; i < mc->n_buckets; i++) {
        b[i].rows_max = mc->buckets[i];
        for (int c = 0; c < SF_CLASS_COUNT; c++)
            b[i].us[c] = sf_cost_pass_us(mc, &pl->in->model.desc, &pl->p->ops, (sf_class)c, mc->buckets[i]);
    }
    pl->p->plan.buckets = b;
    pl->p->plan.n_buckets = mc->n_buckets;
    return SF_OK;
}

static sf_code isa_text(planner *pl, const char **out) {
    const char *text = "";
    for (int i = 0; i < SF_ISA_COUNT && text; i++)
        if (pl->in->machine.isa[i])
            text =
                sf_arena_printf(pl->arena, "%s%s%s", text, *text ? " " : "", sf_machine_isa_name((sf_isa)i));
    *out = text;
    return text ? SF_OK : sf_arena_full(pl->err);
}

static sf_code fill_plan(planner *pl) {
    const sf_model_desc *m = &pl->in->model.desc;
    const sf_machine *c = &pl->in->machine;
    sf_plan *plan = &pl->p->plan;
    plan->engine = sf_arena_printf(pl->arena, "%s-%s", m->name, c->name);
    sf_op_desc *ops = sf_arena_alloc(pl->arena, (size_t)pl->p->ops.n, sizeof *ops);
    if (!plan->engine || !ops) return sf_arena_full(pl->err);
    for (int i = 0; i < pl->p->ops.n; i++)
        ops[i] = pl->p->ops.ops[i].desc;
    SF_TRY(isa_text(pl, &plan->isas));
    plan->backend = c->backend;
    plan->config = c->name;
    plan->model = *m;
    plan->page_size = c->kv_page;
    plan->max_rows = c->max_rows;
    plan->max_logit_rows = c->max_logit_rows;
    plan->max_context = c->context < m->context ? c->context : m->context;
    plan->max_seqs = c->max_seqs;
    plan->kv_pages = c->kv_pages;
    plan->window = c->window;
    plan->prefill_chunk = c->prefill_chunk;
    plan->verify_wait = c->verify_wait;
    plan->prefill_split = c->prefill_split;
    plan->policy = c->policy;
    plan->n_ops = pl->p->ops.n;
    plan->ops = ops;
    plan->n_weights = pl->p->ops.n_weights;
    plan->weights = pl->p->ops.weights;
    memcpy(plan->bufs, pl->p->ops.bufs, sizeof plan->bufs);
    return SF_OK;
}

sf_code sf_planned_build(sf_arena *a, const sf_inputs *in, sf_planned **out, sf_err *err) {
    sf_planned *p = sf_arena_alloc(a, 1, sizeof *p);
    if (!p) return sf_arena_full(err);
    planner pl = {.arena = a, .in = in, .p = p, .err = err};
    p->in = in;
    p->kernels = sf_arena_alloc(a, SF_KERNELS_MAX, sizeof *p->kernels);
    if (!p->kernels) return sf_arena_full(err);
    SF_TRY(sf_ops_build(a, &in->model, &in->machine, &p->ops, err));
    sf_cost_fill(&in->model.desc, &p->ops);
    SF_TRY(sf_params_check_tunes(in, err));
    for (int i = 0; i < p->ops.n; i++)
        for (int c = 0; c < SF_CLASS_COUNT; c++)
            SF_TRY(route_op(&pl, i, (sf_class)c));
    for (int i = 0; i < in->machine.n_library_uses; i++)
        SF_TRY(route_library(&pl, &in->machine.library_uses[i]));
    SF_TRY(expand_kernels(&pl));
    SF_TRY(fill_buckets(&pl));
    SF_TRY(fill_plan(&pl));
    SF_TRY(sf_plan_hashes(a, p, err));
    *out = p;
    return SF_OK;
}
