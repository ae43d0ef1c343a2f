/* NVRTC, opened at run time: CUDA source to a cubin, with no GPU needed. */
#ifndef SF_DEVICE_CUDA_NVRTC_H
#define SF_DEVICE_CUDA_NVRTC_H

#include <stdbool.h>

#include "base/buf.h"
#include "device/cuda/report.h"

typedef struct sf_nvrtc_program *sf_nvrtc_handle;

typedef struct sf_nvrtc {
    int (*nvrtcVersion)(int *major, int *minor);
    const char *(*nvrtcGetErrorString)(int r);
    int (*nvrtcCreateProgram)(sf_nvrtc_handle *p, const char *text, const char *name, int n,
                              const char *const *headers, const char *const *names);
    int (*nvrtcDestroyProgram)(sf_nvrtc_handle *p);
    int (*nvrtcCompileProgram)(sf_nvrtc_handle p, int n, const char *const *options);
    int (*nvrtcGetCUBINSize)(sf_nvrtc_handle p, size_t *size);
    int (*nvrtcGetCUBIN)(sf_nvrtc_handle p, char *to);
    int (*nvrtcGetPTXSize)(sf_nvrtc_handle p, size_t *size);
    int (*nvrtcGetPTX)(sf_nvrtc_handle p, char *to);
    int (*nvrtcGetProgramLogSize)(sf_nvrtc_handle p, size_t *size);
    int (*nvrtcGetProgramLog)(sf_nvrtc_handle p, char *to);

    void *lib;
    int major, minor;
    char build[96]; /* "13.0, V13.0.88, CL-36424714": all that tells one compiler from another */
} sf_nvrtc;

/* A file that sources include, by the name in their #include. Borrowed. */
typedef struct sf_cuda_header {
    const char *name, *text;
} sf_cuda_header;

/* One source of one kernel. Borrowed; an sf_err may point to file and template. */
typedef struct sf_cuda_source {
    const char *name;     /* the kernel's, for messages */
    const char *file;     /* the source's */
    const char *template; /* the file that its #line names, or NULL */
    const char *text;
} sf_cuda_source;

typedef struct sf_cubin {
    sf_buf code; /* an ELF image for one architecture */
    sf_buf log;
    sf_cuda_report report; /* of log */
    bool cached;           /* came from the disk cache */
    double seconds;        /* that the compiler took; 0 when cached */
} sf_cubin;                /* zero-initialise; sf_cubin_fini frees */

void sf_cubin_fini(sf_cubin *c);

/* Errors: SF_UNSUPPORTED names the library or the function that is missing, or the version that is too old.
 */
SF_CHECKED sf_code sf_nvrtc_open(sf_nvrtc *n, sf_err *err);
/* The same over other file names (ended by NULL): tests. */
SF_CHECKED sf_code sf_nvrtc_open_names(sf_nvrtc *n, const char *const *names, sf_err *err);
void sf_nvrtc_close(sf_nvrtc *n);

/* The options of every compile, for a cache's key too: the fixed ones and the architecture's. Returns how
 * many. */
#define SF_NVRTC_OPTIONS_MAX 7
int sf_nvrtc_options(const sf_nvrtc *n, const char *arch, char arch_option[64],
                     const char *options[SF_NVRTC_OPTIONS_MAX]);

/* Compiles for an architecture ("sm_90a"). Any thread, several at once. Errors: SF_FORMAT at the place of the
 * first error (in the source, its template or a header), with the first lines of the compiler's log;
 * SF_NOMEM. */
SF_CHECKED sf_code sf_nvrtc_compile(const sf_nvrtc *n, const char *arch, const sf_cuda_source *source,
                                    const sf_cuda_header *headers, int n_headers, sf_cubin *out, sf_err *err);

#endif
