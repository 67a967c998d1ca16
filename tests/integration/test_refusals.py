"""What upstreams refuse, in whatever way they say so: who is asked next, and what the client hears."""
import collections
import gzip
import http.server
import json
import unittest

from harness import Gateway, call
from helpers import Server, metric

STREAM = {"Content-Type": "text/event-stream"}
GOOD = json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "message": {"role": "assistant", "content": "good"}, "finish_reason": "stop"}]})
WORDS = [{"role": "user", "content": "x"}]


class Refusals(unittest.TestCase):
    def start(self, answer, **upstream):
        """A gateway before two upstreams, one the other's fallback for the model "both"; `answer` gives status, headers
        and body for a model or a key and how often it was asked, or nothing: the connection is closed."""
        self.asked = asked = collections.Counter()

        class Upstream(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                key = (self.headers["Authorization"] or self.headers["x-api-key"]).removeprefix("Bearer ")
                asked[key] += 1
                told = answer(key, body["model"], asked[key])
                if told is None:
                    self.close_connection = True
                    return
                status, headers, body = told
                body = body if isinstance(body, bytes) else body.encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
        server = Server(Upstream)
        self.addCleanup(server.stop)
        url = f"http://127.0.0.1:{server.port}"
        keys = upstream.pop("api_keys", ["sk-first"])
        self.gateway = Gateway({
            "server": {"listen": "127.0.0.1:0", "threads": 1},  # several share no connections
            "upstreams": [{"name": "first", "base_url": url + "/v1", "api_keys": keys, **upstream},
                          {"name": "second", "base_url": url + "/v1", "api_key": "sk-second"},
                          {"name": "messages", "kind": "anthropic", "base_url": url, "api_key": "sk-messages", **upstream}],
            "routes": [{"model": "both", "upstream": "first", "fallbacks": ["second"]},
                       {"model": "claude", "upstream": "messages"}, {"model": "*", "upstream": "first"}]})
        self.addCleanup(self.gateway.stop)

    def ask(self, model="m", path="/v1/chat/completions", **fields):
        self.asked.clear()
        return call(self.gateway.port, "POST", path, {"model": model, "messages": WORDS, "max_tokens": 9, **fields})

    def breaker(self, upstream):
        return metric(self.gateway.port, "fixpoint_upstream_breaker_state", upstream=upstream)

    def test_a_bad_request_under_http_200_is_the_clients(self):
        error = {"message": "bad tool schema", "type": "invalid_request_error"}

        def answer(key, model, _):
            if model == "claude":
                data = {"type": "error", "error": error}
                return 200, STREAM, f"event: error\ndata: {json.dumps(data)}\n\n"
            data = json.dumps({"error": {**error, "code": 400}})
            return (200, STREAM, f"data: {data}\n\n") if model == "stream" else (200, {}, data)
        self.start(answer, breaker_failures=1, retries=1)
        for path, model, stream in (("/v1/chat/completions", "stream", True), ("/v1/chat/completions", "plain", False),
                                    ("/v1/messages", "claude", True), ("/v1/chat/completions", "claude", True)):
            with self.subTest(path=path, model=model):
                refused = self.ask(model, path, stream=stream)
                self.assertEqual(refused.status, 400, refused.body)
                self.assertEqual(refused.json()["error"]["message"], "bad tool schema")
                self.assertEqual(sum(self.asked.values()), 1)
                self.assertEqual([self.breaker("first"), self.breaker("messages")], [0, 0])

    def test_an_overload_under_http_200_is_tried_again(self):
        def answer(key, model, times):
            if times == 1:
                return 200, STREAM, 'data: {"error":{"message":"busy","code":503}}\n\n'
            return 200, {}, GOOD
        self.start(answer, retries=1)
        tried = self.ask(stream=False)
        self.assertEqual(tried.status, 200, tried.body)
        self.assertEqual(tried.headers["x-fixpoint-attempts"], "2")

    def test_a_key_under_http_200_that_is_limited(self):
        self.start(lambda key, model, _: (200, {}, GOOD if key == "k2" else '{"error":{"code":429,"message":"slow"}}'),
                   api_keys=["k1", "k2"], retries=0)
        self.assertEqual(self.ask().status, 200)

    def test_not_again_there_is_not_nowhere(self):
        told = {"x-should-retry": "false"}
        for status, headers in ((500, told), (429, told), (402, {})):
            with self.subTest(status=status):
                self.start(lambda key, model, _, status=status, headers=headers:
                           (200, {}, GOOD) if key == "sk-second" else (status, headers, "{}"))
                answer = self.ask("both")
                self.assertEqual(answer.status, 200, answer.body)
                self.assertEqual(self.asked, {"sk-first": 1, "sk-second": 1})
                self.assertEqual(self.ask("first alone").status, status)
                self.assertEqual(self.asked, {"sk-first": 1})

    def test_not_again_with_this_key_is_with_another(self):
        self.start(lambda key, model, _: (200, {}, GOOD) if key == "k2" else (429, {"x-should-retry": "false"}, "{}"),
                   api_keys=["k1", "k2"])
        self.assertEqual(self.ask().status, 200)
        self.assertEqual(self.asked, {"k1": 1, "k2": 1})

    def test_nobody_waits_for_a_time_that_was_not_named(self):
        for headers in ({}, {"Retry-After": "0"}):
            # Each key is limited once. A wait of more than the answer may take is not begun.
            self.start(lambda key, model, times, headers=headers:
                       (200, {}, GOOD) if times > 1 else (429, headers, "{}"),
                       api_keys=["k1", "k2"], retries=1, total_timeout="50s")
            self.assertEqual(self.ask().status, 200)
            self.assertEqual(sum(self.asked.values()), 3)

    def test_an_error_in_an_encoding_that_nobody_asked_for(self):
        self.start(lambda key, model, _: (429, {"Content-Encoding": "gzip", "Retry-After": "90"}, gzip.compress(b"{}")),
                   breaker_failures=1)
        answer = self.ask()
        self.assertEqual(answer.status, 429, answer.body)
        self.assertEqual(answer.headers["retry-after"], "90")
        self.assertNotIn("content-encoding", answer.headers)
        self.assertIn("HTTP 429", answer.json()["error"]["message"])
        self.assertEqual(self.breaker("first"), 0)

    def test_a_request_that_was_sent_twice_says_so(self):
        # The second request meets a close, as of a connection that was idle for too long.
        self.start(lambda key, model, times: None if model == "gone" and times == 1 else (200, {}, GOOD), retries=1)
        self.assertEqual(self.ask().headers["x-fixpoint-attempts"], "1")
        again = self.ask("gone")
        self.assertEqual(again.status, 200, again.body)
        self.assertEqual(again.headers["x-fixpoint-attempts"], "2")
        self.assertEqual(metric(self.gateway.port, "fixpoint_upstream_retries_total", upstream="first"), 1)


if __name__ == "__main__":
    unittest.main()
