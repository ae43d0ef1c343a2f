/* One progress line on stderr: "label [####....] 57 %  12.3 MB/s  eta 3 s". Draws only when stderr is a
 * terminal (at most 10 times a second), and clears itself at the end. */
#ifndef SF_BASE_PROGRESS_H
#define SF_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sf_progress {
    const char *label, *unit; /* borrowed; unit "B" prints MB, otherwise the count */
    uint64_t total, done;
    double start_s, drawn_s;
    bool on;
} sf_progress;

void sf_progress_init(sf_progress *p, const char *label, const char *unit, uint64_t total);
void sf_progress_set(sf_progress *p, uint64_t done);                    /* one thread */
void sf_progress_note(sf_progress *p, uint64_t done, const char *note); /* with a short note at the end */
void sf_progress_fini(sf_progress *p);
double sf_now_s(void); /* monotonic seconds */

#endif
