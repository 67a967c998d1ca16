"""What a user's program does with Anthropic's client, over an Anthropic upstream, an OpenAI one and the local engine."""
import anthropic
from pydantic import BaseModel

from support import CITY, LOCAL, QUESTION, calls, expect, stats, wait_until

client = anthropic.Anthropic(max_retries=0)
TOOLS = [{"name": "weather", "description": "The weather", "input_schema": CITY}]


class Person(BaseModel):
    name: str
    age: int


def messages(model):
    ask = {"model": model, "max_tokens": 24, "messages": QUESTION, "system": "Be brief.", "extra_body": {"temperature": 0}}
    plain = client.messages.create(**ask)
    assert plain.content[0].text and plain.stop_reason == "end_turn" and plain.usage.output_tokens > 0, plain
    assert plain._request_id
    with client.messages.stream(**ask) as events:
        assert "".join(events.text_stream) == plain.content[0].text
        final = events.get_final_message()
    assert final.stop_reason == "end_turn" and final.usage.output_tokens == plain.usage.output_tokens, final
    kinds = [event.type for event in client.messages.create(**ask, stream=True)]
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds
    raw = client.messages.with_raw_response.create(**ask)
    assert "hit" in raw.headers["cache-status"], raw.headers


def tools(model):
    ask = {"model": model, "max_tokens": 99, "messages": QUESTION, "tools": TOOLS, "extra_body": {"temperature": 0}}
    called = client.messages.create(**ask)
    tool = called.content[-1]
    assert called.stop_reason == "tool_use" and tool.name == "weather" and "city" in tool.input, called
    with client.messages.stream(**ask) as events:
        for _ in events:
            pass
        assert events.get_final_message().content[-1].input == tool.input
    after = [*QUESTION, {"role": "assistant", "content": [{"type": "tool_use", "id": tool.id, "name": tool.name, "input": tool.input}]},
             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": tool.id, "content": "sunny"}]}]
    assert client.messages.create(**{**ask, "messages": after}).content[0].text.startswith("mock answer")


def thinking():
    ask = {"model": "mock-claude", "max_tokens": 2000, "messages": QUESTION, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    plain = client.messages.create(**ask)
    assert [block.type for block in plain.content] == ["thinking", "text"] and plain.content[0].signature
    with client.messages.stream(**ask) as events:
        for _ in events:
            pass
        assert events.get_final_message().content[0].thinking == plain.content[0].thinking


def errors():
    def ask(**fields):
        return lambda: client.messages.create(**{"model": "mock-claude", "max_tokens": 9, "messages": QUESTION, **fields})
    for status, kind, name in ((400, anthropic.BadRequestError, "invalid_request_error"), (401, anthropic.AuthenticationError, "authentication_error"),
                               (403, anthropic.PermissionDeniedError, "permission_error"), (404, anthropic.NotFoundError, "not_found_error"),
                               (429, anthropic.RateLimitError, "rate_limit_error"), (500, anthropic.InternalServerError, "api_error"),
                               (529, anthropic.InternalServerError, "overloaded_error")):
        for model in (f"mock-claude-error-{status}", f"mock-error-{status}"):
            error = expect(kind, ask(model=model))
            assert error.status_code == status and error.body["type"] == "error" and error.body["error"]["type"] == name, error.body
    assert expect(anthropic.NotFoundError, ask(model="nothing-like-it")).body["error"]["type"] == "not_found_error"
    for model in ("mock-claude-nodone", "mock-claude-cut-700", "mock-claude-errorevent-4", "mock-cut-900"):
        def whole():
            kinds = [event.type for event in ask(model=model, stream=True)()]
            assert "message_stop" not in kinds, kinds
            raise AssertionError(f"{model}: no error after {kinds}")
        expect((anthropic.APIError, anthropic.APIConnectionError), whole)


def retries():
    patient = anthropic.Anthropic(max_retries=2)
    for model in ("mock-claude-retry-2-429-retryafterms-20", "mock-claude-retry-1-529-retryafter-0"):
        assert patient.messages.create(model=model, max_tokens=9, messages=QUESTION).content
        assert calls(model) == int(model.split("-")[3]) + 1, (model, calls(model))


def cancelled():
    before = stats()["aborted"]
    with client.messages.stream(model="mock-claude-stream-400-50", max_tokens=999, messages=QUESTION) as events:
        for _, _ in zip(range(5), events):
            pass
    wait_until(lambda: stats()["aborted"] == before + 1, "the upstream's work goes on")


messages("mock-claude")
tools("mock-claude")
thinking()
assert client.messages.count_tokens(model="mock-claude", messages=QUESTION).input_tokens > 0
parsed = client.messages.parse(model="mock-claude", max_tokens=99, messages=QUESTION, output_format=Person).parsed_output
assert isinstance(parsed, Person) and parsed.age == 7
assert client.beta.messages.create(model="mock-claude", max_tokens=9, messages=QUESTION, betas=["context-1m-2025-08-07"]).content
errors()
retries()
cancelled()
old = anthropic.Anthropic(max_retries=0, default_headers={"anthropic-version": "2023-06-01", "x-api-key": "sk-client"})
assert old.messages.create(model="mock-claude", max_tokens=9, messages=QUESTION).content
# An upstream of the other API, and the engine, behind the same client.
messages("mock")
tools("mock")
if LOCAL:
    messages(LOCAL)
    assert LOCAL in {model.id for model in client.models.list()}
print("conversation held")
