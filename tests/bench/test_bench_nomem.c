/* The client when libevent gets no memory, against a thread that counts what comes. */
#include "bench/run.h"

#include <event2/event.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

/* The timer and the request itself come before; without memory for the latter libevent 2.1.12 crashes. */
#define FIRST 6
#define OURS  14 /* four headers of three each, the body, the path */

static int left = -1; /* allocations until one fails; negative: none does */

static void *get(size_t size) {
    return left >= 0 && left-- == 0 ? NULL : malloc(size);
}

static void *get_again(void *old, size_t size) {
    return left >= 0 && left-- == 0 ? NULL : realloc(old, size);
}

typedef struct fixture {
    int listener;
    pthread_t thread;
    sf_bench_target target;
    sf_bench_client *client;
    int seen; /* requests */
} fixture;

/* Reads requests of a connection and answers them. */
static void talk(fixture *f, int fd) {
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    const struct timeval limit = {5, 0};
    char got[1000] = "";
    size_t len = 0;
    ssize_t n;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    while ((n = recv(fd, got + len, sizeof got - 1 - len, 0)) > 0) {
        got[len += (size_t)n] = 0;
        if (!strstr(got, "\r\n\r\n{}")) continue;
        f->seen++;
        len = 0;
        if (send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) return;
    }
}

static void *serve(void *ctx) {
    fixture *f = ctx;
    int fd;
    while ((fd = accept(f->listener, NULL, NULL)) >= 0) {
        talk(f, fd);
        close(fd);
    }
    return NULL;
}

static void start(fixture *f) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    sf_err err;
    *f = (fixture){.listener = socket(AF_INET, SOCK_STREAM, 0)};
    assert_int_equal(bind(f->listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(f->listener, 8), 0);
    assert_int_equal(getsockname(f->listener, (struct sockaddr *)&at, &size), 0);
    f->target = (sf_bench_target){.host = "127.0.0.1",
                                  .address = "127.0.0.1",
                                  .port = ntohs(at.sin_port),
                                  .api_key = "key",
                                  .timeout_s = 5};
    assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
    assert_int_equal(sf_bench_client_create(&f->target, &f->client, &err), SF_OK);
}

static void end(fixture *f) {
    sf_bench_client_destroy(f->client);
    shutdown(f->listener, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    close(f->listener);
}

static bool on_bytes(void *ctx, int status, const char *data, size_t len) {
    (void)ctx, (void)status, (void)data, (void)len;
    return true;
}

static void on_done(void *ctx, int status, const char *error) {
    (void)status, (void)error;
    *(bool *)ctx = true;
}

/* With a failure of its n-th allocation; the connection is there already. */
static sf_code ask(fixture *f, int n) {
    sf_err err;
    bool done = false;
    const sf_bench_exchange x = {
        .path = "/p", .body = "{}", .body_len = 2, .bytes = on_bytes, .done = on_done, .ctx = &done};
    left = n;
    const sf_code rc = sf_bench_client_start(f->client, &x, &err);
    left = -1;
    while (rc == SF_OK && !done)
        event_base_loop(sf_bench_client_base(f->client), EVLOOP_ONCE);
    return rc;
}

static void a_request_that_cannot_be_made_whole_is_not_sent(void **state) {
    (void)state;
    int n = FIRST;
    for (sf_code rc = SF_NOMEM; rc == SF_NOMEM; n++) {
        fixture f;
        start(&f);
        assert_int_equal(ask(&f, -1), SF_OK);
        rc = ask(&f, n);
        end(&f);
        if (rc == SF_NOMEM) assert_int_equal(f.seen, 1);
    }
    assert_true(n - 1 >= FIRST + OURS); /* what libevent adds itself may be missing then */
}

static void a_run_without_its_timers_is_out_of_memory(void **state) {
    (void)state;
    for (int n = 0; n < 3; n++) { /* the two events, and the room for the first of them */
        json_t *value = json_string("x");
        sf_bench_prompt prompt = {value, 1, 1};
        const sf_bench_dataset prompts = {&prompt, 1};
        const sf_bench_send send = {0};
        sf_bench_record record = {0};
        fixture f;
        double duration_s;
        sf_err err;
        start(&f);
        const sf_bench_run_config c = {
            .client = f.client, .prompts = &prompts, .endpoint = "/p", .model = "m"};
        left = n;
        assert_int_equal(sf_bench_run(&c, &send, 1, &record, &duration_s, &err), SF_NOMEM);
        left = -1;
        end(&f);
        assert_int_equal(f.seen, 0);
        sf_bench_record_fini(&record);
        json_decref(value);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_that_cannot_be_made_whole_is_not_sent),
        cmocka_unit_test(a_run_without_its_timers_is_out_of_memory),
    };
    event_set_mem_functions(get, get_again, free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
