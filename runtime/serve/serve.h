/* An OpenAI-compatible HTTP server over the engine. Two threads: one serves HTTP, one drives the device. */
#ifndef SF_SERVE_SERVE_H
#define SF_SERVE_SERVE_H

#include "api/request.h"
#include "engine/engine.h"

typedef struct sf_server sf_server;

/* Borrowed until the server is destroyed. */
typedef struct sf_serve_config {
    const char *host;
    int port;                    /* 0: any; sf_server_port tells */
    const char *const *api_keys; /* [n_api_keys]; none: everybody may */
    int n_api_keys;
    const char *model;              /* the name that requests and answers use */
    const char *ssl_cert, *ssl_key; /* PEM files; NULL: plain HTTP */
    const char *allowed_origin;     /* for CORS, or "*"; NULL: none */
    const char *version;
    bool log_json, log_prompts;
    int shutdown_timeout_s; /* what running requests may still take after SIGTERM */
    int max_context;        /* positions; the largest body follows from it */
    int receive_timeout_s;  /* for a request to come whole, and for a TLS handshake; then 408, and the end */
} sf_serve_config;

/* Binds and begins to serve on a thread of its own: until sf_server_run everything but /live answers 503.
 * Errors: SF_INVALID (host, certificate, key), SF_IO (the port is taken), SF_NOMEM. */
SF_CHECKED sf_code sf_server_create(const sf_serve_config *cfg, sf_server **out, sf_err *err);
int sf_server_port(const sf_server *s);
/* Drives the device until SIGTERM or SIGINT, then lets what runs end: no new requests, /health says 503, and
 * what is left after the time-out is cancelled. Thread: the one that opened the engine. Both arguments are
 * borrowed until sf_server_destroy. An error is the device's; all requests have been answered with it. */
SF_CHECKED sf_code sf_server_run(sf_server *s, sf_engine *e, const sf_api_model *m, sf_err *err);
void sf_server_destroy(sf_server *s);

#endif
