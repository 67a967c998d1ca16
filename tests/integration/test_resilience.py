"""Upstreams that fail: retries, breakers, key rotation, queues, deadlines, proxies."""
import base64
import concurrent.futures
import http.server
import json
import re
import select
import socket
import tempfile
import time
import unittest

from harness import PATIENCE_S, Gateway, GatewayTest, MockUpstream, call, chat, in_parallel
from helpers import Server, TlsMockUpstream, leave_early, leaving, make_certificate, metric, wait_until


class Retries(GatewayTest):
    @classmethod
    def config(cls):
        return {"upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "x", "retries": 2},
                              {"name": "once", "base_url": cls.mock.url, "api_key": "x", "retries": 0}],
                "routes": [{"model": "mock-once-*", "upstream": "once"}, {"model": "*", "upstream": "mock"}]}

    def test_until_it_succeeds(self):
        for model, attempts in (("mock-retry-1-429-retryafterms-20", 2), ("mock-retry-2-500-retryafterms-20", 3),
                                ("mock-retry-1-503-retryafter-1", 2)):
            for stream in (False, True):
                with self.subTest(model=model, stream=stream):
                    self.mock.reset()
                    answer = chat(self.gateway.port, model, f"again {stream}", stream=stream)
                    self.assertEqual(answer.status, 200, answer.body)
                    self.assertEqual(answer.headers["x-fixpoint-attempts"], str(attempts))
                    self.assertEqual(self.mock.stats()["requests"], attempts)
        self.assertGreater(metric(self.gateway.port, "fixpoint_upstream_retries_total", upstream="mock"), 0)

    def test_it_waits_as_the_upstream_says(self):
        started = time.monotonic()
        self.assertEqual(chat(self.gateway.port, "mock-retry-1-429-retryafter-1").status, 200)
        self.assertGreaterEqual(time.monotonic() - started, 1)

    def test_the_last_failure_is_the_clients(self):
        answer = chat(self.gateway.port, "mock-error-429-retryafterms-20")
        self.assert_error(answer, 429)
        self.assertEqual(answer.headers["retry-after-ms"], "20")
        self.assertEqual(answer.headers["x-fixpoint-attempts"], "3")
        self.assertEqual(self.mock.stats()["requests"], 3)

    def test_nothing_is_retried_that_cannot_pass(self):
        for model in ("mock-error-400", "mock-error-404", "mock-garbage"):
            self.mock.reset()
            self.assertGreaterEqual(chat(self.gateway.port, model).status, 400)
            self.assertEqual(self.mock.stats()["requests"], 1, model)

    def test_no_retry_after_the_first_event(self):
        for model in ("mock-errorevent-2", "mock-cut-700"):
            self.mock.reset()
            answer = chat(self.gateway.port, model, stream=True)
            self.assertEqual(answer.status, 200)
            self.assertEqual(self.mock.stats()["requests"], 1, model)
            self.assertNotIn("[DONE]", answer.events())
            self.assertIn("error", json.loads(answer.events()[-1]))

    def test_a_stream_without_an_event_is_tried_again(self):
        answer = chat(self.gateway.port, "mock-cut-10", stream=True)
        self.assert_error(answer, 502)
        self.assertEqual(self.mock.stats()["requests"], 3)

    def test_no_retries(self):
        answer = chat(self.gateway.port, "mock-once-retry-1-500-retryafterms-20")
        self.assert_error(answer, 500)
        self.assertEqual(answer.headers["x-fixpoint-attempts"], "1")
        self.assertEqual(self.mock.stats()["requests"], 1)

    def test_an_upstream_that_is_not_there_yet(self):
        class Late(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                answer = json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "late", "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": "late"}, "finish_reason": "stop"}]})
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(answer.encode())

        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        gateway = Gateway({"upstreams": [{"name": "late", "base_url": f"http://127.0.0.1:{port}/v1", "api_key": "x",
                                          "retries": 6}],
                           "routes": [{"model": "*", "upstream": "late"}]})
        self.addCleanup(gateway.stop)

        def do(i):
            if i == 0:
                return chat(gateway.port, "late")
            wait_until(self, lambda: metric(gateway.port, "fixpoint_upstream_requests_total", result="failed"),
                       "the first call was refused")
            self.addCleanup(Server(Late, port).stop)
            return None
        answer = in_parallel(2, do)[0]
        self.assertEqual(answer.status, 200, answer.body)
        self.assertGreaterEqual(int(answer.headers["x-fixpoint-attempts"]), 2)


class OwnUpstream(unittest.TestCase):
    """What an upstream of the test's own answers to keys."""

    def ask(self, keys, answer, **fields):
        """`answer` gives status, headers and body for an Authorization."""
        class Upstream(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                status, headers, body = answer(self.headers["Authorization"])
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())
        server = Server(Upstream)
        self.addCleanup(server.stop)
        gateway = Gateway({"upstreams": [{"name": "u", "base_url": f"http://127.0.0.1:{server.port}/v1", "api_keys": keys,
                                          "retries": 0}], "routes": [{"model": "*", "upstream": "u"}]})
        self.addCleanup(gateway.stop)
        return chat(gateway.port, "m", **fields)

    def test_the_client_hears_when_the_first_key_wakes(self):
        for waits in ((3, 90), (90, 3)):
            answer = self.ask(["sk-key-0", "sk-key-1"],
                              lambda key, waits=waits: (429, {"Retry-After": str(waits[int(key[-1])])}, "{}"))
            self.assertEqual(answer.status, 429)
            self.assertIn(answer.headers["retry-after"], ("2", "3"), waits)

    def test_an_end_marker_without_its_last_empty_line(self):
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                 "choices": [{"index": 0, "delta": {"content": "all of it"}, "finish_reason": "stop"}]}
        stream = f"data: {json.dumps(chunk)}\n\n"
        for end, is_end in (("data: [DONE]\n", True), ("data: [DONE]", True), ("data: [DON", False), ("", False)):
            answer = self.ask(["k"], lambda _, end=end: (200, {"Content-Type": "text/event-stream"}, stream + end), stream=True)
            self.assertEqual(answer.body.endswith(b"data: [DONE]\n\n"), is_end, end)
            self.assertEqual(b"upstream_closed" in answer.body, not is_end, end)

    def test_a_key_that_the_upstream_quotes_stays_here(self):
        answer = self.ask(["sk-of-the-gateway"], lambda key: (401, {}, json.dumps({"error": {"message": f"bad key {key}"}})))
        self.assertEqual(answer.status, 401)
        self.assertEqual(answer.json()["error"]["message"], "bad key Bearer ***")


class SlowReaders(GatewayTest):
    @classmethod
    def config(cls):
        return {"upstreams": [{"name": "u", "base_url": cls.mock.url, "api_key": "x", "total_timeout": "6s",
                               "max_concurrency": 1, "queue_timeout": "10ms", "breaker_failures": 1,
                               "breaker_cooldown": "60s"}],
                "routes": [{"model": "*", "upstream": "u"}]}

    def test_they_are_not_the_upstreams_fault(self):
        with leaving(self.gateway.port, "mock-stream-100000-0", receive_buffer=4096, stream=True) as slow:
            wait_until(self, lambda: self.mock.stats()["requests"], "it streams")
            # It reads nothing until the time is over. What it takes to fill the buffers on the way is the gateway's own
            # time, and must be less than half of the timeout, with sanitizers, too.
            time.sleep(7)
            # Nor does it keep the upstream's place.
            self.assertEqual(chat(self.gateway.port, "mock").status, 200)
            slow.settimeout(PATIENCE_S)
            rest = b""
            while b"upstream_timeout" not in rest:
                rest = rest[-100:] + slow.recv(1 << 20)
                self.assertNotIn(b"[DONE]", rest)


class Breaker(GatewayTest):
    @classmethod
    def config(cls):
        def upstream(name, **keys):
            return {"name": name, "base_url": cls.mock.url, "api_key": "x", "breaker_cooldown": "700ms", **keys}
        return {"upstreams": [upstream("flaky", breaker_failures=3), upstream("fragile", breaker_failures=1),
                              upstream("spare"), upstream("lonely", breaker_failures=2)],
                "routes": [{"model": "mock-a*", "upstream": "flaky"},
                           {"model": "mock-b*", "upstream": "lonely", "fallbacks": ["spare"]},
                           {"model": "*", "upstream": "fragile"}]}

    def state(self, upstream):
        return metric(self.gateway.port, "fixpoint_upstream_breaker_state", upstream=upstream)

    def test_it_opens_and_closes_again(self):
        self.assertEqual(self.state("flaky"), 0)
        for _ in range(3):
            self.assert_error(chat(self.gateway.port, "mock-a-error-500"), 500)
        self.assertEqual(self.state("flaky"), 2)
        self.mock.reset()
        refused = chat(self.gateway.port, "mock-a")
        error = self.assert_error(refused, 503, "upstream_unavailable")
        self.assertIn("flaky", error["message"])
        self.assertGreaterEqual(int(refused.headers["retry-after"]), 1)
        self.assertEqual(self.mock.stats()["requests"], 0)
        wait_until(self, lambda: chat(self.gateway.port, "mock-a").status == 200, "the breaker let a probe through")
        self.assertEqual(self.state("flaky"), 0)

    def test_a_failed_probe_opens_it_again(self):
        for _ in range(3):
            chat(self.gateway.port, "mock-a-error-500")
        wait_until(self, lambda: chat(self.gateway.port, "mock-a-error-500").status == 500, "a probe failed")
        self.assertEqual(self.state("flaky"), 2)
        wait_until(self, lambda: chat(self.gateway.port, "mock-a").status == 200, "it closed")

    def test_a_probe_whose_client_leaves_decides_nothing(self):
        for _ in range(3):
            chat(self.gateway.port, "mock-a-error-500")
        self.assertEqual(self.state("flaky"), 2)
        self.mock.reset()

        def probe():
            with leaving(self.gateway.port, "mock-a-slow") as connection:
                connection.settimeout(0.3)
                try:
                    connection.recv(1)  # refused: the breaker is open still
                except TimeoutError:
                    pass
            return self.mock.stats()["requests"]
        wait_until(self, probe, "a probe was let through")
        wait_until(self, lambda: chat(self.gateway.port, "mock-a").status == 200, "the next one may try")
        self.assertEqual(self.state("flaky"), 0)

    def test_an_open_one_is_left_out(self):
        for _ in range(2):
            chat(self.gateway.port, "mock-b-retry-1-500", "first fails, then the spare answers")
            self.mock.reset()
        self.assertEqual(self.state("lonely"), 2)
        answer = chat(self.gateway.port, "mock-b", "spared")
        self.assertEqual(answer.headers["x-fixpoint-upstream"], "spare")
        self.assertEqual(answer.headers["x-fixpoint-attempts"], "1")

    def test_what_the_client_did_counts_for_nothing(self):
        leave_early(self.gateway.port, "mock-stream-50-100", 500, stream=True)
        wait_until(self, lambda: self.mock.stats()["aborted"] == 1, "the stream was cancelled")
        with leaving(self.gateway.port, "mock-slow"):
            wait_until(self, lambda: self.mock.stats()["requests"] == 2, "the upstream is asked")
        wait_until(self, lambda: self.mock.stats()["aborted"] == 2, "that call was cancelled")
        self.assertEqual(self.state("fragile"), 0)
        self.assert_error(chat(self.gateway.port, "mock-error-400"), 400)
        self.assertEqual(self.state("fragile"), 0)
        self.assertEqual(chat(self.gateway.port, "mock").status, 200)


class Keys(GatewayTest):
    @classmethod
    def config(cls):
        def upstream(name, *keys):
            return {"name": name, "base_url": cls.mock.url, "api_keys": list(keys)}
        return {"upstreams": [upstream("rotates", "sk-limited-1", "sk-limited-2", "sk-good-3"),
                              upstream("spent", "sk-limited-8", "sk-limited-9")],
                "routes": [{"model": "mock-spent", "upstream": "spent"}, {"model": "*", "upstream": "rotates"}]}

    def test_the_next_key_is_taken(self):
        first = chat(self.gateway.port, "mock", "rotate")
        self.assertEqual(first.status, 200, first.body)
        self.assertEqual(first.headers["x-fixpoint-attempts"], "3")
        self.assertEqual(self.mock.stats()["last_headers"]["authorization"], "Bearer sk-good-3")
        self.assertEqual(chat(self.gateway.port, "mock", "rests").headers["x-fixpoint-attempts"], "1")
        self.assertEqual(metric(self.gateway.port, "fixpoint_upstream_key_rotations_total", upstream="rotates"), 2)

    def test_all_of_them_are_limited(self):
        answer = chat(self.gateway.port, "mock-spent")
        self.assert_error(answer, 429)
        self.assertEqual(answer.headers["retry-after"], "1")
        self.assertEqual(self.mock.stats()["requests"], 2)


class Queue(GatewayTest):
    @classmethod
    def config(cls):
        return {"upstreams": [{"name": "narrow", "base_url": cls.mock.url, "api_key": "x", "max_concurrency": 1,
                               "max_queue": 1},
                              {"name": "hasty", "base_url": cls.mock.url, "api_key": "x", "max_concurrency": 1,
                               "queue_timeout": "100ms"}],
                "routes": [{"model": "mock-hasty*", "upstream": "hasty"}, {"model": "*", "upstream": "narrow"}]}

    def gauge(self, what, upstream):
        return metric(self.gateway.port, f"fixpoint_upstream_{what}", upstream=upstream)

    def test_one_runs_one_waits_others_are_refused(self):
        def ask(i):
            if i == 1:
                wait_until(self, lambda: self.gauge("in_flight", "narrow") == 1, "the first one runs")
            if i == 2:
                wait_until(self, lambda: self.gauge("queue_depth", "narrow") == 1, "the second one waits")
            return chat(self.gateway.port, "mock-delay-800" if i < 2 else "mock", f"queue {i}")
        first, second, third = in_parallel(3, ask)
        self.assertEqual((first.status, second.status), (200, 200))
        id = second.headers["x-fixpoint-generation"]
        wait_until(self, lambda: id in self.gateway.cli("log", "tail").stdout, "it is logged")
        logged = [json.loads(line) for line in self.gateway.cli("log", "export").stdout.splitlines()]
        self.assertGreater(next(one for one in logged if one["id"] == id)["queue_ms"], 0)
        error = self.assert_error(third, 429, "upstream_overloaded")
        self.assertIn("narrow", error["message"])
        self.assertGreaterEqual(int(third.headers["retry-after"]), 1)
        self.assertEqual(self.mock.stats()["requests"], 2)

    def test_who_leaves_leaves_the_queue(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(chat, self.gateway.port, "mock-delay-800", "runs")
            wait_until(self, lambda: self.gauge("in_flight", "narrow") == 1, "the first one runs")
            with leaving(self.gateway.port, "mock"):
                wait_until(self, lambda: self.gauge("queue_depth", "narrow") == 1, "the second one waits")
            wait_until(self, lambda: self.gauge("queue_depth", "narrow") == 0, "its place is free")
            self.assertEqual(running.result().status, 200)
        self.assertEqual(self.mock.stats()["requests"], 1)

    def test_who_leaves_a_stream_frees_its_place(self):
        leave_early(self.gateway.port, "mock-stream-50-100", 500, stream=True)
        wait_until(self, lambda: self.gauge("in_flight", "narrow") == 0, "its place is free")
        self.assertEqual(chat(self.gateway.port, "mock").status, 200)

    def test_nobody_waits_for_ever(self):
        def ask(i):
            if i == 1:
                wait_until(self, lambda: self.gauge("in_flight", "hasty") == 1, "the first one runs")
            return chat(self.gateway.port, "mock-hasty-delay-800", f"hasty {i}")
        first, second = in_parallel(2, ask)
        self.assertEqual(first.status, 200)
        self.assert_error(second, 429, "upstream_overloaded")
        self.assertIn("retry-after", second.headers)


class Deadlines(GatewayTest):
    @classmethod
    def config(cls):
        def upstream(name, **keys):
            return {"name": name, "base_url": cls.mock.url, "api_key": "x", **keys}
        return {"upstreams": [upstream("first", first_byte_timeout="200ms"),
                              upstream("between", between_bytes_timeout="200ms"),
                              upstream("total", total_timeout="500ms", retries=9)],
                "routes": [{"model": "*-f", "upstream": "first"}, {"model": "*-b", "upstream": "between"},
                           {"model": "*-t", "upstream": "total"}]}

    def expect_late(self, model, stream):
        """An error of status 504, or in a stream that has begun one that says the same."""
        answer = chat(self.gateway.port, model, stream=stream)
        if not stream:
            self.assert_error(answer, 504, "upstream_timeout")
            return
        self.assertEqual(answer.status, 200)
        self.assertGreater(len(answer.events()), 1)
        self.assertEqual(json.loads(answer.events()[-1])["error"]["code"], "upstream_timeout")

    def test_first_byte(self):
        self.expect_late("mock-delay-1000-f", False)

    def test_between_bytes(self):
        self.expect_late("mock-stream-4-1000-b", True)
        self.assertEqual(chat(self.gateway.port, "mock-stream-5-50-b", stream=True).events()[-1], "[DONE]")

    def test_total(self):
        self.expect_late("mock-delay-1000-t", False)
        self.expect_late("mock-stream-50-50-t", True)

    def test_total_counts_the_retries(self):
        started = time.monotonic()
        answer = chat(self.gateway.port, "mock-error-500-retryafterms-300-t")
        self.assertGreaterEqual(answer.status, 500)
        self.assertLess(time.monotonic() - started, 2)  # nine retries would be 2.7 s
        self.assertLess(self.mock.stats()["requests"], 4)


class ProxyHandler(http.server.BaseHTTPRequestHandler):
    """Absolute form and CONNECT; notes what it was asked in its server's `asked`."""

    def do_CONNECT(self):
        self.server.asked.append((self.requestline, self.headers["Proxy-Authorization"]))
        host, port = self.path.rsplit(":", 1)
        with socket.create_connection((host, int(port)), PATIENCE_S) as upstream:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            both = [self.connection, upstream]
            while True:
                for ready in select.select(both, [], [], PATIENCE_S)[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    both[1 - both.index(ready)].sendall(data)

    def do_POST(self):
        self.server.asked.append((self.requestline, self.headers["Proxy-Authorization"]))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        port, path = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/.*)", self.path).groups()
        answer = call(int(port), "POST", path, body, {"Authorization": self.headers["Authorization"]})
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers["content-type"])
        self.end_headers()
        self.wfile.write(answer.body)


class Proxies(unittest.TestCase):
    CREDENTIALS = "Basic " + base64.b64encode(b"someone:passw0rd").decode()

    def setUp(self):
        self.proxy = Server(ProxyHandler)
        self.proxy.asked = []
        self.addCleanup(self.proxy.stop)

    def start(self, **upstream):
        gateway = Gateway({"upstreams": [{"name": "far", "api_key": "x",
                                          "proxy": f"http://someone:passw0rd@127.0.0.1:{self.proxy.port}",
                                          **upstream}],
                           "routes": [{"model": "*", "upstream": "far"}]})
        self.addCleanup(gateway.stop)
        return gateway

    def test_absolute_form(self):
        mock = MockUpstream()
        self.addCleanup(mock.stop)
        answer = chat(self.start(base_url=mock.url).port, "mock")
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(self.proxy.asked, [(f"POST {mock.url}/chat/completions HTTP/1.1", self.CREDENTIALS)])

    def test_tunnel(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        cert, key = make_certificate(folder.name)
        mock = TlsMockUpstream(cert, key)
        self.addCleanup(mock.stop)
        answer = chat(self.start(base_url=f"https://localhost:{mock.port}/v1", ca_file=cert).port, "mock")
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(self.proxy.asked, [(f"CONNECT localhost:{mock.port} HTTP/1.1", self.CREDENTIALS)])

    def test_a_proxy_that_is_away(self):
        gateway = self.start(base_url="http://127.0.0.1:9/v1")
        self.proxy.stop()
        answer = chat(gateway.port, "mock")
        self.assertEqual(answer.status, 502)
        self.assertNotIn(b"passw0rd", answer.body)


if __name__ == "__main__":
    unittest.main()
