/* A machine's checked description (build-configs/Y.yaml): what it can do, and how the engine is to use it. */
#ifndef SF_GEN_MACHINE_H
#define SF_GEN_MACHINE_H

#include "device/plan.h"
#include "yaml_node.h"

#define SF_MACHINE_BUCKETS_MAX 32
#define SF_MACHINE_TUNES_MAX   64
#define SF_MACHINE_TILES_MAX   64
#define SF_TILE_MAX            8
#define SF_LIBRARY_USES_MAX    16

/* One entry of `tune: {TEMPLATE: {PARAM: value}}`. */
typedef struct sf_tune {
    const char *template, *param, *value;
    sf_loc template_loc, param_loc, value_loc;
} sf_tune;

/* CUDA: the measured best group, in tiles of 16 rows, of weights [n, k]. */
typedef struct sf_tile {
    int n, k, tile;
} sf_tile;

/* CUDA: an op that a library may serve in the fast class. */
typedef struct sf_library_use {
    const char *library, *op;
    sf_loc loc; /* the op's */
} sf_library_use;

typedef struct sf_machine {
    const char *file; /* as given, for messages */
    const char *name, *backend;
    sf_loc backend_loc;
    bool cuda; /* the backend is cuda; else cpu */
    bool isa[SF_ISA_COUNT];
    const char *arch; /* CUDA: "sm_90a" */
    int sms;          /* CUDA: multiprocessors */
    int n_tiles;
    sf_tile tiles[SF_MACHINE_TILES_MAX];
    double bandwidth_gbs;                           /* measured, GB/s */
    double gflops[SF_CLASS_COUNT];                  /* measured, GFLOP/s of a matrix product */
    const char *measured_source;                    /* how it was measured */
    int n_buckets, buckets[SF_MACHINE_BUCKETS_MAX]; /* ascending, the last is max_rows */
    int max_rows, max_logit_rows, context, max_seqs;
    int kv_page, kv_pages;
    int window, verify_wait, prefill_chunk, prefill_split;
    const char *policy;
    int n_library_uses;
    sf_library_use library_uses[SF_LIBRARY_USES_MAX];
    int n_tunes;
    sf_tune tunes[SF_MACHINE_TUNES_MAX];
} sf_machine;

/* Name of an instruction set, as the YAML and SF_ISA spell it. */
const char *sf_machine_isa_name(sf_isa isa);

/* The smallest row bucket that holds so many rows; rows <= max_rows. */
int sf_machine_bucket(const sf_machine *m, int rows);
/* Tiles of 16 rows in a group of a weight [n, k] whose rows make so many tiles: as measured, or an even share
 * for each multiprocessor, at most SF_TILE_MAX. */
int sf_machine_tile(const sf_machine *m, int n, int k, int tiles);

/* Reads a parsed file; the errors are as sf_model_read's. */
SF_CHECKED sf_code sf_machine_read(const sf_yaml_node *root, const char *file, sf_machine *out, sf_err *err);

#endif
