"""What a user's program does with the official client: plain, streamed, tools, schemas, errors, retries, cancelling."""
import asyncio

import openai
from pydantic import BaseModel

from support import CITY, LOCAL, QUESTION, calls, expect, stats, wait_until

client = openai.OpenAI(max_retries=0)
chat = client.chat.completions
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]


class Person(BaseModel):
    name: str
    age: int


def text_of(stream):
    return "".join(choice.delta.content or "" for chunk in stream for choice in chunk.choices)


def chats(model, **fields):
    ask = {"model": model, "messages": QUESTION, "temperature": 0, "max_tokens": 24, **fields}
    plain = chat.create(**ask)
    content = plain.choices[0].message.content
    assert content and plain.usage.total_tokens > 0 and plain._request_id, plain
    raw = chat.with_raw_response.create(**ask)
    assert "hit" in raw.headers["cache-status"], raw.headers
    assert raw.parse().choices[0].message.content == content
    assert text_of(chat.create(**ask, stream=True)) == content
    with_usage = list(chat.create(**ask, stream=True, stream_options={"include_usage": True}))
    assert with_usage[-1].usage.total_tokens == plain.usage.total_tokens
    with chat.stream(**ask) as events:  # keeps its own running state and is strict about chunks
        for _ in events:
            pass
        assert events.get_final_completion().choices[0].message.content == content


def logprobs(model):
    ask = {"model": model, "messages": QUESTION, "temperature": 0, "max_tokens": 24, "logprobs": True, "top_logprobs": 3}
    tokens = chat.create(**ask).choices[0].logprobs.content
    assert tokens and all(len(token.top_logprobs) == 3 for token in tokens), tokens
    assert all(token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob for token in tokens)


def completions(model):
    ask = {"model": model, "prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}
    plain = client.completions.create(**ask)
    assert plain.object == "text_completion" and plain.choices[0].text
    assert "".join(c.choices[0].text for c in client.completions.create(**ask, stream=True) if c.choices) == plain.choices[0].text


def responses(model):
    ask = {"model": model, "input": QUESTION[0]["content"], "temperature": 0, "max_output_tokens": 24}
    plain = client.responses.create(**ask)
    assert plain.output_text and plain.usage.total_tokens > 0 and plain.status == "completed", plain
    with client.responses.stream(**ask) as events:
        kinds = [event.type for event in events]
        final = events.get_final_response()
    assert final.output_text == plain.output_text and kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert "response.output_text.delta" in kinds
    deltas = [event.delta for event in client.responses.create(**ask, stream=True) if event.type == "response.output_text.delta"]
    assert "".join(deltas) == plain.output_text


def tools(model):
    ask = {"model": model, "messages": QUESTION, "tools": TOOLS, "temperature": 0}
    called = chat.create(**ask).choices[0]
    tool = called.message.tool_calls[0]
    assert called.finish_reason == "tool_calls" and tool.function.name == "weather" and '"city"' in tool.function.arguments
    with chat.stream(**ask) as events:
        for _ in events:
            pass
        streamed = events.get_final_completion().choices[0].message.tool_calls[0]
    assert streamed.function.arguments == tool.function.arguments
    result = {"role": "tool", "tool_call_id": tool.id, "content": "sunny"}
    after = [*QUESTION, called.message.model_dump(exclude_none=True), result]
    assert chat.create(**{**ask, "messages": after}).choices[0].message.content.startswith("mock answer")


def responses_tools():
    ask = {"model": "mock", "input": "weather?", "tools": [{"type": "function", "name": "weather", "parameters": CITY}], "temperature": 0}
    call = client.responses.create(**ask).output[0]
    assert call.type == "function_call" and call.name == "weather"
    with client.responses.stream(**ask) as events:
        for _ in events:
            pass
        assert events.get_final_response().output[0].arguments == call.arguments
    after = [{"role": "user", "content": "weather?"}, call.model_dump(exclude_none=True),
             {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    assert client.responses.create(**{**ask, "input": after}).output_text.startswith("mock answer")


def schemas():
    parsed = chat.parse(model="mock", messages=QUESTION, response_format=Person, temperature=0).choices[0].message.parsed
    assert isinstance(parsed, Person) and parsed.age == 7
    parsed = client.responses.parse(model="mock", input="who?", text_format=Person).output_parsed
    assert isinstance(parsed, Person) and parsed.age == 7


def embeddings():
    floats = client.embeddings.create(model="mock", input=["one", "two"], encoding_format="float")
    packed = client.embeddings.create(model="mock", input=["one", "two"])  # asks for base64 and decodes it
    for a, b in zip(floats.data, packed.data, strict=True):
        assert max(abs(x - y) for x, y in zip(a.embedding, b.embedding, strict=True)) < 1e-6
    raw = client.post("/embeddings", body={"model": "mock", "input": "one", "encoding_format": "base64"}, cast_to=object)
    assert isinstance(raw["data"][0]["embedding"], str)


def errors():
    def ask(**fields):
        return lambda: chat.create(**{"model": "mock", "messages": QUESTION, **fields})
    assert expect(openai.NotFoundError, ask(model="nothing-like-it")).code == "model_not_found"
    assert expect(openai.BadRequestError, ask(messages=[])).param == "messages"
    expect(openai.BadRequestError, ask(extra_headers={"x-fixpoint-repro": "required"}))
    for status, kind in ((400, openai.BadRequestError), (401, openai.AuthenticationError), (403, openai.PermissionDeniedError),
                         (404, openai.NotFoundError), (409, openai.ConflictError), (422, openai.UnprocessableEntityError),
                         (429, openai.RateLimitError), (500, openai.InternalServerError)):
        error = expect(kind, ask(model=f"mock-error-{status}"))
        assert error.code == "mock_error" and error.request_id, error
        expect(kind, ask(model=f"mock-error-{status}", stream=True))
    for model in ("mock-nodone", "mock-cut-900", "mock-errorevent-3"):
        expect((openai.APIError, openai.APIConnectionError), lambda: list(chat.create(model=model, messages=QUESTION, stream=True)))

    def events():  # the client hands on a Responses error event as an event
        for event in client.responses.create(model="mock-cut-2500", input="cut", stream=True):
            assert event.type != "response.completed"
            if event.type == "error":
                raise openai.APIError(event.message, None, body=event)
    expect((openai.APIError, openai.APIConnectionError), events)


def retries():
    """The client's own: the gateway makes no second attempt here."""
    patient = openai.OpenAI(max_retries=2)
    for model in ("mock-retry-2-429-retryafterms-20", "mock-retry-1-503-retryafter-0", "mock-retry-1-409-retryafterms-20"):
        assert patient.chat.completions.create(model=model, messages=QUESTION).choices[0].message.content
        assert calls(model) == int(model.split("-")[2]) + 1, (model, calls(model))
    hopeless = "mock-error-503-shouldretry-0"
    expect(openai.InternalServerError, lambda: patient.chat.completions.create(model=hopeless, messages=QUESTION))
    assert calls(hopeless) == 1, calls(hopeless)


def cancelled():
    before = stats()["aborted"]
    for call in (lambda: chat.create(model="mock-stream-400-50", messages=QUESTION, stream=True),
                 lambda: client.responses.create(model="mock-stream-400-50", input="x", stream=True)):
        with call() as stream:
            for _, _ in zip(range(5), stream):
                pass
    wait_until(lambda: stats()["aborted"] == before + 2, "the upstream's work goes on")


async def many(model):
    async with openai.AsyncOpenAI() as asynchronous:
        answers = await asyncio.gather(*[asynchronous.chat.completions.create(
            model=model, messages=QUESTION, temperature=0, max_tokens=10) for _ in range(8)])
    assert len({answer.choices[0].message.content for answer in answers}) == 1


chats("mock")
logprobs("mock")
completions("mock")
responses("mock")
tools("mock")
responses_tools()
schemas()
embeddings()
errors()
retries()
cancelled()
asyncio.run(many("mock"))
# An upstream of the other API behind the same client.
chats("mock-claude")
tools("mock-claude")
responses("mock-claude")
if LOCAL:
    chats(LOCAL)
    logprobs(LOCAL)
    completions(LOCAL)
    responses(LOCAL)
    asyncio.run(many(LOCAL))
    assert LOCAL in {model.id for model in client.models.list()}
    assert chat.create(model=LOCAL, messages=QUESTION, max_tokens=4,
                       extra_headers={"x-fixpoint-repro": "required"}).system_fingerprint.startswith("fp-")
    assert expect(openai.BadRequestError, lambda: chat.create(model=LOCAL, messages=QUESTION, temperature=9)).param == "temperature"
    long = [{"role": "user", "content": "word " * 9000}]
    assert expect(openai.BadRequestError, lambda: chat.create(model=LOCAL, messages=long)).code == "context_length_exceeded"
print("conversation held")
