"""What an answer says, whichever API and mode it came in. Standard library only."""
import codecs
import json

END_EVENTS = {"message_stop", "response.completed", "response.incomplete", "response.failed"}


def parse_events(body):
    """[(event name, data)] of complete events: server-sent events as the WHATWG specifies them."""
    text = codecs.decode(body, "utf-8", "replace")
    if text.startswith("\ufeff"):
        text = text[1:]
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines.pop()  # what follows the last line end is no line yet
    events, name, data = [], "", []
    for line in lines:
        if line == "":
            if data:
                events.append((name, "\n".join(data)))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
    return events


class Said:
    """The content of an answer: what two answers that are the same must share."""

    def __init__(self):
        self.choices = {}
        self.usage = None
        self.fingerprint = None

    def choice(self, index):
        return self.choices.setdefault(index, {"text": "", "reasoning": "", "tools": {}, "logprobs": [], "finish": None})

    def content(self):
        return {index: {**choice, "tools": list(choice["tools"].values())} for index, choice in sorted(self.choices.items())}

    @property
    def text(self):
        return self.choice(0)["text"]

    @property
    def finish(self):
        return self.choice(0)["finish"]


def _tool(choice, key):
    return choice["tools"].setdefault(key, {"name": "", "arguments": ""})


def _chat(said, body, part):
    """A chat or text completion, or a chunk of one (`part` is "delta")."""
    said.usage = body.get("usage") or said.usage
    said.fingerprint = body.get("system_fingerprint") or said.fingerprint
    for piece in body.get("choices") or []:
        choice = said.choice(piece["index"])
        message = piece.get(part) or {}
        choice["text"] += message.get("content") or piece.get("text") or ""
        choice["reasoning"] += message.get("reasoning_content") or ""
        for position, call in enumerate(message.get("tool_calls") or []):
            tool = _tool(choice, call.get("index", position))
            tool["name"] += (call.get("function") or {}).get("name") or ""
            tool["arguments"] += (call.get("function") or {}).get("arguments") or ""
        logprobs = piece.get("logprobs") or {}
        choice["logprobs"] += logprobs.get("content") or []
        if "tokens" in logprobs:
            choice["logprobs"] += list(zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"]))
        choice["finish"] = piece.get("finish_reason") or choice["finish"]


def _response(said, response):
    choice = said.choice(0)
    said.usage = response.get("usage")
    choice["finish"] = response.get("status")
    for position, item in enumerate(response.get("output") or []):
        if item["type"] == "message":
            for part in item["content"]:
                choice["text"] += part.get("text") or ""
                choice["logprobs"] += part.get("logprobs") or []
        elif item["type"] == "reasoning":
            choice["reasoning"] += "".join(part["text"] for part in item.get("summary") or [])
        elif item["type"] == "function_call":
            _tool(choice, position).update(name=item["name"], arguments=item["arguments"])


def _response_event(said, data):
    choice = said.choice(0)
    kind = data.get("type")
    if kind == "response.output_text.delta":
        choice["text"] += data["delta"]
        choice["logprobs"] += data.get("logprobs") or []
    elif kind == "response.reasoning_summary_text.delta":
        choice["reasoning"] += data["delta"]
    elif kind == "response.output_item.added" and data["item"]["type"] == "function_call":
        _tool(choice, data["output_index"])["name"] = data["item"]["name"]
    elif kind == "response.function_call_arguments.delta":
        _tool(choice, data["output_index"])["arguments"] += data["delta"]
    elif kind in END_EVENTS:
        said.usage = data["response"].get("usage")
        choice["finish"] = data["response"].get("status")


def _block(choice, position, block):
    if block["type"] == "text":
        choice["text"] += block["text"]
    elif block["type"] == "thinking":
        choice["reasoning"] += block["thinking"]
    elif block["type"] == "tool_use":
        arguments = block["input"] if block["input"] else ""
        _tool(choice, position).update(name=block["name"], arguments=arguments and json.dumps(arguments, sort_keys=True))


def _message_event(said, data):
    choice = said.choice(0)
    kind = data.get("type")
    if kind == "message_start":
        said.usage = dict(data["message"]["usage"])
    elif kind == "content_block_start":
        _block(choice, data["index"], data["content_block"])
    elif kind == "content_block_delta":
        delta = data["delta"]
        choice["text"] += delta.get("text", "")
        choice["reasoning"] += delta.get("thinking", "")
        if "partial_json" in delta:
            _tool(choice, data["index"])["arguments"] += delta["partial_json"]
    elif kind == "message_delta":
        choice["finish"] = data["delta"].get("stop_reason")
        said.usage.update(data.get("usage") or {})
    elif kind == "message_stop":
        for tool in choice["tools"].values():
            tool["arguments"] = json.dumps(json.loads(tool["arguments"] or "{}"), sort_keys=True)


def said_by_json(body):
    said = Said()
    if "choices" in body:
        _chat(said, body, "message")
    elif body.get("object") == "response":
        _response(said, body)
    elif body.get("type") == "message":
        for position, block in enumerate(body["content"]):
            _block(said.choice(0), position, block)
        said.choice(0)["finish"] = body.get("stop_reason")
        said.usage = body.get("usage")
    return said


class Stream:
    """A stream of events: what it says and how it ended."""

    def __init__(self, body):
        self.events = parse_events(body)
        self.said = Said()
        self.ended = False       # with the API's own end marker
        self.error_event = None  # the error that the stream reports
        self.starts = 0          # how often an answer began
        self.deltas = 0          # events with text in them
        for name, data in self.events:
            if data == "[DONE]":
                self.ended = True
                continue
            if not data:
                continue
            self._add(json.loads(data))

    def _add(self, data):
        kind = data.get("type", "")
        before = len(self.said.text)
        if "error" in data and "choices" not in data or kind == "error":
            self.error_event = data
            return
        if kind.startswith("response."):
            self.starts += kind == "response.created"
            _response_event(self.said, data)
        elif "choices" in data:
            self.starts += any((c.get("delta") or {}).get("role") for c in data["choices"])
            _chat(self.said, data, "delta")
        else:
            self.starts += kind == "message_start"
            _message_event(self.said, data)
        self.ended = self.ended or kind in END_EVENTS
        self.deltas += len(self.said.text) > before
