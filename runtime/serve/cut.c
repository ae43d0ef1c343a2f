/* Requests that end before they are whole: refused past evhttp, in the form of all errors, with the
 * connection. */
#include "serve/http_priv.h"
#include "serve/serve_priv.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Where reading had stopped at its limit it goes on, or evhttp would not see the end. */
void sf_conn_hang_up(sf_conn *c) {
    bufferevent_setwatermark(c->bev, EV_READ, 0, 0);
    shutdown(bufferevent_getfd(c->bev), SHUT_RDWR);
}

/* Past evhttp and its buffers. */
static void send_past(const sf_conn *c, const char *text, size_t len) {
    SSL *ssl = c->server->tls ? bufferevent_openssl_get_ssl(c->bev) : NULL;
    if (!ssl)
        (void)!send(bufferevent_getfd(c->bev), text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    else if (SSL_is_init_finished(ssl))
        (void)!SSL_write(ssl, text, (int)len);
}

static const struct {
    int status;
    const char *code, *message;
} cuts[] = {{408, "timeout", "the request did not come whole in time"},
            {413, "body_too_large", "the body is over the server's limit"},
            {417, "expectation_failed", "expected no Expect but 100-continue"},
            {431, "headers_too_large", "the head of the request is over the server's limit"},
            {501, "unknown_method", "the method is not known"},
            {400, "bad_request", "not a request of HTTP/1.1"}}; /* and any other */
enum { N_CUTS = sizeof cuts / sizeof *cuts };

/* From here on the connection is of no use, and no page of evhttp's goes out. */
static void refuse(sf_conn *c, int status) {
    int i = 0;
    while (i < N_CUTS - 1 && cuts[i].status != status)
        i++;
    c->ticket = (sf_ticket){.arrived_s = c->reading_s};
    sf_new_id("req-", c->ticket.id);
    c->refused = i + 1;
    c->reading_s = 0;
    c->busy = true;
    sf_log_request(c->server, &c->ticket, NULL, cuts[i].status, cuts[i].code);
}

static size_t answer_of(const sf_conn *c, char *out, size_t size) {
    char body[256];
    const int i = c->refused - 1;
    const int len = snprintf(
        body, sizeof body,
        "{\"error\":{\"message\":\"%s\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"%s\"}}",
        cuts[i].message, cuts[i].code);
    return (size_t)snprintf(out, size,
                            "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\n"
                            "X-Request-Id: %s\r\nServer: steadfast\r\nContent-Length: %d\r\n\r\n%s",
                            cuts[i].status, sf_http_reason(cuts[i].status), c->ticket.id, len, body);
}

void sf_conn_cut(sf_conn *c, int status) {
    char answer[640];
    if (bufferevent_getfd(c->bev) < 0) return;
    refuse(c, status);
    send_past(c, answer, answer_of(c, answer, sizeof answer));
    sf_conn_hang_up(c);
}

/* Whether what was added begins an error page of evhttp's: "HTTP/1.1 413 ...". 100: the client may go on. */
static bool begins_page(struct evbuffer *buf, size_t from, int *status) {
    char line[] = "HTTP/1.1 413";
    struct evbuffer_ptr at;
    if (evbuffer_ptr_set(buf, &at, from, EVBUFFER_PTR_SET) != 0) return false;
    if (evbuffer_copyout_from(buf, &at, line, sizeof line - 1) != sizeof line - 1) return false;
    *status = (int)strtol(line + 9, NULL, 10); /* three characters: no overflow */
    return strncmp(line, "HTTP/", 5) == 0 && *status >= 400;
}

/* evhttp writes its pages piece by piece, and closes gently once they are out. A socket's output is frozen at
 * its front between writes, and cannot even be read there; that of TLS never is, and must not be: it would be
 * sent again and again. */
void sf_conn_on_output(struct evbuffer *buf, const struct evbuffer_cb_info *info, void *ctx) {
    char answer[640];
    sf_conn *c = ctx;
    int status = 0;
    if (info->n_added == 0 || c->rewriting || (c->busy && !c->refused)) return;
    if (!c->server->tls) evbuffer_unfreeze(buf, 1);
    if (!c->busy && begins_page(buf, info->orig_size, &status)) refuse(c, status);
    if (c->refused) {
        c->rewriting = true;
        evbuffer_drain(buf, evbuffer_get_length(buf));
        evbuffer_add(buf, answer, answer_of(c, answer, sizeof answer));
        c->rewriting = false;
    }
    if (!c->server->tls) evbuffer_freeze(buf, 1);
}
