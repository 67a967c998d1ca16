"""A client of one API, an upstream of the other: nothing is lost in silence."""
import json
import unittest

from endpoint_support import (CHAT_TOOLS, MESSAGE_TOOLS, PIXEL, named_events, responses_text, message_text,
                              streamed_message_text, streamed_responses_text, Endpoints)


class ChatAtAnthropic(Endpoints):
    """An OpenAI client, an Anthropic upstream."""

    def test_a_call_alone_has_no_text(self):
        for stream in (False, True):  # as OpenAI's own: null, not an empty string
            fields = dict(tools=CHAT_TOOLS, temperature=0)
            self.chat("mock-claude", [{"role": "user", "content": f"call {stream}"}], stream=stream, **fields)
            answer = self.chat("mock-claude", [{"role": "user", "content": f"call {stream}"}], **fields)
            self.assertIsNone(answer.json()["choices"][0]["message"]["content"])

    def test_text(self):
        turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
        plain = self.chat("mock-claude", turns, temperature=0, stop=["x"], max_completion_tokens=77)
        self.assertEqual(plain.status, 200, plain.body)
        sent = self.sent()
        self.assertEqual(sent["system"], "Be brief.")
        self.assertEqual(sent["messages"], [{"role": "user", "content": "Hello"}])
        self.assertEqual((sent["max_tokens"], sent["stop_sequences"]), (77, ["x"]))
        body = plain.json()
        self.assertEqual((body["object"], body["choices"][0]["finish_reason"]), ("chat.completion", "stop"))
        self.assertTrue(body["choices"][0]["message"]["content"].startswith("mock answer"))
        usage = body["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertEqual(self.mock.stats()["by_path"], {"/v1/messages": 1})
        streamed = self.chat("mock-claude", turns, temperature=0, stop=["x"], max_completion_tokens=77, stream=True,
                             stream_options={"include_usage": True})
        self.assertIn("hit", streamed.headers["cache-status"])
        self.assertEqual(streamed.text(), plain.text())
        self.assertEqual(streamed.chunks()[-1]["usage"], usage)

    def test_streams(self):
        streamed = self.chat("mock-claude", [{"role": "user", "content": "live"}], stream=True, temperature=0)
        self.assertEqual(streamed.events()[-1], "[DONE]")
        chunks = streamed.chunks()
        self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], "stop")
        self.assertTrue(all("usage" not in c or c["usage"] is None for c in chunks))
        plain = self.chat("mock-claude", [{"role": "user", "content": "live"}], temperature=0)
        self.assertIn("hit", plain.headers["cache-status"])
        self.assertEqual(plain.text(), streamed.text())
        self.assertGreater(plain.json()["usage"]["total_tokens"], 0)

    def test_tools_and_their_results(self):
        turns = [{"role": "user", "content": "Weather?"}]
        first = self.chat("mock-claude", turns, tools=CHAT_TOOLS, tool_choice="required").json()["choices"][0]
        self.assertEqual(first["finish_reason"], "tool_calls")
        sent = self.sent()
        self.assertEqual(sent["tools"], MESSAGE_TOOLS)
        self.assertEqual(sent["tool_choice"], {"type": "any"})
        calls = first["message"]["tool_calls"]
        self.assertIn("city", json.loads(calls[0]["function"]["arguments"]))
        streamed = self.chat("mock-claude", turns, tools=CHAT_TOOLS, stream=True)
        pieces = [piece for chunk in streamed.chunks() for choice in chunk["choices"]
                  for piece in choice["delta"].get("tool_calls") or []]
        self.assertEqual(pieces[0]["function"]["name"], "weather")
        self.assertIn("city", json.loads("".join(p["function"].get("arguments") or "" for p in pieces)))
        turns += [first["message"], {"role": "tool", "tool_call_id": calls[0]["id"], "content": "rain"}]
        last = self.chat("mock-claude", turns, tools=CHAT_TOOLS).json()["choices"][0]
        self.assertEqual(last["finish_reason"], "stop")
        use, result = self.sent()["messages"][1:]
        self.assertEqual(use["content"][0]["type"], "tool_use")
        self.assertEqual(use["content"][0]["input"], json.loads(calls[0]["function"]["arguments"]))
        self.assertEqual(result["content"], [{"type": "tool_result", "tool_use_id": calls[0]["id"], "content": "rain"}])

    def test_a_call_beside_an_empty_text(self):
        for content in (None, ""):  # both are what SDKs send for "no text"
            turns = [{"role": "user", "content": "Weather?"},
                     {"role": "assistant", "content": content, "tool_calls": [
                         {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
                     {"role": "tool", "tool_call_id": "c1", "content": "rain"}]
            self.assertEqual(self.chat("mock-claude", turns, tools=CHAT_TOOLS).status, 200)
            self.assertEqual(self.sent()["messages"][1]["content"],
                             [{"type": "tool_use", "id": "c1", "name": "weather", "input": {}}])

    def test_images(self):
        parts = [{"type": "text", "text": "What is it?"},
                 {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                 {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]
        self.assertEqual(self.chat("mock-claude", [{"role": "user", "content": parts}]).status, 200)
        sent = self.sent()["messages"][0]["content"]
        self.assertEqual([block["source"] for block in sent[1:]],
                         [{"type": "base64", "media_type": "image/png", "data": PIXEL},
                          {"type": "url", "url": "https://example.com/a.png"}])

    def test_why_it_stopped(self):
        for model, reason in (("mock-claude-length", "length"), ("mock-claude-filter", "content_filter")):
            for stream in (False, True):
                answer = self.chat(model, [{"role": "user", "content": "x"}], stream=stream)
                if stream:
                    reasons = [choice["finish_reason"] for chunk in answer.chunks() for choice in chunk["choices"]]
                    self.assertEqual(reasons[-1], reason)
                else:
                    self.assertEqual(answer.json()["choices"][0]["finish_reason"], reason)

    def test_refused_and_announced(self):
        turns = [{"role": "user", "content": "x"}]
        for name, value in (("n", 2), ("logprobs", True), ("logit_bias", {"1": 1}), ("presence_penalty", 1),
                            ("frequency_penalty", 1), ("never_heard_of", 1), ("temperature", 1.5)):
            self.mock.reset()
            self.assert_error(self.chat("mock-claude", turns, **{name: value}), 400, "unsupported_parameter", name)
            self.assertEqual(self.mock.stats()["requests"], 0)
        audio = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]}]
        self.assert_error(self.chat("mock-claude", audio), 400, param="messages[0].content[0].type")
        announced = self.chat("mock-claude", turns, seed=1, metadata={"a": "b"}, reasoning_effort="low")
        self.assertEqual(announced.status, 200, announced.body)
        self.assertEqual(set(announced.headers["x-fixpoint-dropped"].split(", ")),
                         {"seed", "metadata", "reasoning_effort"})
        self.assertEqual(set(self.sent()), {"model", "messages", "max_tokens"})

    def test_no_prefill(self):
        turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "{"}]
        self.assert_error(self.chat("mock-claude", turns), 400, "unsupported_parameter", "messages[1].role")

    def test_announced_from_the_cache_too(self):
        turns = [{"role": "user", "content": "dropped and stored"}]
        first, second = (self.chat("mock-claude", turns, seed=1, temperature=0) for _ in range(2))
        self.assertIn("hit", second.headers["cache-status"])
        self.assertEqual(first.headers["x-fixpoint-dropped"], "seed")
        self.assertEqual(second.headers.get("x-fixpoint-dropped"), "seed")

    def test_responses(self):
        body = {"model": "mock-claude", "input": "through chat", "instructions": "Be brief.", "temperature": 0}
        plain = self.ok("responses", body).json()
        self.assertEqual(self.sent()["system"], "Be brief.")
        self.assertTrue(responses_text(plain).startswith("mock answer"))
        streamed = self.ok("responses", {**body, "stream": True, "input": "through chat, streamed"})
        names = [name for name, _ in named_events(streamed)]
        self.assertEqual((names[0], names[-1]), ("response.created", "response.completed"))
        self.assertEqual(streamed_responses_text(streamed), responses_text(named_events(streamed)[-1][1]["response"]))
        self.assert_error(self.post("responses", {**body, "previous_response_id": "resp_1"}), 400,
                          param="previous_response_id")


class MessagesAtOpenAi(Endpoints):
    """An Anthropic client, an OpenAI upstream."""

    def test_text(self):
        turns = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
        plain = self.messages("mock", turns, system="Be brief.", temperature=0, stop_sequences=["x"])
        self.assertEqual(plain.status, 200, plain.body)
        sent = self.sent()
        self.assertEqual(sent["messages"], [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}])
        self.assertEqual((sent["max_completion_tokens"], sent["stop"]), (60, ["x"]))
        headers = self.mock.stats()["last_headers"]
        self.assertEqual(headers["authorization"], "Bearer sk-openai")
        self.assertNotIn("x-api-key", headers)
        body = plain.json()
        self.assertEqual((body["type"], body["role"], body["stop_reason"]), ("message", "assistant", "end_turn"))
        self.assertTrue(message_text(body).startswith("mock answer"))
        self.assertGreater(body["usage"]["input_tokens"], 0)
        self.assertGreater(body["usage"]["output_tokens"], 0)

    def test_streams(self):
        turns = [{"role": "user", "content": "live"}]
        streamed = self.messages("mock", turns, temperature=0, stream=True)
        events = named_events(streamed)
        names = [name for name, _ in events]
        self.assertEqual((names[0], names[-2:]), ("message_start", ["message_delta", "message_stop"]))
        self.assertEqual([name for name, data in events if name != data["type"]], [])
        self.assertNotIn(b"[DONE]", streamed.body)
        self.assertEqual(events[-2][1]["delta"]["stop_reason"], "end_turn")
        self.assertGreater(events[-2][1]["usage"]["output_tokens"], 1)
        plain = self.messages("mock", turns, temperature=0)
        self.assertIn("hit", plain.headers["cache-status"])
        self.assertEqual(message_text(plain.json()), streamed_message_text(streamed))

    def test_tools_and_their_results(self):
        turns = [{"role": "user", "content": "Weather?"}]
        first = self.messages("mock", turns, tools=MESSAGE_TOOLS, tool_choice={"type": "tool", "name": "weather"}).json()
        self.assertEqual(first["stop_reason"], "tool_use")
        sent = self.sent()
        self.assertEqual(sent["tools"], CHAT_TOOLS)
        self.assertEqual(sent["tool_choice"], {"type": "function", "function": {"name": "weather"}})
        use = first["content"][-1]
        self.assertEqual((use["type"], use["name"]), ("tool_use", "weather"))
        self.assertIn("city", use["input"])
        events = named_events(self.messages("mock", turns, tools=MESSAGE_TOOLS, stream=True))
        partial = "".join(data["delta"].get("partial_json", "") for name, data in events if name == "content_block_delta")
        self.assertIn("city", json.loads(partial))
        turns += [{"role": "assistant", "content": first["content"]},
                  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": "rain"},
                                               {"type": "text", "text": "And now?"}]}]
        self.assertEqual(self.messages("mock", turns, tools=MESSAGE_TOOLS).status, 200)
        assistant, result, after = self.sent()["messages"][1:]
        self.assertEqual(json.loads(assistant["tool_calls"][0]["function"]["arguments"]), use["input"])
        self.assertEqual(result, {"role": "tool", "tool_call_id": use["id"], "content": "rain"})
        self.assertEqual(after, {"role": "user", "content": "And now?"})

    def test_images(self):
        blocks = [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                  {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}]
        self.assertEqual(self.messages("mock", [{"role": "user", "content": blocks}]).status, 200)
        self.assertEqual([part["image_url"]["url"] for part in self.sent()["messages"][0]["content"]],
                         [f"data:image/png;base64,{PIXEL}", "https://example.com/a.png"])

    def test_why_it_stopped(self):
        self.assertEqual(self.messages("mock-length", [{"role": "user", "content": "x"}]).json()["stop_reason"],
                         "max_tokens")
        self.assertEqual(self.messages("mock-filter", [{"role": "user", "content": "x"}]).json()["stop_reason"], "refusal")

    def test_refused_and_announced(self):
        turns = [{"role": "user", "content": "x"}]

        def refused(param, **fields):
            answer = self.messages("mock", turns, **fields)
            self.assertEqual((answer.status, answer.json()["error"]["type"]), (400, "invalid_request_error"), answer.body)
            self.assertIn(param, answer.json()["error"]["message"])
        refused("never_heard_of", never_heard_of=1)
        refused("tools[0].type", tools=[{"type": "web_search_20250305", "name": "web_search"}])
        refused("container", container="c")
        lost = self.messages("mock", turns, thread={"type": "continue", "previous_message_id": "msg_1"})
        self.assertEqual((lost.status, lost.json()["error"]["details"]), (400, {"error_code": "thread_not_found"}))
        prefill = self.messages("mock", [*turns, {"role": "assistant", "content": "{"}])
        self.assertEqual(prefill.status, 400)
        self.assertIn("messages[1].role", prefill.json()["error"]["message"])
        announced = self.messages("mock", turns, thinking={"type": "enabled", "budget_tokens": 1024},
                                  system=[{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}])
        self.assertEqual(announced.status, 200, announced.body)
        self.assertEqual(set(announced.headers["x-fixpoint-dropped"].split(", ")),
                         {"thinking", "system[].cache_control"})


if __name__ == "__main__":
    unittest.main()
