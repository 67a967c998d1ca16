"""The upstream's connection ends after every possible byte of a stream: nobody may take that for an answer."""
import asyncio
import json
import unittest

from harness import GatewayTest, call
from raw_client import spread

CONCURRENCY = 16
# Every byte is cut once; each so many bytes the same request is sent again, for the upstream to hear it.
REPEAT_EVERY = 8
END_MARKS = (b"[DONE]", b"message_stop", b"response.completed", b"response.incomplete")
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}}


def model(cut):
    return f"mock-cut-{cut:06}"  # of one width, so that the stream has one length


def chat(cut):
    return {"model": model(cut), "temperature": 0, "stream": True, "messages": [{"role": "user", "content": "cut me"}]}


def chat_tools(cut):
    return {**chat(cut), "tools": [{"type": "function", "function": {"name": "weather", "parameters": TOOL}}]}


def responses(cut):
    return {"model": model(cut), "temperature": 0, "stream": True, "input": "cut me"}


def messages(cut):
    return {"model": model(cut), "temperature": 0, "stream": True, "max_tokens": 99,
            "messages": [{"role": "user", "content": "cut me"}]}


class Cuts:
    """For every kind of stream; the mock upstream's is as long as the last byte that is cut."""

    kind = "openai"

    @classmethod
    def config(cls):
        url = cls.mock.url if cls.kind == "openai" else cls.mock.url.removesuffix("/v1")
        # No attempt is made twice, so that each request is one call.
        return {"upstreams": [{"name": "mock", "kind": cls.kind, "base_url": url, "api_key": "x", "retries": 0,
                               "breaker_failures": 0}],
                "routes": [{"model": "*", "upstream": "mock"}]}

    def recorded_length(self):
        """Of the stream that the gateway asks the upstream for."""
        whole = call(self.gateway.port, "POST", self.path, self.request(999999))
        self.assertEqual(whole.status, 200, whole.body)
        self.assertTrue(any(mark in whole.body for mark in END_MARKS), whole.body[-300:])
        asked = self.mock.stats()["last_body"].encode()
        upstream_path = self.path if self.kind == "openai" else "/v1/messages"
        return len(call(self.mock.port, "POST", upstream_path, asked).body)

    def entries(self):
        return json.loads(self.gateway.cli("cache", "stats", "--json").stdout)["entries"]

    def test_every_byte(self):
        length = self.recorded_length()
        self.assertGreater(length, 500)
        before = self.entries()
        calls = self.mock.stats()["requests"]
        jobs = [*range(length), *range(0, length, REPEAT_EVERY)]
        wrong = []

        async def ask(connection, cut):
            reply = await connection.post(self.path, self.request(cut))
            problem = self.problem(reply)
            if problem:
                wrong.append(f"cut after {cut} of {length} bytes: {problem}: {reply.status} {reply.body[-200:]!r}")

        asyncio.run(spread(self.gateway.port, CONCURRENCY, jobs, ask))
        self.assertEqual(wrong[:5], [])
        self.assertEqual(self.mock.stats()["requests"] - calls, len(jobs))  # nothing came from the cache
        self.assertEqual(self.entries(), before)

    def problem(self, reply):
        if reply.status == 0:
            return None  # a broken connection says it too
        if reply.status != 200:
            return None if reply.status >= 500 and b'"error"' in reply.body else "not an error"
        if not reply.is_stream:
            return "a plain answer"
        if any(mark in reply.body for mark in END_MARKS):
            return "a false end"
        if reply.broken:
            return None
        last = reply.body.rstrip(b"\n").rsplit(b"\n\n", 1)[-1]
        try:
            data = json.loads(last.partition(b"data:")[2])
        except ValueError:
            return "no whole event at its end"
        return None if "error" in data or data.get("type") == "error" else "no error at its end"


class Chat(Cuts, GatewayTest):
    path, request = "/v1/chat/completions", staticmethod(chat)


class ChatTools(Cuts, GatewayTest):
    path, request = "/v1/chat/completions", staticmethod(chat_tools)


class Responses(Cuts, GatewayTest):
    path, request = "/v1/responses", staticmethod(responses)


class Anthropic(Cuts, GatewayTest):
    path, request, kind = "/v1/messages", staticmethod(messages), "anthropic"


class AnthropicForChat(Cuts, GatewayTest):
    """A client of one API, an upstream of the other: the translation must not end what did not."""
    path, request, kind = "/v1/chat/completions", staticmethod(chat), "anthropic"


if __name__ == "__main__":
    unittest.main()
