"""What keys with limits are charged for, at an upstream that answers when the test says so."""
import concurrent.futures
import contextlib
import http.server
import json
import queue
import socket
import threading
import unittest

from harness import PATIENCE_S, Gateway, call, chat
from helpers import Server, metric, wait_until


def answer_to(body):
    if body["model"] == "vectors":
        return {"object": "list", "model": "vectors", "data": [{"object": "embedding", "index": 0, "embedding": [1]}]}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"],
              "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
              "usage": {"prompt_tokens": 0, "completion_tokens": 100, "total_tokens": 100}}
    if body["model"] == "empty":
        answer["choices"][0]["message"]["content"] = ""
        del answer["usage"]
    return answer


def bearer(key):
    return {"Authorization": f"Bearer {key['secret']}"}


class Charges(unittest.TestCase):
    def setUp(self):
        self.go = go = threading.Event()
        self.seen = seen = queue.SimpleQueue()

        class Upstream(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                answer = json.dumps(answer_to(body)).encode()
                at_once = len(answer) // 2 if body["model"] == "half" else 0
                with contextlib.suppress(OSError):  # the gateway may have left
                    if at_once:
                        self.begin(200, answer[:at_once], len(answer))
                    seen.put(body)
                    go.wait(PATIENCE_S)
                    if not at_once:
                        self.begin(500 if body["model"] == "broken" else 200, b"", len(answer))
                    self.wfile.write(answer[at_once:])

            def begin(self, status, first, length):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(first)

        self.upstream = Server(Upstream)
        self.addCleanup(self.upstream.stop)
        url = f"http://127.0.0.1:{self.upstream.port}/v1"
        self.gateway = Gateway({"upstreams": [{"name": "u", "base_url": url},
                                              {"name": "narrow", "base_url": url, "max_concurrency": 1}],
                                "routes": [{"model": "queued", "upstream": "narrow"}, {"model": "*", "upstream": "u"}],
                                "prices": [{"model": "*", "input": 1, "output": 1000}]})
        self.addCleanup(self.gateway.stop)
        self.addCleanup(self.go.set)

    def create(self, *limits):
        return json.loads(self.gateway.cli("keys", "create", "--name", "test", "--json", *limits).stdout)

    def usage(self, key):
        months = json.loads(self.gateway.cli("keys", "usage", key["id"], "--json").stdout)["data"]
        return months[0] if months else {"requests": 0, "prompt_tokens": 0, "completion_tokens": 0}

    def ask(self, key, text, model="m", **fields):
        return chat(self.gateway.port, model, text, bearer(key), max_tokens=100, **fields)

    def test_a_budget_holds_against_parallel_requests(self):
        key = self.create("--monthly-usd", "0.1")  # of which one answer takes all
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            first = pool.submit(self.ask, key, "same", temperature=0)
            self.seen.get(timeout=PATIENCE_S)
            joined = pool.submit(self.ask, key, "same", temperature=0)
            refused = [pool.submit(self.ask, key, f"another {i}") for i in range(18)]
            for answer in [one.result() for one in refused]:
                self.assertEqual((answer.status, answer.headers.get("retry-after")), (429, "1"), answer.body)
                error = answer.json()["error"]
                self.assertEqual(error["code"], "rate_limit_exceeded")
                self.assertIn("in flight that hold the rest of its limit of 0.1 US dollars a month", error["message"])
            self.go.set()
            self.assertEqual((first.result().status, joined.result().status), (200, 200))
        self.assertTrue(self.seen.empty())
        spent = self.ask(key, "afterwards")
        self.assertEqual((spent.status, spent.json()["error"]["code"]), (429, "insufficient_quota"))

    def test_what_failed_is_held_no_longer(self):
        key = self.create("--monthly-usd", "0.1")
        self.go.set()
        for model, status in (("broken", 500), ("m", 200)):
            self.assertEqual(self.ask(key, "x", model).status, status)

    def test_what_has_no_text_has_a_prompt(self):
        key = self.create()
        self.go.set()
        text = "four letters each " * 1000
        answer = call(self.gateway.port, "POST", "/v1/embeddings", {"model": "vectors", "input": text}, bearer(key))
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(self.ask(key, text, "empty").status, 200)
        prompt = len(text) // 4
        self.assertTrue(2 * prompt <= self.usage(key)["prompt_tokens"] <= 2 * prompt + 100, self.usage(key))

    def leave(self, key, model, began):
        """A request with a prompt of 100,000 tokens whose client leaves when `began` has happened."""
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": "x " * 200_000}]}).encode()
        with socket.create_connection(("127.0.0.1", self.gateway.port), PATIENCE_S) as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                               b"%s\r\nContent-Length: %d\r\n\r\n" % (key["secret"].encode(), len(body)) + body)
            began()

    def test_who_leaves_pays_for_the_prompt(self):
        key = self.create()
        for model, answers in (("m", 1), ("half", 2)):  # before the answer, and during a plain one
            self.leave(key, model, lambda: self.seen.get(timeout=PATIENCE_S))
            wait_until(self, lambda: self.usage(key)["requests"] == answers, "it is charged")
            prompt = self.usage(key)["prompt_tokens"]
            self.assertTrue(answers * 100_000 <= prompt <= answers * 100_100, prompt)

    def test_who_leaves_before_the_upstream_has_it_pays_nothing(self):
        key = self.create()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            busy = pool.submit(self.ask, self.create(), "takes the only place", "queued")
            self.seen.get(timeout=PATIENCE_S)
            waiting = lambda: metric(self.gateway.port, "fixpoint_upstream_queue_depth", upstream="narrow") == 1
            self.leave(key, "queued", lambda: wait_until(self, waiting, "it waits"))
            wait_until(self, lambda: not waiting(), "it has left")
            self.go.set()
            self.assertEqual(busy.result().status, 200)
        self.assertTrue(self.seen.empty())
        self.assertEqual(self.usage(key)["requests"], 0)


if __name__ == "__main__":
    unittest.main()
