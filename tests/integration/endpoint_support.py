"""What tests of several endpoints share: their streams, their texts, a gateway with every kind of maker."""
import json

from harness import GatewayTest, call, tiny_model

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOLS = [{"type": "function", "function": {"name": "weather", "description": "of a city", "parameters": WEATHER}}]
MESSAGE_TOOLS = [{"name": "weather", "description": "of a city", "input_schema": WEATHER}]
PIXEL = "iVBORw0KGgo="
ANTHROPIC = {"anthropic-version": "2023-06-01"}


def named_events(answer):
    """[(event, data)] of a stream whose events have names."""
    events = []
    for block in answer.body.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in lines:
            events.append((lines.get("event"), json.loads(lines["data"])))
    return events


def responses_text(response):
    return "".join(part["text"] for item in response["output"] if item["type"] == "message"
                   for part in item["content"])


def message_text(message):
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def streamed_message_text(answer):
    return "".join(data["delta"].get("text", "") for name, data in named_events(answer)
                   if name == "content_block_delta")


def streamed_responses_text(answer):
    return "".join(data["delta"] for name, data in named_events(answer) if name == "response.output_text.delta")


class Endpoints(GatewayTest):
    @classmethod
    def config(cls):
        cls.model = tiny_model(cls.folder)
        return {"cache": {"store_length": True},
                "models": [{"name": "tiny", "path": cls.model, "threads": 2}],
                "upstreams": [{"name": "openai", "base_url": cls.mock.url, "api_key": "sk-openai"},
                              {"name": "anthropic", "kind": "anthropic", "base_url": cls.mock.url.removesuffix("/v1"),
                               "api_key": "sk-anthropic"}],
                "routes": [{"model": "tiny", "local": "tiny"}, {"model": "mock-exact", "upstream": "openai"},
                           {"model": "mock-claude*", "upstream": "anthropic"}, {"model": "mock*", "upstream": "openai"}]}

    def post(self, path, body, headers=None):
        return call(self.gateway.port, "POST", f"/v1/{path}", body, headers)

    def ok(self, path, body, headers=None):
        answer = self.post(path, body, headers)
        self.assertEqual(answer.status, 200, answer.body)
        return answer

    def chat(self, model, messages, **fields):
        return self.post("chat/completions", {"model": model, "messages": messages, **fields})

    def messages(self, model, messages, **fields):
        return self.post("messages", {"model": model, "max_tokens": 60, "messages": messages, **fields}, ANTHROPIC)

    def sent(self):
        """The body that the upstream got last."""
        return json.loads(self.mock.stats()["last_body"])

    def direct(self, path, body):
        """What the upstream answers without a gateway."""
        return call(self.mock.port, "POST", f"/v1/{path}", body)
