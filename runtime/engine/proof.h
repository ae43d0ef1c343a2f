/* A note on disk that the whole selftest passed: for these numerics on this device, so that later starts need
 * a short probe only. */
#ifndef SF_ENGINE_PROOF_H
#define SF_ENGINE_PROOF_H

#include <stdbool.h>

/* fingerprint: of the numerics; device: GPU and driver. The sources that launch kernels and those of the
 * selftest are part of the note: a build where they differ proves again. dir NULL: the user's cache
 * (base/cache_dir.h). */
bool sf_proof_known(const char *dir, const char *fingerprint, const char *device);
/* False: it could not be kept; the next start then proves again. */
bool sf_proof_keep(const char *dir, const char *fingerprint, const char *device);

#endif
