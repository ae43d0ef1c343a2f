/* What HTTP asks for and how it is answered: the end points, and answers in one piece. HTTP thread only. */
#ifndef SF_SERVE_HTTP_PRIV_H
#define SF_SERVE_HTTP_PRIV_H

#include "api/json.h"
#include "serve/serve.h"

#include <event2/http.h>

typedef struct sf_endpoint {
    const char *path, *methods; /* methods: "GET,HEAD"; a path that ends with / stands for all below it */
    bool open;                  /* needs no key */
    bool early;                 /* answers while the model is being loaded */
    void (*handle)(sf_server *s, struct evhttp_request *req);
    const char *answer; /* a shape of shapes.c, or a media type */
    const char *summary;
} sf_endpoint;
extern const sf_endpoint sf_endpoints[];
extern const int sf_n_endpoints;

/* shapes.c: the schemas of all answers by name, for /openapi.json. Owned by the caller. */
json_t *sf_shapes_json(bool *ok);

/* evhttp's callback for every request: finds the end point, checks method, key and state, and calls it. */
void sf_http_dispatch(struct evhttp_request *req, void *server);
/* text, len bytes of it, is copied. */
void sf_http_text(sf_server *s, struct evhttp_request *req, int status, const char *type, const char *text,
                  size_t len);
/* Takes body; NULL: there was no memory for it, which is answered instead. Returns the status sent. */
int sf_http_json(sf_server *s, struct evhttp_request *req, int status, json_t *body);
extern const char sf_http_nomem[]; /* that error's JSON */
/* The same with 200, and a line in the log. */
void sf_http_ok(sf_server *s, struct evhttp_request *req, json_t *body);
void sf_http_error(sf_server *s, struct evhttp_request *req,
                   const sf_api_error *e); /* and a line in the log */
/* Without the line; returns the status sent. */
int sf_http_refuse(sf_server *s, struct evhttp_request *req, const sf_api_error *e);
const char *sf_http_reason(int status); /* HTTP's own phrase */
const char *sf_http_method(struct evhttp_request *req);
/* The same from its parts; reason is the error's code. */
void sf_http_fail(sf_server *s, struct evhttp_request *req, int status, const char *type, const char *reason,
                  const char *fmt, ...) __attribute__((format(printf, 6, 7)));
void sf_http_headers(sf_server *s, struct evhttp_request *req); /* those that every answer has */
/* The body as a JSON object. */
SF_CHECKED sf_code sf_http_body(struct evhttp_request *req, json_t **out, sf_api_error *err);
/* prefix and 96 random bits in hexadecimal. */
void sf_new_id(const char *prefix, char out[48]);

/* ---- handlers: call.c, info.c, openapi.c ---- */
void sf_handle_completions(sf_server *s, struct evhttp_request *req);
void sf_handle_chat(sf_server *s, struct evhttp_request *req);
void sf_handle_audit(sf_server *s, struct evhttp_request *req);
void sf_handle_models(sf_server *s, struct evhttp_request *req);
void sf_handle_page(sf_server *s, struct evhttp_request *req);
void sf_handle_health(sf_server *s, struct evhttp_request *req);
void sf_handle_live(sf_server *s, struct evhttp_request *req);
void sf_handle_version(sf_server *s, struct evhttp_request *req);
void sf_handle_metrics(sf_server *s, struct evhttp_request *req);
void sf_handle_tokenize(sf_server *s, struct evhttp_request *req);
void sf_handle_detokenize(sf_server *s, struct evhttp_request *req);
void sf_handle_openapi(sf_server *s, struct evhttp_request *req);

#endif
