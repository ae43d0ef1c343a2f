"""A server that answers completions as a test says, down to the byte, for clients under test."""

import json
import socketserver
import ssl
import threading


def event(text=None, finish=None, **more):
    """A chunk of a completion as bytes of an event stream."""
    choices = [] if text is None else [{"index": 0, "text": text, "finish_reason": finish}]
    return b"data: " + json.dumps({"id": "x", "object": "text_completion", "choices": choices, **more}).encode() + b"\n\n"


def usage(prompt, output):
    return event(usage={"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output})


DONE = b"data: [DONE]\n\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Fake:
    """answer(call) is asked for each POST; call.body is the request, call.send and call.chunk write. Of what was seen: bodies,
    headers, connections, and most, the answers in progress at once. gets(path): (status, body) of a GET, or None as if it were
    not given; it may wait for ended."""

    def __init__(self, answer, models=("fake",), certificate=None, port=0, gets=None):
        self.answer, self.models, self.gets = answer, models, gets
        self.bodies, self.headers, self.connections, self.now, self.most = [], [], 0, 0, 0
        self.lock = threading.Lock()
        self.ended = threading.Event()  # for answers that wait for the test's end
        fake = self

        class Handler(socketserver.StreamRequestHandler):
            disable_nagle_algorithm = True  # else an answer's chunks wait for an acknowledgement of its head

            def handle(self):
                with fake.lock:
                    fake.connections += 1
                try:
                    while fake.one(self):
                        pass
                except OSError:
                    pass

        class Listener(socketserver.ThreadingTCPServer):
            daemon_threads, allow_reuse_address, request_queue_size = True, True, 1024

            def get_request(self):
                s, where = super().get_request()
                return (certificate.wrap_socket(s, server_side=True) if certificate else s), where

            def handle_error(self, request, client_address):
                pass

        self.listener = Listener(("127.0.0.1", port), Handler)
        self.port = self.listener.server_address[1]
        threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.listener.shutdown()
        self.listener.server_close()

    def got(self, path):
        found = path == "/v1/models"
        return (200, json.dumps({"data": [{"id": m} for m in self.models]}).encode()) if found else (404, b"{}")

    def one(self, c):
        """Reads one request and answers it; whether the connection goes on."""
        line = c.rfile.readline().split()
        if not line:
            return False
        headers = {}
        while (h := c.rfile.readline().strip()):
            key, value = h.decode().split(":", 1)
            headers[key.lower()] = value.strip()
        body = c.rfile.read(int(headers.get("content-length", 0)))
        if line[0] == b"GET":
            status, text = (self.gets and self.gets(line[1].decode())) or self.got(line[1].decode())
            c.wfile.write(b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text))
            return True
        with self.lock:
            self.bodies.append(json.loads(body))
            self.headers.append(headers)
            self.now += 1
            self.most = max(self.most, self.now)
            number = len(self.bodies) - 1
        try:
            return self.answer(Call(c, self.bodies[number], number)) is not False
        finally:
            with self.lock:
                self.now -= 1


class Call:
    def __init__(self, connection, body, number):
        self.wfile, self.body, self.number = connection.wfile, body, number

    def send(self, data):
        self.wfile.write(data)
        self.wfile.flush()

    def chunk(self, data):
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def stream(self, *events):
        """A whole answer, one HTTP chunk an event."""
        self.send(HEAD)
        for e in events:
            self.chunk(e)
        self.send(b"0\r\n\r\n")


def authority(tmp):
    """(server's context, path of its self-signed certificate)"""
    import subprocess

    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tmp + "/k", "-out", tmp + "/c", "-days", "1",
                    "-subj", "/CN=elsewhere", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp + "/c", tmp + "/k")
    return context, tmp + "/c"
