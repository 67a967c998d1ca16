"""What several integration tests need beside the harness."""
import contextlib
import http.server
import json
import pathlib
import re
import socket
import subprocess
import threading
import time

from harness import PATIENCE_S, Process, call, program


def metric(port, name, **labels):
    """The value of a metric's one series that has these labels; None: there is none."""
    for line in call(port, "GET", "/metrics").body.decode().splitlines():
        found = re.fullmatch(re.escape(name) + r"(?:\{(.*)\})? (\S+)", line)
        if found and all(f'{key}="{value}"' in (found.group(1) or "") for key, value in labels.items()):
            return float(found.group(2))
    return None


def wait_until(test, condition, what):
    """Until the condition holds, which ends the wait and is given back."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        result = condition()
        if result:
            return result
        test.assertLess(time.monotonic(), deadline, f"waited in vain until {what}")
        time.sleep(0.01)


def wait_logged(test, gateway, text):
    """The log is written a few milliseconds after what it tells."""
    wait_until(test, lambda: text in gateway.log(), f"the log says {text!r}")


@contextlib.contextmanager
def leaving(port, model, receive_buffer=None, **fields):
    """A request whose client is there within the block only; the value is its socket. With a small receive buffer what
    the client does not read soon fills the buffers on the way."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "I leave"}], **fields}).encode()
    with socket.socket() as connection:
        connection.settimeout(PATIENCE_S)
        if receive_buffer:  # before the connection is made: it decides the window's scale
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.connect(("127.0.0.1", port))
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                           b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        yield connection


def leave_early(port, model, received, **fields):
    """Sends a request and closes the connection after that many bytes of the answer."""
    with leaving(port, model, **fields) as connection:
        while received > 0:
            got = len(connection.recv(received))
            if got == 0:
                raise ConnectionError("the gateway closed the connection")
            received -= got


class TlsMockUpstream(Process):
    def __init__(self, cert, key):
        super().__init__([program("fixpoint_mock_upstream"), "--port", "0", "--tls", cert, key], r"localhost:(\d+)/v1")


def make_certificate(folder, name="server"):
    """A self-signed certificate for localhost: the paths of its file and its key's."""
    cert, key = (str(pathlib.Path(folder) / f"{name}.{end}") for end in ("crt", "key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-out", cert, "-keyout", key], check=True, capture_output=True)
    return cert, key


class Server(http.server.ThreadingHTTPServer):
    """A server of the test's own, on a thread; `handler` is an http.server handler class."""
    daemon_threads = True

    def __init__(self, handler, port=0):
        quiet = type(handler.__name__, (handler,), {"log_message": lambda *_: None})
        super().__init__(("127.0.0.1", port), quiet)
        self.port = self.server_address[1]
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def stop(self):
        if self.thread.is_alive():
            self.shutdown()
            self.thread.join()
            self.server_close()
