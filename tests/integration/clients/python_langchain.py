"""langchain-openai over chat completions and over Responses."""
import openai
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from support import LOCAL, calls, expect


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return "sunny in " + city


def chats(model, **options):
    llm = ChatOpenAI(model=model, temperature=0, max_tokens=24, max_retries=0, **options)
    plain = llm.invoke("What is the capital of France?")
    assert plain.text and plain.usage_metadata["total_tokens"] > 0, plain
    assert "".join(chunk.text for chunk in llm.stream("What is the capital of France?")) == plain.text


for use_responses in (False, True):
    options = {"use_responses_api": use_responses}
    chats("mock", **options)
    llm = ChatOpenAI(model="mock", temperature=0, max_retries=0, **options)
    called = llm.bind_tools([weather]).invoke("weather?")
    assert called.tool_calls[0]["name"] == "weather" and "city" in called.tool_calls[0]["args"], called
    gathered = None
    for chunk in llm.bind_tools([weather]).stream("weather?"):
        gathered = chunk if gathered is None else gathered + chunk
    assert gathered.tool_calls[0]["args"] == called.tool_calls[0]["args"]
    assert llm.with_structured_output(Person).invoke("who?").age == 7
    assert llm.with_structured_output(Person, method="function_calling").invoke("who?").age == 7
    if LOCAL:
        chats(LOCAL, **options)
probs = ChatOpenAI(model="mock", temperature=0, logprobs=True, top_logprobs=2).invoke("x").response_metadata["logprobs"]
assert len(probs["content"][0]["top_logprobs"]) == 2
expect(openai.RateLimitError, lambda: ChatOpenAI(model="mock-error-429", max_retries=0).invoke("x"))
expect(openai.APIError, lambda: list(ChatOpenAI(model="mock-nodone", max_retries=0).stream("x")))
retried = "mock-lc-retry-1-429-retryafterms-20"
assert ChatOpenAI(model=retried, max_retries=2).invoke("x").text and calls(retried) == 2
vectors = OpenAIEmbeddings(model="mock", check_embedding_ctx_length=False).embed_documents(["one", "two"])
assert len(vectors) == 2 and len(vectors[0]) == 8
print("conversation held")
