"""Whether answers are what a case expects. Standard library only."""
import json
import re

from answers import END_EVENTS

MISSING = object()


def at(value, pointer):
    """RFC 6901, and "*" for every element of a list: then a list of what is there."""
    parts = [part for part in pointer.split("/")[1:]]
    for i, part in enumerate(parts):
        if part == "*":
            rest = "".join("/" + one for one in parts[i + 1:])
            return [at(one, rest) if rest else one for one in value]
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            index = int(part)
            if not -len(value) <= index < len(value):
                return MISSING
            value = value[index]
        elif isinstance(value, dict):
            if part not in value:
                return MISSING
            value = value[part]
        else:
            return MISSING
    return value


def fits(found, wanted):
    """`wanted`: a value, or {"match": regex}, {"is": "absent"|"present"|"number"}, {"size": n}."""
    if isinstance(wanted, dict) and set(wanted) == {"match"}:
        return isinstance(found, str) and re.search(wanted["match"], found) is not None
    if isinstance(wanted, dict) and set(wanted) == {"is"}:
        if wanted["is"] == "number":
            return isinstance(found, (int, float)) and not isinstance(found, bool)
        return (found is MISSING) == (wanted["is"] == "absent")
    if isinstance(wanted, dict) and set(wanted) == {"size"}:
        return hasattr(found, "__len__") and len(found) == wanted["size"]
    return type(found) is type(wanted) and found == wanted or \
        isinstance(found, float) and isinstance(wanted, (int, float)) and found == wanted


class Check:
    """Collects what is wrong; each method is one word of "expect"."""

    def __init__(self, profile, api):
        self.profile = profile
        self.api = api
        self.wrong = []

    def that(self, holds, message):
        if not holds:
            self.wrong.append(message)

    def answer(self, answer, expect):
        status = expect.get("status", 200)
        allowed = status if isinstance(status, list) else [status]
        self.that(answer.status in allowed, f"status {answer.status}, not {status}: {answer.body[:300]!r}")
        if answer.status not in allowed or answer.left:
            return
        for word, wanted in expect.items():
            if word not in ("status", "hit", "calls", "aborted", "upstream", "same_as", "other_than", "all_differ",
                            "bodies_equal", "complete", "any_end"):
                getattr(self, word)(answer, wanted)
        whole = not {"failed", "if_stream_starts", "any_end"} & set(expect)
        if answer.status == 200 and whole and answer.is_stream:
            self.complete(answer, True)

    def complete(self, answer, wanted):
        self.that(answer.is_stream and answer.stream.ended and not answer.broken and not answer.stream.error_event,
                  f"the stream did not end well: {answer.body[-300:]!r}")

    def failed(self, answer, wanted):
        """Nobody may take this for a whole answer."""
        if answer.status != 200:
            return self.error(answer, wanted)
        self.that(answer.is_stream, "a failed answer came as a plain one of status 200")
        if answer.is_stream:
            self.that(not answer.stream.ended, f"a dead stream ends as a whole one: {answer.body[-300:]!r}")
            self.that(answer.broken or answer.stream.error_event is not None,
                      f"a dead stream ends without an error: {answer.body[-300:]!r}")

    def error(self, answer, wanted):
        """An error in the shape of the API's SDKs."""
        try:
            body = answer.json()
        except ValueError:
            return self.that(False, f"the error is not JSON: {answer.body[:300]!r}")
        if self.api == "anthropic":
            good = body.get("type") == "error" and {"type", "message"} <= set(body.get("error") or {})
        else:
            good = {"message", "type", "param", "code"} <= set(body.get("error") or {})
        self.that(good, f"the error has another shape than the SDKs': {answer.body[:300]!r}")

    def streamed(self, answer, wanted):
        kind = answer.headers.get("content-type", "")
        self.that(answer.is_stream == wanted, f"content-type {kind!r}, but a stream {'was' if wanted else 'was not'} asked for")

    def headers(self, answer, wanted):
        for name, pattern in wanted.items():
            found = answer.headers.get(name)
            self.that(found is None if pattern is None else found is not None and re.search(pattern, found),
                      f"header {name} is {found!r}, not {pattern!r}")

    def json(self, answer, wanted):
        body = answer.json()
        for pointer, value in wanted.items():
            found = at(body, pointer)
            self.that(fits(found, value), f"{pointer} is {short(found)}, not {short(value)}")

    def text(self, answer, wanted):
        self.that(re.search(wanted, answer.said.text), f"the text is {answer.said.text!r}, not {wanted!r}")

    def finish(self, answer, wanted):
        self.that(answer.said.finish == wanted, f"it ended with {answer.said.finish!r}, not {wanted!r}")

    def choices(self, answer, wanted):
        self.that(len(answer.said.choices) == wanted, f"{len(answer.said.choices)} choices, not {wanted}")

    def usage(self, answer, wanted):
        for pointer, value in wanted.items():
            found = at(answer.said.usage or {}, pointer)
            self.that(fits(found, value), f"usage{pointer} is {short(found)}, not {short(value)}")

    def tools(self, answer, wanted):
        found = list(answer.said.choice(0)["tools"].values())
        self.that([tool["name"] for tool in found] == wanted, f"it calls {found}, not {wanted}")
        for tool in found:
            try:
                json.loads(tool["arguments"])
            except ValueError:
                self.that(False, f"the arguments are no JSON: {tool['arguments']!r}")

    def logprobs(self, answer, wanted):
        """Every token of the text has its log-probability and `wanted` alternatives."""
        entries = answer.said.choice(0)["logprobs"]
        if entries and isinstance(entries[0], tuple):
            joined, sizes = "".join(e[0] for e in entries), {len(e[2]) for e in entries if e[2] is not None}
        else:
            joined, sizes = "".join(e["token"] for e in entries), {len(e["top_logprobs"]) for e in entries}
        self.that(joined == answer.said.text and joined, f"log-probabilities are of {joined!r}, the text is {answer.said.text!r}")
        self.that(sizes == {wanted}, f"alternatives per token: {sizes}, not {wanted}")

    def every_event(self, answer, wanted):
        for name, data in answer.stream.events:
            if data == "[DONE]":
                continue
            chunk = json.loads(data)
            if "choices" in chunk and not chunk["choices"]:
                continue  # the chunk of the usage
            for pointer, value in wanted.items():
                found = at(chunk, pointer)
                self.that(fits(found, value), f"{pointer} is {short(found)} in {data[:200]}")

    def starts(self, answer, wanted):
        self.that(answer.stream.starts == wanted, f"the answer began {answer.stream.starts} times, not {wanted}")

    def if_stream_starts(self, answer, wanted):
        if answer.status == 200:
            self.starts(answer, wanted)

    def last_event(self, answer, wanted):
        name, data = answer.stream.events[-1]
        self.that(data == "[DONE]" or json.loads(data).get("type") in END_EVENTS, f"after the end comes {data[:200]}")

    def deltas_at_least(self, answer, wanted):
        self.that(answer.stream.deltas >= wanted, f"{answer.stream.deltas} events with text, fewer than {wanted}")

    def hit_marked(self, answer, wanted):
        marker = self.profile.get("hit_header")
        if marker:
            found = answer.headers.get(marker["name"], "")
            self.that(bool(re.search(marker["pattern"], found)) == wanted, f"{marker['name']} is {found!r}")

    def same(self, answer, other):
        self.that(answer.said.content() == other.said.content(),
                  f"not the same: {short(answer.said.content())} and {short(other.said.content())}")

    def upstream(self, seen, wanted):
        """Of the latest request that the upstream got; `never`: texts that nowhere occur in any."""
        for text in wanted.get("never", []):
            self.that(text not in json.dumps(seen), f"the upstream was sent {text!r}")
        if "body" in wanted or "body_bytes" in wanted:
            body = json.loads(seen[-1]["body"])
            for pointer, value in wanted.get("body", {}).items():
                found = at(body, pointer)
                self.that(fits(found, value), f"upstream body {pointer} is {short(found)}, not {short(value)}")
        for name, pattern in wanted.get("headers", {}).items():
            found = seen[-1]["headers"].get(name)
            self.that(found is None if pattern is None else found is not None and re.search(pattern, found),
                      f"upstream header {name} is {found!r}, not {pattern!r}")


def short(value):
    text = "absent" if value is MISSING else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) < 300 else text[:300] + "..."
