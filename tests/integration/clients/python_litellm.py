"""litellm as a client: OpenAI's API and Anthropic's."""
import os

import litellm

from support import CITY, LOCAL, QUESTION, calls, expect

litellm.num_retries = 0
litellm.suppress_debug_info = True
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]
KEYS = {"openai": {"api_base": os.environ["OPENAI_BASE_URL"]}, "anthropic": {"api_base": os.environ["ANTHROPIC_BASE_URL"]}}


def ask(model, **fields):
    return litellm.completion(model=model, messages=fields.pop("messages", QUESTION), max_tokens=24, max_retries=0,
                              **KEYS[model.split("/")[0]], **fields)


def chats(model):
    plain = ask(model, temperature=0)
    content = plain.choices[0].message.content
    assert content and plain.usage.total_tokens > 0, plain
    chunks = ask(model, temperature=0, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == content


def tools(model):
    call = ask(model, temperature=0, tools=TOOLS).choices[0].message.tool_calls[0]
    assert call.function.name == "weather" and '"city"' in call.function.arguments
    chunks = list(ask(model, temperature=0, tools=TOOLS, stream=True))
    built = litellm.stream_chunk_builder(chunks).choices[0].message.tool_calls[0]
    assert built.function.name == "weather" and '"city"' in built.function.arguments


for name in ("openai/mock", "anthropic/mock-claude", "openai/mock-claude", "anthropic/mock"):
    chats(name)
    tools(name)
if LOCAL:
    chats("openai/" + LOCAL)
    chats("anthropic/" + LOCAL)
packed = litellm.embedding(model="openai/mock", input=["one"], encoding_format="float", **KEYS["openai"])
assert len(packed.data[0]["embedding"]) == 8
for name in ("openai/mock-error-429", "anthropic/mock-claude-error-429"):
    expect(litellm.RateLimitError, lambda: ask(name))
for name in ("openai/mock-error-401", "anthropic/mock-claude-error-401"):
    expect(litellm.AuthenticationError, lambda: ask(name))
expect(litellm.BadRequestError, lambda: ask("openai/mock-error-400"))
expect(Exception, lambda: list(ask("openai/mock-nodone", stream=True)))
retried = "mock-ll-retry-1-429-retryafterms-20"
assert litellm.completion(model="openai/" + retried, messages=QUESTION, max_retries=2, **KEYS["openai"]).choices
assert calls(retried) == 2
print("conversation held")
