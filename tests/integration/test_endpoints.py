"""Every endpoint where maker and client speak one API, and the local engine at all that it answers."""
import base64
import http.server
import json
import struct
import unittest

from endpoint_support import (WEATHER, MESSAGE_TOOLS, ANTHROPIC, named_events, responses_text, message_text,
                              streamed_message_text, streamed_responses_text, Endpoints)
from harness import Gateway, call
from helpers import Server


class PassThrough(Endpoints):
    def test_responses(self):
        body = {"model": "mock", "input": "Hello", "temperature": 0}
        answer = self.ok("responses", body)
        self.assertEqual(answer.json()["object"], "response")
        self.assertIn("hit", self.ok("responses", body).headers["cache-status"])
        streamed = self.ok("responses", {**body, "stream": True})
        self.assertIn("hit", streamed.headers["cache-status"])
        names = [name for name, _ in named_events(streamed)]
        self.assertEqual((names[0], names[-1]), ("response.created", "response.completed"))
        self.assertNotIn(b"[DONE]", streamed.body)
        numbers = [data["sequence_number"] for _, data in named_events(streamed)]
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertEqual(streamed_responses_text(streamed), responses_text(answer.json()))
        self.assertEqual(named_events(streamed)[-1][1]["response"]["usage"], answer.json()["usage"])

    def test_messages(self):
        body = {"model": "mock-claude", "max_tokens": 50, "temperature": 0, "messages": [{"role": "user", "content": "x"}]}
        answer = self.ok("messages", body, ANTHROPIC)
        self.assertEqual(answer.json()["type"], "message")
        self.assertIn("request-id", answer.headers)
        headers = self.mock.stats()["last_headers"]
        self.assertEqual((headers["x-api-key"], headers["anthropic-version"]), ("sk-anthropic", "2023-06-01"))
        self.assertNotIn("authorization", headers)
        streamed = self.ok("messages", {**body, "stream": True}, ANTHROPIC)
        self.assertIn("hit", streamed.headers["cache-status"])
        names = [name for name, _ in named_events(streamed)]
        self.assertEqual((names[0], names[-1]), ("message_start", "message_stop"))
        self.assertEqual(streamed_message_text(streamed), message_text(answer.json()))

    def test_versions_and_betas(self):
        body = {"model": "mock-claude", "max_tokens": 50, "temperature": 0, "messages": [{"role": "user", "content": "v"}]}
        keys = set()
        for version in ("2023-01-01", "2023-06-01"):
            for beta in ({}, {"anthropic-beta": "some-beta"}):
                answer = self.ok("messages", body, {"anthropic-version": version, **beta})
                headers = self.mock.stats()["last_headers"]
                self.assertEqual((headers["anthropic-version"], headers.get("anthropic-beta")),
                                 (version, beta.get("anthropic-beta")))
                keys.add(answer.headers["x-fixpoint-key"])
        self.assertEqual(len(keys), 4)

    def test_count_tokens(self):
        body = {"model": "mock-claude", "messages": [{"role": "user", "content": "count me"}]}
        answer = self.ok("messages/count_tokens", body, ANTHROPIC)
        self.assertGreater(answer.json()["input_tokens"], 0)
        self.assertIn("hit", self.ok("messages/count_tokens", body, ANTHROPIC).headers["cache-status"])
        self.assertEqual(self.mock.stats()["by_path"], {"/v1/messages/count_tokens": 1})
        refused = self.post("messages/count_tokens", {**body, "model": "mock"}, ANTHROPIC)
        self.assertEqual((refused.status, refused.json()["type"]), (400, "error"))

    def test_embeddings_as_they_were_asked_for(self):
        floats = self.ok("embeddings", {"model": "mock", "input": "embed me"})
        coded = self.ok("embeddings", {"model": "mock", "input": "embed me", "encoding_format": "base64"})
        vector = floats.json()["data"][0]["embedding"]
        self.assertIsInstance(vector, list)
        raw = base64.b64decode(coded.json()["data"][0]["embedding"])
        self.assertEqual([round(x, 5) for x in struct.unpack(f"<{len(vector)}f", raw)], [round(x, 5) for x in vector])
        self.assertNotEqual(floats.headers["x-fixpoint-key"], coded.headers["x-fixpoint-key"])
        for body, first in (({}, floats), ({"encoding_format": "base64"}, coded)):
            again = self.ok("embeddings", {"model": "mock", "input": "embed me", **body})
            self.assertIn("hit", again.headers["cache-status"])
            self.assertEqual(again.body, first.body)
        several = self.ok("embeddings", {"model": "mock", "input": ["a", "b"], "dimensions": 3}).json()["data"]
        self.assertEqual([len(one["embedding"]) for one in several], [3, 3])
        self.assertEqual(floats.body, self.direct("embeddings", {"model": "mock", "input": "embed me"}).body)

    def test_completions_with_echo_and_several_prompts(self):
        body = {"model": "mock", "prompt": [[1, 2, 3], [4, 5]], "echo": True, "logprobs": 1, "max_tokens": 1,
                "temperature": 0}
        answer = self.ok("completions", body)
        choices = answer.json()["choices"]
        self.assertEqual([choice["index"] for choice in choices], [0, 1])
        for choice, prompt in zip(choices, body["prompt"]):
            probs = choice["logprobs"]
            self.assertEqual(probs["tokens"][:len(prompt)], [f" t{token}" for token in prompt])
            self.assertIsNone(probs["token_logprobs"][0])
            self.assertEqual(len(probs["tokens"]), len(prompt) + 1)
        self.assertEqual(self.sent(), body)
        self.assertEqual(self.ok("completions", {**body, "stream": True, "echo": False, "max_tokens": 9}).events()[-1],
                         "[DONE]")

    def test_models_in_both_shapes(self):
        openai = call(self.gateway.port, "GET", "/v1/models").json()
        self.assertEqual((openai["object"], [m["id"] for m in openai["data"]]), ("list", ["tiny", "mock-exact"]))
        self.assertEqual({m["object"] for m in openai["data"]}, {"model"})
        anthropic = call(self.gateway.port, "GET", "/v1/models", headers=ANTHROPIC).json()
        self.assertEqual([m["id"] for m in anthropic["data"]], ["tiny", "mock-exact"])
        self.assertEqual((anthropic["has_more"], anthropic["first_id"], anthropic["last_id"]),
                         (False, "tiny", "mock-exact"))
        self.assertEqual({(m["type"], "display_name" in m) for m in anthropic["data"]}, {("model", True)})
        self.assertEqual(call(self.gateway.port, "GET", "/v1/models/tiny").json()["id"], "tiny")
        self.assertEqual(call(self.gateway.port, "GET", "/v1/models/none").status, 404)
        missing = call(self.gateway.port, "GET", "/v1/models/none", headers=ANTHROPIC)
        self.assertEqual((missing.status, missing.json()["error"]["type"]), (404, "not_found_error"))

    def test_unknown_members_survive(self):
        odd = '"x_new": {"deep": [1.10, 1e3, 12345678901234567890, "\\u00e9\\/"]}, "null_one": null'
        for path, start, headers in (
                ("chat/completions", '"model": "mock", "messages": [{"role": "user", "content": "x", "odd": 0.10}]', None),
                ("completions", '"model":"mock","prompt":"x"', None), ("responses", '"model":"mock","input":"x"', None),
                ("embeddings", '"model":"mock","input":"x"', None),
                ("messages", '"model":"mock-claude", "max_tokens":9,"messages":[{"role":"user","content":"x"}]', ANTHROPIC)):
            with self.subTest(path):
                body = ("{" + start + ",  " + odd + "}").encode()
                answer = self.ok(path, body, headers)
                self.assertEqual(self.mock.stats()["last_body"], body.decode())
                self.assertEqual(json.loads(answer.body).keys(), self.direct(path, body).json().keys())

    def test_errors_in_the_clients_shape(self):
        for model in ("mock-error-429", "mock-claude-error-429"):
            openai = self.chat(model, [{"role": "user", "content": "x"}])
            self.assert_error(openai, 429)
            anthropic = self.messages(model, [{"role": "user", "content": "x"}])
            self.assertEqual((anthropic.status, anthropic.json()["type"], anthropic.json()["error"]["type"]),
                             (429, "error", "rate_limit_error"), anthropic.body)
            self.assertEqual(anthropic.headers["retry-after"], "1")


class Odd(http.server.BaseHTTPRequestHandler):
    """Answers the bytes that its server's `bodies` has for the path and whether a stream is asked for."""

    def do_POST(self):
        request = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.last = request
        stream = json.loads(request).get("stream", False)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.send_header("x-odd-header", "survives")
        self.end_headers()
        self.wfile.write(self.server.bodies[self.path, stream])


class ByteForByte(unittest.TestCase):
    ODD = b'"x_new" : {"n": [1.10, 1e3, 12345678901234567890, -0.0], "s": "\\u00e9 \\/ \xc3\xa9"},  "none": null'
    CHAT = (b'{ "id":"c1","object":"chat.completion","created":1,"model":"m", "choices":[ {"index":0,"message":'
            b'{"role":"assistant","content":"hi", %s},"finish_reason":"stop", %s} ], %s, "usage":{"prompt_tokens":1,'
            b'"completion_tokens":1,"total_tokens":2, %s}}\n' % (ODD, ODD, ODD, ODD))
    MESSAGE = (b'{"id":"m1", "type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi", %s}],'
               b'"stop_reason":"end_turn","stop_sequence":null, %s, "usage":{"input_tokens":1,"output_tokens":1, %s}}'
               % (ODD, ODD, ODD))
    EMBEDDING = (b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.10, 1e-3], %s}],"model":"m", %s,'
                 b'"usage":{"prompt_tokens":1,"total_tokens":1}}' % (ODD, ODD))
    CHUNKS = [b'{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m", %s, "choices":[{"index":0, "delta":'
              b'{"role":"assistant","content":"hi", %s},"finish_reason":null}]}' % (ODD, ODD),
              b'{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},'
              b'"finish_reason":"stop", %s}]}' % ODD, b"[DONE]"]

    def setUp(self):
        self.server = Server(Odd)
        self.addCleanup(self.server.stop)
        stream = b"".join(b"data: " + chunk + b"\n\n" for chunk in self.CHUNKS)
        self.server.bodies = {("/v1/chat/completions", False): self.CHAT, ("/v1/chat/completions", True): stream,
                              ("/v1/embeddings", False): self.EMBEDDING, ("/v1/messages", False): self.MESSAGE}
        url = f"http://127.0.0.1:{self.server.port}"
        self.gateway = Gateway({"upstreams": [{"name": "odd", "base_url": url + "/v1", "api_key": "x",
                                               "model_names": {"alias": "real"}},
                                              {"name": "claude", "kind": "anthropic", "base_url": url, "api_key": "x"}],
                                "routes": [{"model": "claude", "upstream": "claude"}, {"model": "*", "upstream": "odd"}]})
        self.addCleanup(self.gateway.stop)

    def ask(self, path, body):
        return call(self.gateway.port, "POST", path, body)

    def test_answers(self):
        for path, body, expected in (
                ("/v1/chat/completions", b'{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":0}', self.CHAT),
                ("/v1/embeddings", b'{"model":"m","input":"x"}', self.EMBEDDING),
                ("/v1/messages", b'{"model":"claude","max_tokens":9,"temperature":0,"messages":[{"role":"user","content":"x"}]}',
                 self.MESSAGE)):
            for cache in ("miss", "hit"):
                answer = self.ask(path, body)
                self.assertIn(cache, answer.headers["cache-status"])
                self.assertEqual(answer.body, expected)
                if cache == "miss":
                    self.assertEqual(answer.headers["x-odd-header"], "survives")

    def test_streams(self):
        body = b'{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":false}}'
        answer = self.ask("/v1/chat/completions", body)
        self.assertEqual(answer.body, self.server.bodies["/v1/chat/completions", True])

    def test_what_a_stream_had_is_in_the_plain_answer(self):
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "temperature": 0}
        self.ask("/v1/chat/completions", {**body, "stream": True})
        plain = self.ask("/v1/chat/completions", body)
        self.assertIn("hit", plain.headers["cache-status"])
        self.assertIn("x_new", plain.json())
        self.assertIn("x_new", plain.json()["choices"][0])
        self.assertIn("x_new", plain.json()["choices"][0]["message"])

    def test_streams_that_cannot_be_put_together_are_not_stored(self):
        """A replay must not lack what the stream had."""
        def stream(*deltas):
            choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
            choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
            chunks = [json.dumps({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
                                  "choices": [choice]}).encode() for choice in choices]
            return b"".join(b"data: " + chunk + b"\n\n" for chunk in [*chunks, b"[DONE]"])
        for told, deltas in (
                ("miss", ({"future": "one "}, {"future": "two"})),
                ("miss", ({"content": [{"type": "thinking", "thinking": "hm"}]}, {"content": "so"})),
                ("hit", ({"audio": {"transcript": "one "}}, {"audio": {"transcript": "two", "data": "AAAA"}},
                         {"audio": {"data": "BBBB"}}))):
            self.server.bodies["/v1/chat/completions", True] = stream(*deltas)
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": str(deltas)}], "temperature": 0,
                               "stream": True}).encode()
            first = self.ask("/v1/chat/completions", body)
            self.assertEqual(first.body, self.server.bodies["/v1/chat/completions", True])
            second = self.ask("/v1/chat/completions", body)
            self.assertIn(told, second.headers["cache-status"], deltas)
        audio = [choice["delta"].get("audio") or {} for chunk in second.chunks() for choice in chunk["choices"]]
        self.assertEqual("".join(piece.get("transcript", "") for piece in audio), "one two")
        self.assertEqual("".join(piece.get("data", "") for piece in audio), "AAAABBBB")

    def test_requests_that_are_changed_are_changed_there_only(self):
        self.ask("/v1/chat/completions", b'{ "messages":[{"role":"user","content":"\\u0041"} ],\n "model" :  "alias", '
                                         b'"temperature":0.50, %s }' % self.ODD)
        self.assertEqual(self.server.last, b'{ "messages":[{"role":"user","content":"\\u0041"} ],\n "model" :  "real", '
                                           b'"temperature":0.50, %s }' % self.ODD)


class Local(Endpoints):
    """The engine answers all four, and says the same to all."""
    # "<|im_start|>user\nZZ<|im_end|>\n<|im_start|>assistant\n" in the tiny model's tokens: 256 bytes, then its merges
    # ("er" 263, "is" 271, "an" 272, "as" 292), then the three special ones. Text alone cannot spell those.
    START, END = 298, 299
    PROMPT = [START, *b"us", 263, *b"\nZZ", END, *b"\n", START, 292, *b"s", 271, *b"t", 272, *b"t\n"]

    def asks(self, **fields):
        turns = [{"role": "user", "content": "ZZ"}]
        common = {"model": "tiny", "temperature": 0, **fields}
        return {
            "chat": self.ok("chat/completions", {"messages": turns, "max_tokens": 16, **common}),
            "responses": self.ok("responses", {"input": "ZZ", "max_output_tokens": 16, **common}),
            "messages": self.ok("messages", {"messages": turns, **common, "max_tokens": 16}, ANTHROPIC),
            "completions": self.ok("completions", {"prompt": self.PROMPT, "max_tokens": 16, **common}),
        }

    def test_the_same_text(self):
        plain = self.asks()
        texts = {"chat": plain["chat"].text(), "responses": responses_text(plain["responses"].json()),
                 "messages": message_text(plain["messages"].json()), "completions": plain["completions"].text()}
        self.assertTrue(texts["chat"])
        self.assertEqual(texts["responses"], texts["chat"])
        self.assertEqual(texts["messages"], texts["chat"])
        self.assertEqual(texts["completions"], texts["chat"])

    def test_streams_say_what_plain_answers_say(self):
        for fresh in (True, False):  # made now, then from the cache
            headers = {"Cache-Control": "no-cache"} if fresh else {}
            turns = [{"role": "user", "content": "Tell me"}]
            for path, body, say, stream_say in (
                    ("chat/completions", {"messages": turns, "max_tokens": 16}, lambda a: a.text(), lambda a: a.text()),
                    ("completions", {"prompt": "Tell me", "max_tokens": 16}, lambda a: a.text(), lambda a: a.text()),
                    ("responses", {"input": "Tell me", "max_output_tokens": 16}, lambda a: responses_text(a.json()),
                     streamed_responses_text),
                    ("messages", {"messages": turns, "max_tokens": 16}, lambda a: message_text(a.json()),
                     streamed_message_text)):
                with self.subTest(path=path, fresh=fresh):
                    body = {"model": "tiny", "temperature": 0, **body}
                    plain = self.ok(path, body)
                    streamed = self.ok(path, {**body, "stream": True}, headers)
                    self.assertEqual("hit" in streamed.headers["cache-status"], not fresh)
                    self.assertEqual(stream_say(streamed), say(plain))

    def test_stored_under_the_prompt(self):
        first, again = self.asks(), self.asks()
        for name in first:
            self.assertRegex(again[name].headers["x-fixpoint-key"], "^prompt:[0-9a-f]{64}$")
            self.assertIn("hit", again[name].headers["cache-status"], name)
            self.assertEqual(again[name].body, first[name].body)
        self.assertEqual(self.mock.stats()["requests"], 0)

    def test_shapes(self):
        answers = self.asks()
        self.assertEqual(answers["responses"].json()["status"], "incomplete")
        self.assertEqual(answers["responses"].json()["incomplete_details"], {"reason": "max_output_tokens"})
        message = answers["messages"].json()
        self.assertEqual((message["type"], message["stop_reason"]), ("message", "max_tokens"))
        self.assertEqual(message["usage"]["output_tokens"], 16)
        self.assertEqual(answers["responses"].json()["usage"]["input_tokens"], message["usage"]["input_tokens"])

    def test_a_stop_sequence_is_named(self):
        turns = [{"role": "user", "content": "ZZ"}]
        whole = message_text(self.messages("tiny", turns, temperature=0).json())
        stop = next(c for c in whole if c.isascii())  # other bytes of a random model are no text
        message = self.messages("tiny", turns, temperature=0, stop_sequences=["never said", stop]).json()
        self.assertEqual((message["stop_reason"], message["stop_sequence"]), ("stop_sequence", stop))
        choice = self.chat("tiny", turns, temperature=0, stop=[stop]).json()["choices"][0]
        self.assertEqual((choice["finish_reason"], choice.get("stop_reason")), ("stop", None))

    def test_a_directive_in_metadata(self):
        answer = self.messages("tiny", [{"role": "user", "content": "ZZ"}], metadata={"fixpoint_repro": "required"})
        self.assertEqual((answer.status, answer.headers.get("x-fixpoint-repro")), (200, "reproducible"), answer.body)

    def test_refused_by_name(self):
        refused = self.post("messages", {"model": "tiny", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}],
                                         "tools": MESSAGE_TOOLS}, ANTHROPIC)
        self.assertEqual((refused.status, refused.json()["error"]["type"]), (400, "invalid_request_error"))
        self.assertIn("tools", refused.json()["error"]["message"])
        self.assert_error(self.post("responses", {"model": "tiny", "input": "x", "tools": [
            {"type": "function", "name": "f", "parameters": WEATHER}]}), 400, param="tools")
        self.assert_error(self.post("embeddings", {"model": "tiny", "input": "x"}), 400, "unsupported_endpoint")

    def test_refused_by_the_clients_own_name(self):
        for fields, name in (({"max_output_tokens": 0}, "max_output_tokens"), ({"text": {"verbosity": "low"}}, "text.verbosity"),
                             ({"reasoning": {"effort": "high"}}, "reasoning.effort"),
                             ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input")):
            answer = self.post("responses", {"model": "tiny", "input": "x", **fields})
            self.assert_error(answer, 400, param=name)
            self.assertTrue(answer.json()["error"]["message"].startswith(f"'{name}'"), answer.body)
        result = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]}]
        for fields, said in (({"max_tokens": 0}, "'max_tokens' must be"), ({"messages": result}, "'messages': tool calls")):
            answer = self.post("messages", {"model": "tiny", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}],
                                            **fields}, ANTHROPIC)
            self.assertEqual(answer.status, 400)
            self.assertTrue(answer.json()["error"]["message"].startswith(said), answer.body)

    def test_echo_scores_the_prompt(self):
        answer = self.ok("completions", {"model": "tiny", "prompt": ["Once upon", "a time"], "echo": True, "logprobs": 1,
                                         "max_tokens": 1, "temperature": 0}).json()
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1])
        for choice, prompt in zip(answer["choices"], ("Once upon", "a time")):
            self.assertTrue(choice["text"].startswith(prompt))
            probs = choice["logprobs"]
            self.assertIsNone(probs["token_logprobs"][0])
            self.assertTrue(all(value <= 0 for value in probs["token_logprobs"][1:]))
            self.assertEqual(len(probs["tokens"]), len(probs["text_offset"]))


if __name__ == "__main__":
    unittest.main()
