#include "base/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BAR_CELLS   24
#define MIN_GAP_S   0.1
#define CLEAR_LINE  "\r\033[K"
#define MAX_ETA_S   359999.0 /* 99 h 59 min 59 s */
#define MAX_PERCENT 100.0

double sf_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void sf_progress_init(sf_progress *p, const char *label, const char *unit, uint64_t total) {
    *p = (sf_progress){.label = label, .unit = unit, .total = total};
    p->start_s = sf_now_s();
    p->drawn_s = p->start_s; /* work that ends within the first gap draws nothing */
    p->on = isatty(STDERR_FILENO) == 1;
}

static void rate_text(const sf_progress *p, double per_s, char out[48]) {
    if (strcmp(p->unit, "B") == 0) {
        snprintf(out, 48, "%.1f MB/s", per_s / 1e6);
    } else {
        snprintf(out, 48, "%.1f %.24s/s", per_s, p->unit);
    }
}

static void eta_text(double s, char out[32]) {
    if (s > MAX_ETA_S) s = MAX_ETA_S;
    unsigned left = (unsigned)(s + 0.5);
    if (left < 60) {
        snprintf(out, 32, "%u s", left);
    } else if (left < 3600) {
        snprintf(out, 32, "%u min %u s", left / 60, left % 60);
    } else {
        snprintf(out, 32, "%u h %u min", left / 3600, left / 60 % 60);
    }
}

static void draw(sf_progress *p, double now, const char *note) {
    double part = p->total ? (double)p->done / (double)p->total : 1.0;
    if (part > 1.0) part = 1.0;
    char bar[BAR_CELLS + 1];
    int full = (int)(part * BAR_CELLS);
    memset(bar, '#', (size_t)full);
    memset(bar + full, '.', (size_t)(BAR_CELLS - full));
    bar[BAR_CELLS] = 0;

    double spent = now - p->start_s;
    double per_s = spent > 0 ? (double)p->done / spent : 0;
    char rate[48], eta[32] = "?";
    rate_text(p, per_s, rate);
    uint64_t left = p->done < p->total ? p->total - p->done : 0;
    if (per_s > 0) eta_text((double)left / per_s, eta);
    fprintf(stderr, CLEAR_LINE "%s [%s] %.0f %%  %s  eta %s%s%s", p->label, bar, part * MAX_PERCENT, rate,
            eta, note ? "  " : "", note ? note : "");
    fflush(stderr);
    p->drawn_s = now;
}

void sf_progress_note(sf_progress *p, uint64_t done, const char *note) {
    p->done = done;
    if (!p->on) return;
    double now = sf_now_s();
    if (now - p->drawn_s < MIN_GAP_S) return;
    draw(p, now, note);
}

void sf_progress_set(sf_progress *p, uint64_t done) {
    sf_progress_note(p, done, NULL);
}

void sf_progress_fini(sf_progress *p) {
    if (p->on && p->drawn_s > p->start_s) {
        fputs(CLEAR_LINE, stderr);
        fflush(stderr);
    }
    p->on = false;
}
