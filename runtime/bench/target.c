#include "bench/target.h"

#include "base/progress.h"

#include <errno.h>
#include <event2/http.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLICE_MS 100 /* between looks at whether the user has had enough */

static void take_path(sf_bench_target *t, const char *path) {
    snprintf(t->prefix, sizeof t->prefix, "%s", path ? path : "");
    size_t len = strlen(t->prefix);
    while (len > 0 && t->prefix[len - 1] == '/')
        t->prefix[--len] = 0;
    if (len >= 3 && strcmp(t->prefix + len - 3, "/v1") == 0) t->prefix[len - 3] = 0;
}

static sf_code take_uri(sf_bench_target *t, const char *url, const struct evhttp_uri *uri, sf_err *err) {
    const char *scheme = evhttp_uri_get_scheme(uri), *host = evhttp_uri_get_host(uri),
               *path = evhttp_uri_get_path(uri);
    const int port = evhttp_uri_get_port(uri);
    const bool tls = scheme && strcmp(scheme, "https") == 0;
    if (!tls && (!scheme || strcmp(scheme, "http") != 0))
        return SF_FAIL(err, SF_INVALID, "--base-url is \"%.200s\", expected http:// or https://", url);
    const size_t len = host ? strlen(host) : 0;
    const bool bracket = len > 2 && host[0] == '[' && host[len - 1] == ']';
    if (len == 0 || len >= sizeof t->host)
        return SF_FAIL(err, SF_INVALID, "--base-url is \"%.200s\", expected a host in it", url);
    if (evhttp_uri_get_query(uri) || evhttp_uri_get_fragment(uri) || evhttp_uri_get_userinfo(uri))
        return SF_FAIL(err, SF_INVALID,
                       "--base-url is \"%.200s\", expected scheme, host, port and path alone", url);
    if (path && strlen(path) >= sizeof t->prefix)
        return SF_FAIL(err, SF_INVALID, "--base-url has a path of more than %zu bytes", sizeof t->prefix - 1);
    t->tls = tls;
    t->port = port > 0 ? port : tls ? 443 : 80;
    snprintf(t->host, sizeof t->host, "%.*s", (int)(len - (bracket ? 2 : 0)), host + bracket);
    take_path(t, path);
    return SF_OK;
}

sf_code sf_bench_target_parse(sf_bench_target *t, const char *url, sf_err *err) {
    struct evhttp_uri *uri = evhttp_uri_parse(url);
    if (!uri) return SF_FAIL(err, SF_INVALID, "--base-url is \"%.200s\", expected http://host:port", url);
    sf_code rc = take_uri(t, url, uri, err);
    evhttp_uri_free(uri);
    return rc;
}

/* 0, or an errno. */
static int wait_connected(int fd, int timeout_s, int (*stopped)(void)) {
    const double end = sf_now_s() + timeout_s;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    while (sf_now_s() < end) {
        if (stopped && stopped()) return EINTR;
        if (poll(&p, 1, SLICE_MS) <= 0) continue;
        int why = 0;
        socklen_t size = sizeof why;
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size) == 0 ? why : errno;
    }
    return ETIMEDOUT;
}

static int try_one(const struct addrinfo *a, int timeout_s, int (*stopped)(void)) {
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    int why = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (why == EINPROGRESS) why = wait_connected(fd, timeout_s, stopped);
    close(fd);
    return why;
}

sf_code sf_bench_target_reach(sf_bench_target *t, int timeout_s, int (*stopped)(void), sf_err *err) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char port[8];
    int why = 0;
    snprintf(port, sizeof port, "%d", t->port);
    const int found = getaddrinfo(t->host, port, &hints, &list);
    if (found != 0) return SF_FAIL(err, SF_IO, "%s: %s", t->host, gai_strerror(found));
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        why = try_one(a, timeout_s, stopped);
        if (why == 0)
            why = getnameinfo(a->ai_addr, a->ai_addrlen, t->address, sizeof t->address, NULL, 0,
                              NI_NUMERICHOST) == 0
                      ? 0
                      : EADDRNOTAVAIL;
        if (why == 0) break;
    }
    freeaddrinfo(list);
    if (why == 0) return SF_OK;
    return SF_FAIL(err, SF_IO, "no server on %s port %d: %s", t->host, t->port, strerror(why));
}
