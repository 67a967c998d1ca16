"""What operators see: access log, traces, metrics, heartbeats."""
import fcntl
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import PATIENCE_S, Gateway, GatewayTest, call, chat, program, tiny_model
from helpers import Server, leave_early, leaving, metric, wait_until

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


class AccessLog(GatewayTest):
    SECRETS = ["sk-upstream-secret-1234", "admin-token-secret-1234", "header-secret-12345678", "sk-client-secret-123456"]

    @classmethod
    def config(cls):
        return {"access_log": {"format": "json", "level": "info"}, "admin": {"token": cls.SECRETS[1]},
                "prices": [{"model": "mock*", "input": 1, "output": 1}],
                "upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": cls.SECRETS[0],
                               "headers": {"x-extra": cls.SECRETS[2]}},
                              {"name": "open", "base_url": cls.mock.url},
                              {"name": "away", "base_url": "http://127.0.0.1:9/v1", "api_key": cls.SECRETS[0]}],
                "routes": [{"model": "mock-open*", "upstream": "open"}, {"model": "away", "upstream": "away"},
                           {"model": "*", "upstream": "mock"}]}

    def entry(self, **expected):
        """The newest line of a request that has these members."""
        def find():
            for line in reversed(self.gateway.log().splitlines()):
                entry = json.loads(line)  # each line is one object
                if entry.get("event") == "request" and all(entry.get(k) == v for k, v in expected.items()):
                    return entry
            return None
        return wait_until(self, find, f"the log has {expected}")

    def test_fields(self):
        for cache in ("miss", "hit"):
            answer = chat(self.gateway.port, "mock-fields", "log me", temperature=0)
            entry = self.entry(model="mock-fields", cache=cache)
            self.assertEqual((entry["method"], entry["path"], entry["endpoint"], entry["status"]),
                             ("POST", "/v1/chat/completions", "chat.completions", 200))
            self.assertEqual(entry["bytes_out"], len(answer.body))
            self.assertGreater(entry["bytes_in"], 0)
            self.assertGreater(entry["ms"], 0)
            self.assertRegex(entry["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$")
            self.assertRegex(entry["peer"], r"^127\.0\.0\.1:\d+$")
            self.assertRegex(entry["trace"], "^[0-9a-f]{32}$")
            if cache == "miss":
                usage = answer.json()["usage"]
                self.assertEqual((entry["upstream"], entry["attempts"]), ("mock", 1))
                self.assertEqual((entry["prompt_tokens"], entry["completion_tokens"]),
                                 (usage["prompt_tokens"], usage["completion_tokens"]))
                self.assertAlmostEqual(entry["cost"], usage["total_tokens"] / 1e6, 9)
                self.assertRegex(entry["id"], "^req-")
                self.assertEqual(entry["upstream_request_id"], answer.headers["x-request-id"])
            else:
                self.assertEqual(entry["id"], answer.headers["x-request-id"])
                self.assertNotIn("upstream", entry)
                self.assertNotIn("upstream_request_id", entry)
            self.assertEqual(entry["generation"], answer.headers["x-fixpoint-generation"])

    def test_ids_of_failures(self):
        answer = chat(self.gateway.port, "mock-error-500-ids")
        entry = self.entry(model="mock-error-500-ids")
        self.assertEqual(entry["upstream_request_id"], answer.headers["x-request-id"])
        self.assertNotIn("generation", entry)  # there is none
        # The client has only the head of this one to ask about.
        with leaving(self.gateway.port, "mock-stream-50-100-ids", stream=True) as connection:
            head = connection.recv(65536).decode().lower()
        entry = self.entry(model="mock-stream-50-100-ids")
        for name in ("upstream_request_id", "generation"):
            self.assertIn(entry[name], head)

    def test_refused_by_the_http_layer(self):
        self.assertEqual(call(self.gateway.port, "GET", "/healthz", headers={"x-large": "a" * 20_000}).status, 431)
        self.assertGreater(self.entry(status=431)["peer"], "127.0.0.1:")
        with socket.create_connection(("127.0.0.1", self.gateway.port), PATIENCE_S) as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                               b"Content-Length: 17000000\r\n\r\n")
            self.assertIn(b" 413 ", connection.recv(4096))
        entry = self.entry(status=413)
        self.assertEqual((entry["method"], entry["path"]), ("POST", "/v1/chat/completions"))
        for endpoint, status in (("other", "431"), ("chat.completions", "413")):
            self.assertEqual(metric(self.gateway.port, "fixpoint_requests_total", endpoint=endpoint, status=status), 1)

    def test_failures(self):
        chat(self.gateway.port, "away")
        self.assertEqual(self.entry(model="away")["status"], 502)
        answer = chat(self.gateway.port, "mock-errorevent-2-log", stream=True)
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.entry(model="mock-errorevent-2-log")["status"], 500)  # which the event names
        leave_early(self.gateway.port, "mock-stream-50-100-left", 500, stream=True)
        self.assertEqual(self.entry(model="mock-stream-50-100-left")["status"], 499)

    def test_secrets_and_prompts_stay_out(self):
        client = {"Authorization": f"Bearer {self.SECRETS[3]}", "x-api-key": self.SECRETS[3]}
        chat(self.gateway.port, "mock", "a-very-private-prompt", client)
        chat(self.gateway.port, "mock-open", "a-very-private-prompt", client)
        chat(self.gateway.port, "mock-open-error-401", "a-very-private-prompt", client)
        chat(self.gateway.port, "away", "a-very-private-prompt", client)
        call(self.gateway.port, "GET", "/admin/keys", headers={"Authorization": f"Bearer {self.SECRETS[1]}"})
        call(self.gateway.port, "GET", f"/healthz?key={self.SECRETS[1]}")
        self.gateway.process.send_signal(signal.SIGHUP)
        wait_until(self, lambda: "reload: " in self.gateway.log(), "it reloaded")
        self.entry(path="/healthz")
        for secret in (*self.SECRETS, "a-very-private-prompt"):
            self.assertNotIn(secret, self.gateway.log())


    def test_a_secret_in_a_path_stays_out(self):
        secret = "sk-in-a-path-12345678"
        config = self.config()
        config["upstreams"][0]["api_key"] = secret
        gateway = Gateway(config)
        self.addCleanup(gateway.stop)
        call(gateway.port, "GET", f"/v1/{secret}")
        chat(gateway.port, secret)
        wait_until(self, lambda: gateway.log().count('"event":"request"') >= 3, "both are logged")
        self.assertNotIn(secret, gateway.log())


class StuckLog(unittest.TestCase):
    """Somebody holds stderr and does not read it: a stalled collector of logs."""

    def test_serving_reloading_and_stopping_go_on(self):
        folder = tempfile.TemporaryDirectory(prefix="fixpoint-test-")
        self.addCleanup(folder.cleanup)
        config = pathlib.Path(folder.name) / "config.yaml"
        config.write_text(json.dumps({
            "server": {"listen": "127.0.0.1:0"}, "data_dir": folder.name,
            "upstreams": [{"name": "away", "base_url": "http://127.0.0.1:9/v1", "retries": 0}],
            "routes": [{"model": "*", "upstream": "away"}]}))
        gateway = subprocess.Popen([program("fixpoint"), "serve", "--config", config], stderr=subprocess.PIPE)
        self.addCleanup(gateway.stderr.close)
        self.addCleanup(gateway.wait)
        self.addCleanup(gateway.kill)
        fcntl.fcntl(gateway.stderr, fcntl.F_SETPIPE_SZ, 4096)
        log = b""
        while b" ready" not in log:
            log += os.read(gateway.stderr.fileno(), 4096)
        port = int(re.search(rb"listening on \S+ \(port (\d+)\)", log).group(1))
        for _ in range(200):  # some 30 KB of access log
            self.assertEqual(call(port, "GET", "/healthz", timeout=10).status, 200)
        config.write_text(config.read_text().replace('"*"', '"new-*"'))
        gateway.send_signal(signal.SIGHUP)
        wait_until(self, lambda: chat(port, "mock").status == 404, "the new routes are in force")
        gateway.send_signal(signal.SIGTERM)
        self.assertEqual(gateway.wait(10), 0)


class Traces(GatewayTest):
    @classmethod
    def setUpClass(cls):
        class Collector(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.server.requests.append((self.path, dict(self.headers), body))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
        cls.collector = Server(Collector)
        cls.collector.requests = []
        cls.addClassCleanup(cls.collector.stop)
        super().setUpClass()

    @classmethod
    def config(cls):
        return {"telemetry": {"otlp_endpoint": f"http://127.0.0.1:{cls.collector.port}", "service_name": "test-gateway",
                              "interval": "100ms", "headers": {"x-tenant": "telemetry-secret"}},
                "upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "sk-upstream-secret"}],
                "routes": [{"model": "*", "upstream": "mock"}]}

    def spans(self, trace):
        """The spans of a trace, with their attributes as a dictionary."""
        found = []
        for _, _, body in list(self.collector.requests):
            for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]:
                if span["traceId"] == trace:
                    values = {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
                    found.append({**span, "attributes": values})
        return found

    def upstream_parent(self):
        return re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])",
                            self.mock.stats()["last_headers"]["traceparent"]).groups()

    def test_passed_on(self):
        chat(self.gateway.port, "mock", "x", {"traceparent": PARENT, "tracestate": "vendor=1"})
        trace, span, flags = self.upstream_parent()
        self.assertEqual((trace, flags), (TRACE, "01"))
        self.assertNotEqual(span, SPAN)
        self.assertEqual(self.mock.stats()["last_headers"]["tracestate"], "vendor=1")

    def test_made(self):
        traces = set()
        for headers in ({}, {}, {"traceparent": "00-nonsense"}, {"traceparent": PARENT.replace(TRACE, "0" * 32)}):
            chat(self.gateway.port, "mock", "x", {**headers, "tracestate": "vendor=1"})
            trace, _, flags = self.upstream_parent()
            self.assertEqual(flags, "01")
            self.assertNotIn("tracestate", self.mock.stats()["last_headers"])  # it belongs to a traceparent
            traces.add(trace)
        self.assertEqual(len(traces), 4)
        self.assertNotIn(TRACE, traces)

    def test_exported(self):
        trace = "1" * 32
        answer = chat(self.gateway.port, "mock", "x", {"traceparent": f"00-{trace}-{SPAN}-01"})
        wait_until(self, lambda: self.spans(trace), "a span arrived")
        path, headers, body = self.collector.requests[-1]
        self.assertEqual((path, headers["Content-Type"], headers["x-tenant"]),
                         ("/v1/traces", "application/json", "telemetry-secret"))
        resource = body["resourceSpans"][0]["resource"]["attributes"]
        self.assertIn({"key": "service.name", "value": {"stringValue": "test-gateway"}}, resource)
        span = next(span for span in self.spans(trace) if span["kind"] == 2)
        self.assertEqual(span["parentSpanId"], SPAN)
        self.assertLess(int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]))
        attributes = span["attributes"]
        for name, value in (("gen_ai.operation.name", "chat"), ("gen_ai.request.model", "mock"),
                            ("http.response.status_code", "200"),
                            ("gen_ai.usage.output_tokens", str(answer.json()["usage"]["completion_tokens"])),
                            ("fixpoint.cache.result", "bypass"), ("fixpoint.upstream", "mock")):
            self.assertEqual(attributes.get(name), value, name)
        self.assertNotIn("telemetry-secret", self.gateway.log())

    def test_the_upstreams_parent_is_a_span(self):
        trace = "2" * 32
        chat(self.gateway.port, "mock", "x", {"traceparent": f"00-{trace}-{SPAN}-01"})
        _, parent, _ = self.upstream_parent()
        wait_until(self, lambda: self.spans(trace), "a span arrived")
        self.assertIn(parent, {span["spanId"] for span in self.spans(trace)})

    def test_the_answers_model(self):
        trace = "5" * 32
        chat(self.gateway.port, "mock", "x", {"traceparent": f"00-{trace}-{SPAN}-01"})
        wait_until(self, lambda: self.spans(trace), "a span arrived")
        attributes = self.spans(trace)[0]["attributes"]
        self.assertEqual(attributes.get("gen_ai.response.model"), "mock")
        self.assertIn("gen_ai.response.finish_reasons", attributes)

    def test_what_is_not_sampled_is_not_exported(self):
        unsampled, sampled = "3" * 32, "4" * 32
        chat(self.gateway.port, "mock", "x", {"traceparent": f"00-{unsampled}-{SPAN}-00"})
        self.assertEqual(self.upstream_parent()[2], "00")
        chat(self.gateway.port, "mock", "x", {"traceparent": f"00-{sampled}-{SPAN}-01"})
        wait_until(self, lambda: self.spans(sampled), "the later one arrived")
        self.assertEqual(self.spans(unsampled), [])

    def test_hits_and_failures(self):
        for trace, model, cache, status in (("6" * 32, "mock", "miss", "200"), ("7" * 32, "mock", "hit", "200"),
                                            ("8" * 32, "mock-error-500", "miss", "500")):
            chat(self.gateway.port, model, "kinds", {"traceparent": f"00-{trace}-{SPAN}-01"}, temperature=0)
            server = wait_until(self, lambda t=trace: [s for s in self.spans(t) if s["kind"] == 2], "a span arrived")[0]
            self.assertEqual(server["attributes"]["fixpoint.cache.result"], cache)
            self.assertEqual(server["attributes"]["http.response.status_code"], status)
            self.assertEqual(server.get("status", {}).get("code"), 2 if status == "500" else None)
            self.assertEqual(server["attributes"].get("error.type"), "500" if status == "500" else None)

    def test_a_clients_error_is_not_the_spans(self):
        trace = "9" * 32
        chat(self.gateway.port, "mock-error-400", "x", {"traceparent": f"00-{trace}-{SPAN}-01"})
        span = wait_until(self, lambda: self.spans(trace), "a span arrived")[0]
        self.assertEqual(span["attributes"]["http.response.status_code"], "400")
        self.assertNotIn("status", span)
        self.assertNotIn("error.type", span["attributes"])

    def test_secrets_stay_out(self):
        trace = "a" * 32
        chat(self.gateway.port, "sk-upstream-secret", "x", {"traceparent": f"00-{trace}-{SPAN}-01"})
        span = wait_until(self, lambda: self.spans(trace), "a span arrived")[0]
        self.assertEqual(span["attributes"]["gen_ai.request.model"], "***")
        self.assertNotIn("sk-upstream-secret", json.dumps(span))

    def test_passed_on_as_it_is_where_nothing_is_exported(self):
        gateway = Gateway({name: value for name, value in self.config().items() if name != "telemetry"})
        self.addCleanup(gateway.stop)
        chat(gateway.port, "mock", "x", {"traceparent": PARENT, "tracestate": "vendor=1"})
        headers = self.mock.stats()["last_headers"]
        self.assertEqual((headers["traceparent"], headers["tracestate"]), (PARENT, "vendor=1"))

    def test_a_collector_that_is_away_costs_nothing(self):
        gateway = Gateway({**self.config(), "telemetry": {"otlp_endpoint": "http://127.0.0.1:9", "interval": "100ms"}})
        self.addCleanup(gateway.stop)
        for i in range(5):
            self.assertEqual(chat(gateway.port, "mock", f"{i}").status, 200)
        wait_until(self, lambda: metric(gateway.port, "fixpoint_spans_lost_total", reason="not_taken") == 5,
                   "the lost spans are counted")


class Metrics(GatewayTest):
    @classmethod
    def config(cls):
        return {"models": [{"name": "tiny", "path": tiny_model(cls.folder), "threads": 1}],
                "upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "x"}],
                "routes": [{"model": "tiny", "local": "tiny"}, {"model": "*", "upstream": "mock"}]}

    def test_names_and_values(self):
        usage = chat(self.gateway.port, "mock", "x", temperature=0, stream=True,
                     stream_options={"include_usage": True}).chunks()[-1]["usage"]
        chat(self.gateway.port, "mock", "x", temperature=0)
        chat(self.gateway.port, "mock-error-500", "x")
        chat(self.gateway.port, "tiny", "x", max_tokens=2)
        port = self.gateway.port
        for source, count in (("cache", 1), ("upstream", 1), ("local", 1)):
            self.assertGreaterEqual(metric(port, "fixpoint_overhead_seconds_count", source=source), count, source)
        self.assertEqual(metric(port, "fixpoint_cache_requests_total", result="hit"), 1)
        self.assertEqual(metric(port, "fixpoint_cache_requests_total", result="miss"), 1)
        self.assertEqual(metric(port, "fixpoint_cache_requests_total", result="joined"), 0)
        self.assertEqual(metric(port, "fixpoint_requests_total", endpoint="chat.completions", status="200"), 3)
        self.assertEqual(metric(port, "fixpoint_requests_total", endpoint="chat.completions", status="500"), 1)
        self.assertEqual(metric(port, "fixpoint_upstream_requests_total", upstream="mock", result="200"), 1)
        self.assertEqual(metric(port, "fixpoint_upstream_requests_total", upstream="mock", result="500"), 1)
        labels = {"gen_ai_operation_name": "chat", "gen_ai_provider_name": "mock"}
        self.assertEqual(metric(port, "gen_ai_client_token_usage_sum", gen_ai_token_type="input", **labels),
                         usage["prompt_tokens"])
        self.assertEqual(metric(port, "gen_ai_client_token_usage_sum", gen_ai_token_type="output", **labels),
                         usage["completion_tokens"])
        self.assertEqual(metric(port, "gen_ai_server_request_duration_seconds_count", **labels, error_type=""), 1)
        self.assertEqual(metric(port, "gen_ai_server_time_to_first_token_seconds_count", **labels), 1)
        self.assertEqual(metric(port, "fixpoint_tokens_total", provider="mock", kind="completion"),
                         usage["completion_tokens"])
        for name in ("fixpoint_flights", "process_open_fds", "process_resident_memory_bytes", "fixpoint_request_seconds_count",
                     "fixpoint_upstream_breaker_state", "fixpoint_upstream_queue_depth", "fixpoint_upstream_in_flight",
                     "fixpoint_cache_write_failures_total", "fixpoint_log_write_failures_total"):
            self.assertIsNotNone(metric(port, name), name)
        chat(port, "mock-error-429", "x")
        chat(port, "mock-errorevent-2", "x", stream=True)  # that there were tokens counts no failure twice
        for error_type, count in (("", 1), ("429", 1), ("5xx", 2)):
            self.assertEqual(metric(port, "gen_ai_server_request_duration_seconds_count", **labels,
                                    error_type=error_type), count, error_type)

    def test_it_is_prometheus_text(self):
        answer = call(self.gateway.port, "GET", "/metrics")
        self.assertTrue(answer.headers["content-type"].startswith("text/plain; version=0.0.4"))
        sample = re.compile(r'[a-z_]+(\{([a-z_]+="([^"\\\n]|\\.)*",?)*\})? (NaN|[+-]?Inf|[-+.e0-9]+)')
        for line in answer.body.decode().splitlines():
            if not line.startswith("# "):
                self.assertTrue(sample.fullmatch(line), line)


class Heartbeats(GatewayTest):
    @classmethod
    def config(cls):
        return {"server": {"listen": "127.0.0.1:0", "heartbeat": "50ms"}, "cache": {"replay": "recorded"},
                "upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "x"},
                              {"name": "claude", "kind": "anthropic", "base_url": cls.mock.url.removesuffix("/v1"),
                               "api_key": "x"}],
                "routes": [{"model": "mock-claude*", "upstream": "claude"}, {"model": "*", "upstream": "mock"}]}

    def blocks(self, answer):
        self.assertTrue(answer.body.endswith(b"\n\n"))
        return answer.body.decode().removesuffix("\n\n").split("\n\n")

    def test_between_events_only(self):
        answer = chat(self.gateway.port, "mock-stream-5-150", stream=True)
        blocks = self.blocks(answer)
        beats = [i for i, block in enumerate(blocks) if block.startswith(":")]
        self.assertGreaterEqual(len(beats), 3)
        self.assertTrue(all("\n" not in blocks[i] for i in beats))
        self.assertTrue(blocks[0].startswith("data: {"))
        self.assertEqual(blocks[-1], "data: [DONE]")
        for chunk in answer.chunks():  # every event is whole
            self.assertEqual(chunk["object"], "chat.completion.chunk")
        self.assertTrue(answer.text().startswith("mock answer"))

    def test_also_while_a_stream_is_sent_again_at_its_pace(self):
        fresh, again = (chat(self.gateway.port, "mock-stream-4-400", stream=True, temperature=0) for _ in range(2))
        self.assertIn("hit", again.headers["cache-status"])
        blocks = self.blocks(again)
        self.assertGreaterEqual(sum(block == ":" for block in blocks), 3)
        self.assertTrue(blocks[0].startswith("data: {"))
        self.assertEqual(blocks[-1], "data: [DONE]")
        self.assertEqual(again.text(), fresh.text())

    def test_none_before_the_first_event(self):
        answer = chat(self.gateway.port, "mock-delay-300", stream=True)
        self.assertEqual([block for block in self.blocks(answer) if block.startswith(":")], [])

    def test_none_in_plain_answers(self):
        self.assertEqual(chat(self.gateway.port, "mock-delay-300").body[:1], b"{")

    def test_pings_for_anthropics_clients(self):
        body = {"model": "mock-claude-stream-5-150", "max_tokens": 50, "stream": True,
                "messages": [{"role": "user", "content": "x"}]}
        answer = call(self.gateway.port, "POST", "/v1/messages", body, {"anthropic-version": "2023-06-01"})
        blocks = self.blocks(answer)
        pings = [i for i, block in enumerate(blocks) if block == 'event: ping\ndata: {"type": "ping"}'
                 or block == 'event: ping\ndata: {"type":"ping"}']
        self.assertGreaterEqual(len(pings), 4, blocks[:6])  # the upstream sends one
        self.assertTrue(blocks[0].startswith("event: message_start"))
        self.assertTrue(blocks[-1].startswith("event: message_stop"))


if __name__ == "__main__":
    unittest.main()
