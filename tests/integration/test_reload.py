"""SIGHUP and SIGTERM: a new configuration, a new certificate, a graceful end; running streams notice nothing."""
import concurrent.futures
import http.client
import http.server
import json
import signal
import socket
import ssl
import tempfile
import threading
import time
import unittest

from harness import PATIENCE_S, Gateway, GatewayTest, MockUpstream, call, chat, in_parallel, tiny_model
from helpers import Server, make_certificate, metric, wait_until


class RunningStream:
    """A streamed answer that is read on a thread of its own; `begun` is set with its first bytes."""

    def __init__(self, port, model, text="stream", **fields):
        self.begun = threading.Event()
        self.body = b""
        self.broken = None
        self.port = port
        self.request = json.dumps({"model": model, "messages": [{"role": "user", "content": text}], "stream": True, **fields})
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        if not self.begun.wait(PATIENCE_S):
            raise AssertionError(f"the stream did not begin: {self.broken}")

    def _run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("POST", "/v1/chat/completions", self.request, {"Content-Type": "application/json"})
            response = connection.getresponse()
            while piece := response.read1(65536):
                self.body += piece
                self.begun.set()
        except (OSError, http.client.HTTPException) as error:
            self.broken = error
        finally:
            connection.close()

    def whole(self):
        self.thread.join()
        if self.broken:
            raise AssertionError(f"the stream broke: {self.broken}; it had {self.body[-200:]!r}")
        return self.body.endswith(b"data: [DONE]\n\n")


def settled(count):
    """The count when it has stopped to move: the log is written soon, not at once."""
    last = None
    while last != (last := count()):
        time.sleep(0.5)
    return last


class Reload(GatewayTest):
    @classmethod
    def config(cls):
        return {"admin": {"token": "the-admin-token-of-16"}, "access_log": {"level": "info"},
                "prices": [{"model": "mock*", "input": 1, "output": 1}],
                "upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "sk-before"}],
                "routes": [{"model": "mock*", "upstream": "mock"}]}

    def setUp(self):
        super().setUp()
        self.original = self.gateway.config_file.read_text()
        self.addCleanup(self.reload, self.original)

    def hang_up(self, text, expected):
        """Puts a file in place and waits for what the log says of it."""
        before = self.gateway.log().count(expected)
        self.gateway.config_file.write_text(text)
        self.gateway.process.send_signal(signal.SIGHUP)
        wait_until(self, lambda: self.gateway.log().count(expected) > before, f"the log says {expected!r}")

    def reload(self, text):
        self.hang_up(text, "reload: the new configuration is in force")

    def change(self, **sections):
        self.reload(json.dumps({**json.loads(self.original), **sections}))

    def upstream(self, **keys):
        return {**json.loads(self.original)["upstreams"][0], **keys}

    def test_routes_and_upstreams(self):
        self.assert_error(chat(self.gateway.port, "alias"), 404, "model_not_found")
        self.change(upstreams=[self.upstream(api_key="sk-after"),
                               self.upstream(name="second", model_names={"alias": "mock"})],
                    routes=[{"model": "alias", "upstream": "second"}, {"model": "mock*", "upstream": "mock"}])
        self.assertEqual(chat(self.gateway.port, "mock").status, 200)
        self.assertEqual(self.mock.stats()["last_headers"]["authorization"], "Bearer sk-after")
        self.assertEqual(chat(self.gateway.port, "alias").headers["x-fixpoint-upstream"], "second")
        self.assertEqual(metric(self.gateway.port, "fixpoint_upstream_breaker_state", upstream="second"), 0)
        self.reload(self.original)
        self.assert_error(chat(self.gateway.port, "alias"), 404, "model_not_found")
        self.assertIsNone(metric(self.gateway.port, "fixpoint_upstream_breaker_state", upstream="second"))

    def test_prices(self):
        def cost():
            answer = chat(self.gateway.port, "mock", "what it costs")
            return round(float(answer.headers["x-fixpoint-cost"]) * 1e6), answer.json()["usage"]["total_tokens"]
        micro, tokens = cost()
        self.assertEqual(micro, tokens)
        self.change(prices=[{"model": "mock*", "input": 7, "output": 7}])
        micro, tokens = cost()
        self.assertEqual(micro, 7 * tokens)

    def test_log_level(self):
        def lines():
            return self.gateway.log().count("endpoint=chat.completions")
        self.change(access_log={"level": "info"})
        before = lines()
        chat(self.gateway.port, "mock")
        wait_until(self, lambda: lines() == before + 1, "the request is logged")
        # From here on nothing says that the file was read; the gateway's next answer with its route does.
        self.gateway.config_file.write_text(json.dumps({
            **json.loads(self.original), "access_log": {"level": "warning"},
            "routes": [{"model": "quiet", "upstream": "mock"}]}))
        self.gateway.process.send_signal(signal.SIGHUP)
        wait_until(self, lambda: chat(self.gateway.port, "mock").status == 404, "the routes changed")
        before = settled(lines)
        for _ in range(5):
            chat(self.gateway.port, "quiet")
        self.reload(self.original)
        self.assertEqual(lines(), before)

    def test_an_upstream_that_stays_keeps_what_is_known_of_it(self):
        self.change(upstreams=[self.upstream(breaker_failures=1, breaker_cooldown="1h")])
        self.assert_error(chat(self.gateway.port, "mock-error-500"), 500)
        opened = json.loads(self.gateway.config_file.read_text())
        self.reload(json.dumps({**opened, "routes": [*opened["routes"], {"model": "new", "upstream": "mock"}]}))
        self.assert_error(chat(self.gateway.port, "mock"), 503, "upstream_unavailable")
        self.reload(self.original)
        self.assertEqual(chat(self.gateway.port, "mock").status, 200)  # another configuration, a new beginning

    def test_calls_are_counted_across_reloads(self):
        seen, lock, released = [0, 0], threading.Lock(), threading.Event()

        class Held(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    seen[0] += 1
                    seen[1] = max(seen)
                released.wait(PATIENCE_S)
                with lock:
                    seen[0] -= 1
                body = json.dumps({"id": "x", "object": "chat.completion", "model": "held", "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        server = Server(Held)
        self.addCleanup(server.stop)
        self.addCleanup(released.set)

        def limit(calls, **keys):
            held = self.upstream(name="held", base_url=f"http://127.0.0.1:{server.port}/v1", max_concurrency=calls, **keys)
            self.change(upstreams=[self.upstream(), held], routes=[{"model": "held", "upstream": "held"}])

        def calls():
            return [metric(self.gateway.port, f"fixpoint_upstream_{what}", upstream="held")
                    for what in ("in_flight", "queue_depth")]

        limit(1, queue_timeout="1m")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(chat, self.gateway.port, "held", f"held {i}") for i in range(4)]
            wait_until(self, lambda: calls() == [1, 3] and seen[0] == 1, "one runs and three wait")
            limit(1, queue_timeout="2m")
            self.assertEqual(calls(), [1, 3])
            limit(2)
            wait_until(self, lambda: calls() == [2, 2] and seen[0] == 2, "there is room for another")
            released.set()
            self.assertEqual({job.result().status for job in jobs}, {200})
        self.assertEqual(seen[1], 2)
        wait_until(self, lambda: calls() == [0, 0], "all places are free")

    def test_a_running_stream_goes_on(self):
        stream = RunningStream(self.gateway.port, "mock-stream-20-50")
        self.change(upstreams=[self.upstream(name="other")], routes=[{"model": "*", "upstream": "other"}])
        self.assertTrue(stream.thread.is_alive())
        self.assertEqual(chat(self.gateway.port, "mock").headers["x-fixpoint-upstream"], "other")
        self.assertTrue(stream.whole())
        self.assertEqual(self.mock.stats()["aborted"], 0)

    def test_under_load(self):
        other = json.dumps({**json.loads(self.original), "upstreams": [
            {**self.upstream(name="other"), "max_connections": 100}], "routes": [{"model": "*", "upstream": "other"}]})
        done = threading.Event()

        def ask(i):
            if i == 0:
                for _ in range(10):
                    self.reload(other)
                    self.reload(self.original)
                done.set()
                return []
            answers = []
            while not done.is_set():
                answers.append(chat(self.gateway.port, "mock", f"load {i}", stream=i % 2 == 0))
            return answers
        answers = [answer for part in in_parallel(8, ask) for answer in part]
        self.assertEqual({answer.status for answer in answers}, {200})
        self.assertEqual({answer.headers["x-fixpoint-upstream"] for answer in answers}, {"mock", "other"})
        self.assertTrue(all(answer.text().startswith("mock answer") for answer in answers))

    def test_a_broken_file_changes_nothing(self):
        for text, says in (("routes: [", "config.yaml:1"), (self.original.replace('"routes"', '"rutes"'), "rutes"),
                           (self.original.replace('"upstream": "mock"', '"upstream": "nobody"'), "nobody")):
            with self.subTest(says):
                length = len(self.gateway.log())
                self.hang_up(text, "the running configuration stays")
                self.assertIn("config.yaml:", self.gateway.log()[length:])
                self.assertIn(says, self.gateway.log()[length:])
                self.assertEqual(chat(self.gateway.port, "mock").status, 200)

    def test_what_is_read_at_the_start_only_is_named(self):
        length = len(self.gateway.log())
        self.change(server={"listen": "127.0.0.1:1", "max_connections": 77}, cache={"memory_bytes": 0},
                    admin={"token": "a-new-admin-token"})
        log = self.gateway.log()[length:]
        for key in ("server.listen", "server.max_connections", "cache.memory_bytes"):
            self.assertIn(f"reload: {key}: ", log)
        self.assertNotIn("admin.token", log)
        self.assertNotIn("a-new-admin-token", log)
        answer = call(self.gateway.port, "GET", "/admin/keys", headers={"Authorization": "Bearer a-new-admin-token"})
        self.assertEqual(answer.status, 200)  # the rest is in force

    def test_what_differs_is_what_differs_from_the_start(self):
        warned = "reload: server.max_connections: differs from what runs"
        for _ in range(2):  # the second file is the first one; what runs is not
            length = len(self.gateway.log())
            self.change(server={"listen": "127.0.0.1:0", "max_connections": 77})
            self.assertEqual(self.gateway.log()[length:].count(warned), 1)
        length = len(self.gateway.log())
        self.reload(self.original)
        self.assertNotIn("differs", self.gateway.log()[length:])


class LoadedModels(GatewayTest):
    @classmethod
    def config(cls):
        return {"models": [{"name": "tiny", "path": tiny_model(cls.folder), "threads": 1}],
                "routes": [{"model": "tiny", "local": "tiny"}]}

    def test_a_route_to_a_model_that_is_not_loaded_is_refused(self):
        config = json.loads(self.gateway.config_file.read_text())
        config["models"][0]["name"] = config["routes"][0]["local"] = "renamed"
        self.gateway.config_file.write_text(json.dumps(config))
        self.gateway.process.send_signal(signal.SIGHUP)
        wait_until(self, lambda: "the running configuration stays" in self.gateway.log(), "it is refused")
        self.assertIn("error reload: routes[0].local: the model 'renamed' is not loaded", self.gateway.log())
        self.assertEqual(chat(self.gateway.port, "tiny", max_tokens=1).status, 200)


class Certificates(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fixpoint-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.cert, self.key = make_certificate(self.folder, "first")
        self.mock = MockUpstream()
        self.addCleanup(self.mock.stop)
        self.gateway = Gateway({"server": {"listen": "127.0.0.1:0", "tls_cert_file": self.cert, "tls_key_file": self.key},
                                "upstreams": [{"name": "mock", "base_url": self.mock.url, "api_key": "x"}],
                                "routes": [{"model": "*", "upstream": "mock"}]}, wait_ready=False)
        self.addCleanup(self.gateway.stop)
        wait_until(self, lambda: " ready" in self.gateway.log(), "it is ready")

    def trust(self, cert):
        return ssl.create_default_context(cafile=cert)

    def ask(self, cert):
        connection = http.client.HTTPSConnection("localhost", self.gateway.port, timeout=PATIENCE_S,
                                                 context=self.trust(cert))
        try:
            body = json.dumps({"model": "mock", "messages": [{"role": "user", "content": "x"}]})
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            return connection.getresponse().status
        finally:
            connection.close()

    def replace(self, cert, key, expected):
        before = self.gateway.log().count(expected)
        for old, new in ((self.cert, cert), (self.key, key)):
            with open(new, "rb") as source, open(old, "wb") as target:
                target.write(source.read())
        self.gateway.process.send_signal(signal.SIGHUP)
        wait_until(self, lambda: self.gateway.log().count(expected) > before, f"the log says {expected!r}")

    def test_only_https(self):
        self.assertEqual(self.ask(self.cert), 200)
        with self.assertRaises((OSError, http.client.HTTPException)):
            call(self.gateway.port, "GET", "/healthz")
        self.gateway.cli("keys", "list")  # the command line reaches it, too

    def test_a_new_certificate_without_a_restart(self):
        kept = socket.create_connection(("localhost", self.gateway.port), PATIENCE_S)
        old = self.trust(self.cert).wrap_socket(kept, server_hostname="localhost")
        self.addCleanup(old.close)
        self.replace(*make_certificate(self.folder, "second"), "the new configuration is in force")
        self.assertEqual(self.ask(self.folder + "/second.crt"), 200)
        wrong = make_certificate(self.folder, "stranger")[0]
        with self.assertRaises(ssl.SSLError):
            self.ask(wrong)
        old.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")  # what was open stays
        self.assertIn(b" 200 ", old.recv(4096))

    def test_a_broken_certificate_changes_nothing(self):
        broken = self.folder + "/broken"
        with open(broken, "w") as file:
            file.write("no certificate")
        first = make_certificate(self.folder, "kept")
        self.replace(*first, "the new configuration is in force")
        self.replace(broken, first[1], "the running certificate stays")
        self.assertEqual(self.ask(first[0]), 200)


class Drain(unittest.TestCase):
    def setUp(self):
        self.mock = MockUpstream()
        self.addCleanup(self.mock.stop)

    def start(self, drain_timeout, **sections):
        gateway = Gateway({**sections, "server": {"listen": "127.0.0.1:0", "drain_timeout": drain_timeout},
                           "upstreams": [{"name": "mock", "base_url": self.mock.url, "api_key": "x"}],
                           "routes": [{"model": "*", "upstream": "mock"}]})
        self.addCleanup(gateway.stop)
        return gateway

    def test_a_running_stream_ends_properly(self):
        gateway = self.start("30s")
        stream = RunningStream(gateway.port, "mock-stream-12-100")
        gateway.process.send_signal(signal.SIGTERM)
        wait_until(self, lambda: "stopping" in gateway.log(), "it stops")

        def refused():
            try:
                socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S).close()
            except ConnectionRefusedError:
                return True
            return False
        wait_until(self, refused, "new connections are refused")
        self.assertTrue(stream.thread.is_alive())
        self.assertTrue(stream.whole())
        self.assertEqual(self.mock.stats()["aborted"], 0)
        self.assertEqual(gateway.process.wait(PATIENCE_S), 0)

    def test_it_does_not_wait_for_ever(self):
        gateway = self.start("200ms")
        stream = RunningStream(gateway.port, "mock-stream-200-100")
        gateway.process.send_signal(signal.SIGTERM)
        self.assertEqual(gateway.process.wait(PATIENCE_S), 0)
        stream.thread.join()
        self.assertIsNone(stream.broken)
        last = stream.body.decode().removesuffix("\n\n").split("\n\n")[-1]
        self.assertEqual(json.loads(last.removeprefix("data: "))["error"]["code"], "shutting_down", last)
        line = next(line for line in gateway.log().splitlines() if "endpoint=chat.completions" in line)
        self.assertIn(" status=503 ", line)

    def test_a_plain_answer_is_refused_at_the_end(self):
        gateway = self.start("200ms")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(chat, gateway.port, "mock-delay-30000")
            wait_until(self, lambda: self.mock.stats()["requests"] > 0, "it is on its way")
            gateway.process.send_signal(signal.SIGTERM)
            answer = asked.result()
        self.assertEqual((answer.status, answer.json()["error"]["code"]), (503, "shutting_down"))
        self.assertEqual(gateway.process.wait(PATIENCE_S), 0)

    def test_a_stream_in_its_recorded_pace_ends_with_an_error_too(self):
        gateway = self.start("200ms", cache={"replay": "recorded"})
        fields = {"temperature": 0, "stream": True}
        self.assertEqual(chat(gateway.port, "mock-stream-4-1000", "stream", **fields).status, 200)
        stream = RunningStream(gateway.port, "mock-stream-4-1000", **fields)
        gateway.process.send_signal(signal.SIGTERM)
        self.assertEqual(gateway.process.wait(PATIENCE_S), 0)
        stream.thread.join()
        self.assertIsNone(stream.broken)
        self.assertIn(b'"shutting_down"', stream.body)

    def test_a_second_signal_ends_it_at_once(self):
        for second in (signal.SIGTERM, signal.SIGINT):
            gateway = self.start("30s")
            stream = RunningStream(gateway.port, "mock-stream-100-100")
            gateway.process.send_signal(signal.SIGTERM)
            wait_until(self, lambda log=gateway.log: "stopping" in log(), "it stops")
            gateway.process.send_signal(second)
            self.assertEqual(gateway.process.wait(5), -second)
            stream.thread.join()

    def test_idle_connections_do_not_hold_it(self):
        gateway = self.start("30s")
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        gateway.process.send_signal(signal.SIGTERM)
        self.assertEqual(gateway.process.wait(10), 0)


if __name__ == "__main__":
    unittest.main()
