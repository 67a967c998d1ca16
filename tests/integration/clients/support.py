"""What the Python conversations share. The mock upstream's address and the local model are in the environment."""
import json
import os
import time
import urllib.request

MOCK = os.environ["FIXPOINT_MOCK"]            # http://127.0.0.1:port
LOCAL = os.environ.get("FIXPOINT_LOCAL", "")  # the local model's name; empty: there is none
QUESTION = [{"role": "user", "content": "What is the capital of France? é 漢字 🙂"}]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}


def stats():
    with urllib.request.urlopen(MOCK + "/mock/stats") as answer:
        return json.load(answer)


def calls(model):
    return stats()["by_model"].get(model, 0)


def expect(kind, function):
    """Calls the function; the error of this kind that it must raise."""
    try:
        function()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} did not come")


def wait_until(holds, what):
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
