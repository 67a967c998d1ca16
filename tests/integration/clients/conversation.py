"""What a user's program does with the official client: plain, stream, logprobs, tools, errors."""
import asyncio

import openai

client = openai.OpenAI(max_retries=0)
QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say something: é 漢字 🙂"}]


def text_of(stream):
    return "".join(choice.delta.content or "" for chunk in stream for choice in chunk.choices)


for model in ("tiny", "mock"):
    ask = dict(model=model, messages=QUESTION, temperature=0, max_tokens=16)
    plain = client.chat.completions.create(**ask)
    assert plain.choices[0].finish_reason in ("stop", "length"), plain
    assert plain.usage.total_tokens > 0
    assert plain._request_id
    raw = client.chat.completions.with_raw_response.create(**ask)
    assert "hit" in raw.headers["cache-status"], raw.headers
    assert raw.parse().choices[0].message.content == plain.choices[0].message.content
    assert text_of(client.chat.completions.create(**ask, stream=True)) == plain.choices[0].message.content

    with_usage = list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    assert with_usage[-1].usage.total_tokens == plain.usage.total_tokens

    probs = client.chat.completions.create(**ask, logprobs=True, top_logprobs=3).choices[0].logprobs.content
    assert probs and all(len(token.top_logprobs) == 3 for token in probs), probs
    assert all(token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob for token in probs)

    # The streaming helper keeps its own running state and is strict about chunks. It takes an answer
    # that ended at its length limit for an error, as the random model's does.
    try:
        with client.chat.completions.stream(**ask) as events:
            for _ in events:
                pass
            assert events.get_final_completion().choices[0].message.content == plain.choices[0].message.content
    except openai.LengthFinishReasonError as error:
        assert error.completion.choices[0].message.content == plain.choices[0].message.content

    completion = client.completions.create(model=model, prompt="Once upon a time", max_tokens=8, temperature=0)
    assert completion.object == "text_completion"

assert client.chat.completions.create(
    model="tiny", messages=QUESTION, max_tokens=4, extra_headers={"x-fixpoint-repro": "required"}
).system_fingerprint.startswith("fp-")
assert {model.id for model in client.models.list()} == {"tiny"}

tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}]
called = client.chat.completions.create(model="mock", messages=QUESTION, tools=tools, temperature=0)
assert called.choices[0].message.tool_calls[0].function.name == "get_weather"


def expect(kind, **request):
    request = {"model": "mock", "messages": QUESTION, **request}
    try:
        client.chat.completions.create(**request)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} did not come for {request}")


assert expect(openai.NotFoundError, model="nothing-like-it").code == "model_not_found"
assert expect(openai.BadRequestError, messages=[]).param == "messages"
assert expect(openai.BadRequestError, model="tiny", temperature=9).param == "temperature"
assert expect(openai.BadRequestError, model="tiny", messages=[{"role": "user", "content": "word " * 9000}]).code \
    == "context_length_exceeded"
expect(openai.BadRequestError, model="mock", extra_headers={"x-fixpoint-repro": "required"})
expect(openai.AuthenticationError, model="mock-error-401")
expect(openai.RateLimitError, model="mock-error-429")
expect(openai.InternalServerError, model="mock-error-500")
try:
    list(client.chat.completions.create(model="mock-nodone", messages=QUESTION, stream=True))
    raise AssertionError("a stream that died must be an error")
except openai.APIError:
    pass


async def many():
    async with openai.AsyncOpenAI() as asynchronous:
        answers = await asyncio.gather(*[asynchronous.chat.completions.create(
            model="tiny", messages=QUESTION, temperature=0, max_tokens=10) for _ in range(8)])
    assert len({answer.choices[0].message.content for answer in answers}) == 1


asyncio.run(many())
print("conversation held")
