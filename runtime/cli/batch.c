#include "cli/batch.h"

#include "base/progress.h"
#include "cli/batch_priv.h"
#include "cli/lines.h"
#include "cli/warn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNNING_MAX 1024 /* submitted and unfinished, so that memory does not grow with the input */
#define FINISHED_PER_RUNNING                                                                                 \
    4 /* answers that wait for an earlier one to be written, per request in progress */

typedef struct batch {
    sf_engine *e;
    const sf_api_model *m;
    const sf_cli_opts *o;
    sf_lines in, answers; /* answers.name NULL: none are given */
    sf_output *out;
    sf_output *report;
    batch_item *head, **tail; /* in the order of the input */
    batch_item *refused;      /* the last item, when the queue had no room for it */
    int running, items;       /* submitted and unfinished; in the list */
    int max_running;
    bool ended; /* no more lines */
    sf_warned warned;
    sf_progress bar;
    uint64_t written;
    sf_run_counts counts;
} batch;

static void append(batch *b, batch_item *it) {
    *b->tail = it;
    b->tail = &it->next;
    b->items++;
}

static sf_code submit(batch *b, batch_item *it, sf_err *err) {
    if (!it->req) return SF_OK;
    bool full;
    SF_TRY(batch_item_submit(b->e, it, &full, err));
    b->refused = full ? it : NULL;
    b->running += !full && it->req != NULL;
    return SF_OK;
}

static bool has_room(const batch *b) {
    return !b->ended && !b->refused && b->running < b->max_running &&
           b->items < b->max_running * FINISHED_PER_RUNNING;
}

/* The answer that belongs to the line just read, waited for; false: there is none any more. */
static sf_code next_answer(batch *b, sf_text *out, bool *there, sf_err *err) {
    sf_lines_state state = SF_LINES_AGAIN;
    while (state == SF_LINES_AGAIN && !sf_cli_signalled())
        SF_TRY(sf_lines_next(&b->answers, true, &state, &out->data, &out->len, err));
    *there = state == SF_LINES_LINE;
    return SF_OK;
}

static sf_code make_item(batch *b, sf_lines_state state, sf_text text, batch_item **out, sf_err *err) {
    sf_text answer;
    bool there = true;
    if (b->answers.name) SF_TRY(next_answer(b, &answer, &there, err));
    if (state == SF_LINES_LONG)
        return batch_item_reject(b->in.line, "the line is longer than 64 MiB", out, err);
    if (!there)
        return batch_item_reject(b->in.line, "the line has no answer: --answers has fewer lines", out, err);
    return batch_item_create(b->m, b->o, b->in.line, text, b->answers.name ? &answer : NULL, out, err);
}

/* Reads and submits lines while there is room. Blocks for input only when nothing else can be done. */
static sf_code take_lines(batch *b, sf_err *err) {
    if (b->refused) SF_TRY(submit(b, b->refused, err));
    while (has_room(b) && !sf_cli_signalled()) {
        sf_lines_state state;
        sf_text text;
        SF_TRY(sf_lines_next(&b->in, b->running == 0 && b->items == 0, &state, &text.data, &text.len, err));
        if (state == SF_LINES_AGAIN) break;
        if (state == SF_LINES_END) {
            b->ended = true;
            break;
        }
        batch_item *it;
        SF_TRY(make_item(b, state, text, &it, err));
        if (it->req) sf_cli_warn_request(&b->warned, b->m, &it->api, b->in.name, it->line);
        append(b, it);
        b->counts.requests++;
        SF_TRY(submit(b, it, err));
    }
    return SF_OK;
}

static bool was_cancelled(const sf_request *r) {
    for (int i = 0; i < sf_request_params(r)->n; i++) {
        sf_choice c;
        sf_request_choice(r, i, &c);
        if (c.finish == SF_FINISH_CANCELLED) return true;
    }
    return false;
}

/* Makes lines of the requests that have ended. Cancelled ones end without a line. */
static sf_code collect(batch *b, bool cancelled, sf_err *err) {
    for (batch_item *it = b->head; it; it = it->next) {
        if (!it->req || it == b->refused || !sf_request_done(it->req)) continue;
        b->running--;
        if (cancelled && was_cancelled(it->req)) {
            sf_request_destroy(it->req);
            it->req = NULL;
            continue;
        }
        SF_TRY(batch_item_finish(b->m, it, err));
        if (!it->failed) b->counts.prompt_tokens += it->n_prompt;
        b->counts.output_tokens += it->n_output;
    }
    return SF_OK;
}

static sf_code write_one(batch *b, batch_item *it, sf_err *err) {
    SF_TRY(sf_output_line(b->out, it->text, err));
    b->counts.failed += it->failed;
    char note[48];
    double spent = sf_now_s() - b->bar.start_s;
    snprintf(note, sizeof note, "%.1f tokens/s", (double)b->counts.output_tokens / (spent > 0 ? spent : 1));
    sf_progress_note(&b->bar, ++b->written, note);
    return SF_OK;
}

/* Writes what may be written: with `ordered`, up to the first unfinished item. */
static sf_code write_finished(batch *b, bool ordered, sf_err *err) {
    for (batch_item **at = &b->head; *at;) {
        batch_item *it = *at;
        if (!it->text) {
            if (ordered) break;
            at = &it->next;
            continue;
        }
        SF_TRY(write_one(b, it, err));
        *at = it->next;
        if (b->tail == &it->next) b->tail = at;
        b->items--;
        batch_item_destroy(it);
    }
    return SF_OK;
}

static sf_code run(batch *b, sf_err *err) {
    while (!sf_cli_signalled()) {
        SF_TRY(take_lines(b, err));
        if (b->running > 0) {
            bool busy;
            sf_err failed;
            sf_code rc = sf_sched_step(sf_engine_sched(b->e), &busy, &failed);
            SF_TRY(collect(b, false, err));
            SF_TRY(write_finished(b, b->o->ordered, err));
            if (rc != SF_OK) {
                *err = failed;
                return rc;
            }
        } else {
            SF_TRY(write_finished(b, b->o->ordered, err));
            if (b->ended && !b->head) return SF_OK;
        }
    }
    return SF_FAIL(err, SF_CANCELLED, "interrupted");
}

/* Frees slots and pages of what still runs, and writes the answers that were complete, whatever their order.
 */
static sf_code wind_up(batch *b, bool keep, sf_err *err) {
    for (batch_item *it = b->head; it; it = it->next)
        if (it->req && it != b->refused) sf_sched_cancel(sf_engine_sched(b->e), it->req);
    bool busy = b->running > 0;
    while (busy && b->running > 0) {
        sf_err ignored; /* the first error is the one to tell; every request has ended then */
        if (sf_sched_step(sf_engine_sched(b->e), &busy, &ignored) != SF_OK) busy = false;
        SF_TRY(collect(b, true, err));
    }
    return keep ? write_finished(b, false, err) : SF_OK;
}

static int finish(batch *b, sf_code rc, const sf_err *why) {
    int code = b->counts.failed ? SF_EXIT_FAILED : SF_EXIT_OK;
    sf_err err;
    if (rc != SF_OK) {
        sf_code wound = wind_up(b, !b->out->broken, &err); /* an input that cannot be read loses no answer */
        sf_progress_fini(&b->bar);
        if (rc == SF_CANCELLED) {
            code = 128 + sf_cli_signalled();
            sf_cli_error(code, "interrupted; %s holds %lld answer%s%s", b->out->name,
                         (long long)b->out->lines, sf_cli_s(b->out->lines),
                         b->out->partial ? " and the beginning of another" : "");
        } else {
            sf_cli_report(why);
            code = SF_EXIT_FAILED;
        }
        if (wound != SF_OK && wound != SF_CANCELLED) sf_cli_report(&err);
    }
    sf_progress_fini(&b->bar);
    sf_cli_warn_total(&b->warned);
    b->counts.seconds = sf_now_s() - b->bar.start_s;
    if (sf_output_close(b->out, &err) != SF_OK) code = sf_cli_report(&err);
    if (sf_cli_write_report(b->e, b->report, &b->counts, &err) != SF_OK) code = sf_cli_report(&err);
    if (code <= SF_EXIT_FAILED) sf_cli_print_figures(b->e, &b->counts);
    return code;
}

static void close_inputs(batch *b) {
    sf_lines_close(&b->in);
    if (b->answers.name) sf_lines_close(&b->answers);
}

int sf_cli_batch(sf_engine *e, const sf_api_model *m, const sf_cli_opts *o, sf_run_files *f) {
    batch b = {.e = e, .m = m, .o = o, .out = &f->out, .report = &f->report};
    b.tail = &b.head;
    int queue = sf_engine_sched_config(e)->max_queue;
    b.max_running = queue < RUNNING_MAX ? queue : RUNNING_MAX;
    sf_err err;
    if (sf_lines_open(&b.in, o->input, &err) != SF_OK) return sf_cli_report(&err);
    if ((o->answers && sf_lines_open(&b.answers, o->answers, &err) != SF_OK) ||
        sf_output_empty(b.out, &err) != SF_OK) {
        close_inputs(&b);
        return sf_cli_report(&err);
    }
    sf_cli_signals();
    sf_progress_init(&b.bar, "run", "requests", sf_lines_count(o->input));
    b.bar.on = b.bar.on && b.bar.total > 0;
    sf_code rc = run(&b, &err);
    int code = finish(&b, rc, &err);
    while (b.head) {
        batch_item *next = b.head->next;
        batch_item_destroy(b.head);
        b.head = next;
    }
    close_inputs(&b);
    return code;
}
