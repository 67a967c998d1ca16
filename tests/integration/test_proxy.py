"""Requests that go on to an upstream."""
import json
import socket
import time
import unittest

from harness import Gateway, GatewayTest, call, chat, in_parallel
from helpers import wait_until


class Proxy(GatewayTest):
    def test_plain_answer_passes_unchanged(self):
        direct = chat(self.mock.port, "mock")
        answer = chat(self.gateway.port, "mock")
        self.assertEqual(answer.status, 200)
        self.assertEqual(set(answer.json()), set(direct.json()))
        self.assertEqual(answer.json()["choices"][0]["finish_reason"], "stop")
        self.assertIn("x-request-id", answer.headers)
        self.assertEqual(answer.headers["cache-control"], "private")

    def test_stream_ends_with_done(self):
        answer = chat(self.gateway.port, "mock-stream-5-1", stream=True)
        self.assertTrue(answer.headers["content-type"].startswith("text/event-stream"))
        self.assertEqual(answer.events()[-1], "[DONE]")
        self.assertEqual(answer.chunks()[-1]["choices"][0]["finish_reason"], "stop")

    def test_stream_is_not_collected_before_it_is_sent(self):
        body = json.dumps({"model": "mock-stream-4-300", "stream": True,
                           "messages": [{"role": "user", "content": "slow"}]}).encode()
        with socket.create_connection(("127.0.0.1", self.gateway.port), 30) as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                               b"Content-Length: %d\r\n\r\n" % len(body) + body)
            received = b""
            while b"data: " not in received:
                received += connection.recv(65536)
        self.assertNotIn(b"[DONE]", received)  # the last chunk is almost a second away

    def test_request_body_reaches_the_upstream_byte_for_byte(self):
        body = (b'{ "zeta":1.0,"big":12345678901234567890123,  "model":"mock","messages":[{"role":"user",'
                b'"content":"\xc3\xa9 \\u00e9"}],"unknown":{"b":1,"a":-9007199254740991}}')
        self.assertEqual(call(self.gateway.port, "POST", "/v1/chat/completions", body).status, 200)
        self.assertEqual(self.mock.stats()["last_body"].encode(), body)

    def test_headers(self):
        chat(self.gateway.port, "mock", headers={
            "Authorization": "Bearer client-secret", "OpenAI-Organization": "org-1", "Connection": "x-hop",
            "x-hop": "1", "x-fixpoint-sample": "3", "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})
        seen = {name.lower(): value for name, value in self.mock.stats()["last_headers"].items()}
        self.assertEqual(seen["authorization"], "Bearer sk-upstream-secret")
        self.assertEqual(seen["openai-organization"], "org-1")
        self.assertEqual(seen["traceparent"], f"00-{'a' * 32}-{'b' * 16}-01")  # no span of ours is exported
        self.assertNotIn("x-fixpoint-sample", seen)

    def test_completions(self):
        answer = call(self.gateway.port, "POST", "/v1/completions", {"model": "mock", "prompt": "Once"})
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.json()["object"], "text_completion")

    def test_upstream_errors_pass_with_their_status_and_headers(self):
        for status in (400, 401, 403, 404, 409, 422, 500, 503):
            answer = chat(self.gateway.port, f"mock-error-{status}")
            self.assertEqual(answer.status, status)
            self.assertIn("message", answer.json()["error"])
        limited = chat(self.gateway.port, "mock-error-429")
        self.assertEqual(limited.status, 429)
        self.assertIn("retry-after", limited.headers)

    def test_a_cut_stream_never_ends_with_done(self):
        whole = len(chat(self.mock.port, "mock-cut-999999", stream=True).body)
        for cut in range(1, whole, 61):
            answer = chat(self.gateway.port, f"mock-cut-{cut}", stream=True, temperature=0)
            self.assertNotIn(b"[DONE]", answer.body)
            if answer.status == 200:
                self.assertIn("error", json.loads(answer.events()[-1]))
            else:
                self.assert_error(answer, 502)
        self.assertEqual(json.loads(self.gateway.cli("cache", "stats", "--json").stdout)["entries"], 0)
        self.assert_serving()

    def test_a_stream_without_done_is_an_error(self):
        answer = chat(self.gateway.port, "mock-nodone", stream=True)
        self.assertNotIn(b"[DONE]", answer.body)
        self.assertEqual(json.loads(answer.events()[-1])["error"]["code"], "upstream_closed")

    def test_a_body_that_is_no_json_is_502(self):
        self.assert_error(chat(self.gateway.port, "mock-garbage"), 502, "upstream_invalid_response")

    def test_framing_does_not_matter(self):
        plain = chat(self.gateway.port, "mock", stream=True)
        for model in ("mock-crlf", "mock-split"):
            answer = chat(self.gateway.port, model, stream=True)
            self.assertEqual(answer.events()[-1], "[DONE]")
            self.assertEqual(len(answer.chunks()), len(plain.chunks()))

    def test_usage_chunk_only_for_those_who_asked(self):
        asked = chat(self.gateway.port, "mock", stream=True, stream_options={"include_usage": True})
        self.assertTrue(any(chunk.get("usage") for chunk in asked.chunks()))
        silent = chat(self.gateway.port, "mock", stream=True, temperature=0)
        self.assertFalse(any(not chunk["choices"] for chunk in silent.chunks()))

    def test_a_client_that_leaves_cancels_the_upstream_call(self):
        body = json.dumps({"model": "mock-stream-200-100", "stream": True,
                           "messages": [{"role": "user", "content": "long"}]}).encode()
        with socket.create_connection(("127.0.0.1", self.gateway.port), 30) as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                               b"Content-Length: %d\r\n\r\n" % len(body) + body)
            connection.recv(100)
        deadline = time.monotonic() + 10
        while self.mock.stats().get("aborted", 0) == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.mock.stats()["aborted"], 1)

    def test_metrics_and_health(self):
        chat(self.gateway.port, "mock")
        self.assertEqual(call(self.gateway.port, "GET", "/healthz").status, 200)
        self.assertEqual(call(self.gateway.port, "GET", "/readyz").status, 200)
        text = call(self.gateway.port, "GET", "/metrics").body.decode()
        self.assertRegex(text, r'fixpoint_requests_total\{endpoint="chat.completions",status="200"\} [1-9]')

    def test_unknown_paths_and_methods(self):
        self.assert_error(call(self.gateway.port, "GET", "/v1/nothing"), 404, "unknown_url")
        self.assert_error(call(self.gateway.port, "GET", "/v1/chat/completions"), 405)
        self.assert_error(call(self.gateway.port, "DELETE", "/v1/models"), 405)

    def test_query_strings_do_not_break_routing(self):
        answer = call(self.gateway.port, "POST", "/v1/chat/completions?api-version=2024-10-21",
                      {"model": "mock", "messages": [{"role": "user", "content": "x"}]})
        self.assertEqual(answer.status, 200)

    def test_secrets_are_not_logged(self):
        chat(self.gateway.port, "mock", headers={"Authorization": "Bearer client-secret"})
        self.assertNotIn("sk-upstream-secret", self.gateway.log())
        self.assertNotIn("client-secret", self.gateway.log())


class UpstreamDown(unittest.TestCase):
    def test_502_and_still_serving(self):
        with socket.socket() as unused:  # bound and not listening: connections are refused
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
            gateway = Gateway({"upstreams": [{"name": "down", "base_url": url}],
                               "routes": [{"model": "*", "upstream": "down"}]})
            self.addCleanup(gateway.stop)
            for stream in (False, True):
                answer = chat(gateway.port, "any", stream=stream)
                self.assertEqual(answer.status, 502)
                self.assertEqual(answer.json()["error"]["code"], "upstream_unreachable")
            self.assertEqual(call(gateway.port, "GET", "/healthz").status, 200)

    def test_gateway_without_routes(self):
        """Nothing configured: fixpoint-tiny answers to its name, and nothing else is known."""
        gateway = Gateway({})
        self.addCleanup(gateway.stop)
        models = call(gateway.port, "GET", "/v1/models").json()["data"]
        self.assertEqual([model["id"] for model in models], ["fixpoint-tiny"])
        answer = chat(gateway.port, "fixpoint-tiny", "What is the capital of France?", temperature=0)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertIn("Paris", answer.text())
        answer = chat(gateway.port, "any")
        self.assertEqual(answer.status, 404)
        self.assertEqual(answer.json()["error"]["code"], "model_not_found")


class Drain(GatewayTest):
    def test_sigterm_lets_an_answer_end(self):
        gateway = Gateway(self.config())
        def slow(_):
            return chat(gateway.port, "mock-delay-1500")
        before = self.mock.stats()["requests"]
        def stop(_):
            wait_until(self, lambda: self.mock.stats()["requests"] > before, "it is on its way")
            return gateway.stop()
        answer, code = in_parallel(2, lambda i: (slow, stop)[i](i))
        self.assertEqual(answer.status, 200)
        self.assertEqual(code, 0)
