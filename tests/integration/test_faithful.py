"""Answers that the gateway cannot put together, or that are spelled as it would not: they pass all the same."""
import http.server
import json
import unittest

from harness import Gateway, call, chat
from helpers import Server, metric, wait_until


def chat_text(content, **members):
    """A plain chat answer whose content is spelled as given."""
    rest = "".join(f',"{name}":{value}' for name, value in members.items())
    return ('{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",'
            f'"content":"{content}"}},"logprobs":{{"content":[]}},"finish_reason":"stop"}}]{rest}}}')


def chat_stream(*contents):
    """A chat stream; each piece of the content is spelled as given."""
    chunk = '{{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,{}}}]}}'
    chunks = [chunk.format(f'"delta":{{"content":"{content}"}}') for content in contents]
    return [("", data) for data in [*chunks, chunk.format('"delta":{},"finish_reason":"stop"'), "[DONE]"]]


def message_stream(*pieces):
    """Anthropic's stream of one tool call with the pieces of its input."""
    events = [{"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "c",
                                                    "content": [], "stop_reason": None, "usage": {"input_tokens": 1}}},
              {"type": "content_block_start", "index": 0,
               "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}},
              *({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
                for piece in pieces),
              {"type": "content_block_stop", "index": 0},
              {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
              {"type": "message_stop"}]
    return [(event["type"], json.dumps(event)) for event in events]


class Scripted(http.server.BaseHTTPRequestHandler):
    """An upstream that answers with the server's `answer`: a body, or the events of a stream."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.calls += 1
        answer = self.server.answer
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if isinstance(answer, str) else "text/event-stream")
        self.end_headers()
        if not isinstance(answer, str):
            answer = "".join((f"event: {name}\n" if name else "") + f"data: {data}\n\n" for name, data in answer)
        self.wfile.write(answer.encode())


class Faithful(unittest.TestCase):
    def start(self, log=None, kind="openai"):
        self.server = Server(Scripted)
        self.server.calls = 0
        self.addCleanup(self.server.stop)
        self.gateway = Gateway({"log": log or {}, "cache": {"policy": "all"}, "upstreams": [
            {"name": "up", "kind": kind, "base_url": f"http://127.0.0.1:{self.server.port}/v1", "api_key": "x", "retries": 0,
             "breaker_failures": 2}], "routes": [{"model": "*", "upstream": "up"}]})
        self.addCleanup(self.gateway.stop)

    def messages(self, **fields):
        return call(self.gateway.port, "POST", "/v1/messages",
                    {"model": "c", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], **fields})

    def data_of(self, answer):
        return [line[len("data: "):] for line in answer.body.decode().split("\n") if line.startswith("data: ")]

    def test_a_tools_input_that_is_no_json(self):
        self.start(kind="anthropic")
        self.server.answer = message_stream('{"a":', "}")
        for _ in range(2):  # it is not stored
            answer = self.messages(stream=True)
            self.assertEqual(self.data_of(answer), [data for _, data in self.server.answer])
        self.assertEqual(self.server.calls, 2)

    def test_half_a_surrogate_pair_in_a_stream(self):
        self.start()
        self.server.answer = chat_stream("hi \\ud83d", "\\ude00!")
        for _ in range(2):
            answer = chat(self.gateway.port, "m", stream=True)
            self.assertEqual(answer.events(), [data for _, data in self.server.answer])
        self.assertEqual(self.server.calls, 2)

    def test_half_a_surrogate_pair_in_a_plain_answer(self):
        self.start()
        self.server.answer = chat_text("hi \\ud83d")
        for _ in range(2):
            self.assertEqual(chat(self.gateway.port, "m").body.decode(), self.server.answer)
        self.assertEqual(chat(self.gateway.port, "m", stream=True).text(), "hi \ufffd")
        self.assertEqual(self.server.calls, 1)

    def test_what_cannot_be_used_is_no_outage(self):
        self.start()
        self.server.answer = '{"choices": 5}'
        for i in range(4):
            self.assertEqual(chat(self.gateway.port, "m", f"{i}").status, 502)
        self.assertEqual(self.server.calls, 4)
        # Nor is what has no counterpart in the client's API.
        self.server.answer = chat_text("x").replace('"content":', '"images":[{"type":"image_url"}],"content":')
        for i in range(4):
            self.assertEqual(self.messages(max_tokens=1 + i).status, 502)
        self.assertEqual(self.server.calls, 8)

    def test_what_a_translation_leaves_out_is_told(self):
        self.start()
        note = '"annotations":[{"type":"url_citation"}],'
        self.server.answer = chat_text("x").replace('"content":', note + '"content":')
        answer = self.messages()
        self.assertEqual(answer.headers["x-fixpoint-dropped"], "choices[].message.annotations")
        self.server.answer = [(name, data.replace('"delta":{"content"', '"delta":{' + note + '"content"'))
                              for name, data in chat_stream("x")]
        answer = self.messages(stream=True, max_tokens=8)
        self.assertEqual(answer.status, 200)
        self.assertNotIn("error", answer.body.decode())
        wait_until(self, lambda: "no place for: choices[].message.annotations" in self.gateway.log(), "the log says so")

    def test_injected_logprobs_leave_everything_else_as_it_is_spelled(self):
        self.start(log={"logprobs": "inject"})
        self.server.answer = chat_text("\\u00e9", big="123456789012345678901234567890", small=" 1e-400")
        self.assertEqual(chat(self.gateway.port, "m").body.decode(),
                         self.server.answer.replace('{"content":[]}', "null"))

    def test_a_version_of_a_model_stands_for_its_fingerprint(self):
        self.start()
        for i, version in enumerate(("m-2025-01-01", "m-2025-06-01", "m-2025-01-01")):
            self.server.answer = chat_text("x").replace('"m"', f'"{version}"')
            chat(self.gateway.port, "m", f"{i}")
        self.assertEqual(metric(self.gateway.port, "fixpoint_fingerprint_changes_total", upstream="up"), 1)
