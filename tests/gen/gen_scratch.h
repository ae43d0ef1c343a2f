/* A folder for a test's files: make_scratch and remove_scratch are a group's setup and teardown. */
#ifndef SF_TESTS_GEN_SCRATCH_H
#define SF_TESTS_GEN_SCRATCH_H

#include "gen_test.h"

static char scratch[64];

static inline int make_scratch(void **state) {
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/sf_gen_XXXXXX");
    return go_to_root(state) || !mkdtemp(scratch);
}

static inline int remove_scratch(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    return system(command);
}

static inline const char *at(const char *name) {
    static char paths[16][128];
    static int next;
    char *p = paths[next++ % 16];
    snprintf(p, sizeof paths[0], "%s/%s", scratch, name);
    return p;
}

#endif
