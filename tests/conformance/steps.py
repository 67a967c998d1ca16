"""Sends what a case's step says. Standard library only."""
import concurrent.futures
import copy
import http.client
import json
import os
import time
import urllib.parse

from answers import Stream, parse_events, said_by_json

PATIENCE_S = 60  # a limit, never a measurement

# What a request has when the step says nothing else; "${nonce}" differs from case to case.
DEFAULTS = {
    "chat": ("/chat/completions", {"model": "mock", "temperature": 0,
                                   "messages": [{"role": "user", "content": "${nonce}"}]}),
    "completions": ("/completions", {"model": "mock", "temperature": 0, "prompt": "${nonce}"}),
    "responses": ("/responses", {"model": "mock", "temperature": 0, "input": "${nonce}"}),
    "messages": ("/messages", {"model": "mock-claude", "max_tokens": 1024, "temperature": 0,
                               "messages": [{"role": "user", "content": "${nonce}"}]}),
    "count_tokens": ("/messages/count_tokens", {"model": "mock-claude",
                                                "messages": [{"role": "user", "content": "${nonce}"}]}),
    "embeddings": ("/embeddings", {"model": "mock", "input": "${nonce}"}),
    "models": ("/models", None),
}


class Answer:
    def __init__(self, status, headers, body, broken, left):
        self.status = status
        self.headers = headers
        self.body = body
        self.broken = broken  # the connection ended before the body did
        self.left = left      # we ended it
        self.is_stream = headers.get("content-type", "").startswith("text/event-stream")
        self.stream = Stream(body) if self.is_stream and not left else None

    def json(self):
        return json.loads(self.body)

    @property
    def said(self):
        return self.stream.said if self.stream else said_by_json(self.json())


class Upstream:
    """The mock upstream's control."""

    def __init__(self, url):
        self.url = url

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        return exchange(self.url + path, method, data, {"Content-Type": "application/json"}).json()

    def reset(self):
        self.ask("POST", "/mock/reset", {"record": 64})

    def stats(self):
        return self.ask("GET", "/mock/stats")

    def requests(self):
        return self.ask("GET", "/mock/requests")


def exchange(url, method, data, headers, leave_after=None):
    """One request on a connection of its own; `leave_after`: close it after so many events."""
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=PATIENCE_S)
    try:
        path = parts.path + ("?" + parts.query if parts.query else "")
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        body, broken, left = bytearray(), False, False
        try:
            while piece := response.read1(65536):
                body += piece
                if leave_after is not None and len(parse_events(body)) >= leave_after:
                    left = True
                    break
            length = response.getheader("content-length")
            broken = not left and length is not None and len(body) < int(length)
        except http.client.IncompleteRead as error:
            body += error.partial
            broken = True
        except (ConnectionError, http.client.HTTPException):
            broken = True
        names = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, names, bytes(body), broken, left)
    except (ConnectionError, http.client.HTTPException):  # ended before there was a head
        return Answer(0, {}, b"", True, False)
    finally:
        connection.close()


def fill(value, names):
    """"${name}" in texts and as whole values; longer names first is not needed: braces end them."""
    if isinstance(value, str):
        for name, replacement in names.items():
            if value == "${" + name + "}":
                return copy.deepcopy(replacement)
            value = value.replace("${" + name + "}", str(replacement))
        return value
    if isinstance(value, list):
        return [fill(one, names) for one in value]
    if isinstance(value, dict):
        return {fill(key, names): fill(one, names) for key, one in value.items()}
    return value


class Sender:
    def __init__(self, url, profile):
        self.url = url
        self.profile = profile

    def body_of(self, step, variation):
        path, default = DEFAULTS[step["to"]]
        if default is None:
            return path, None
        body = {**copy.deepcopy(default), **step.get("with", {}), **variation}
        for name in step.get("without", []):
            body.pop(name, None)
        if "words" in step:
            body["model"] += "-" + step["words"]
        body["model"] = self.profile.get("model_prefix", "") + body["model"]
        if "stream" in step:
            body["stream"] = step["stream"]
        return path, body

    def headers_of(self, step, index):
        headers = {"Content-Type": "application/json", **self.profile.get("headers", {})}
        if step["to"] in ("messages", "count_tokens"):
            headers["anthropic-version"] = "2023-06-01"
        if "as" in step:
            headers.update(self.profile["tenants"][step["as"]])
        if "sample" in step:
            headers[self.profile["sample_header"]] = str(step["sample"] + index)
        if step.get("refresh"):
            headers.update(self.profile["refresh_headers"])
        headers.update(step.get("headers", {}))
        return {name: value for name, value in headers.items() if value is not None}

    def send(self, step, names):
        """The answers to all requests of a step, in order."""
        variations = step.get("vary", [{}]) * step.get("times", 1)
        jobs = []
        for index, variation in enumerate(variations):
            filled = fill({"step": step, "variation": variation}, {**names, "index": index})
            one = filled["step"]
            path, body = self.body_of(one, filled["variation"])
            body = fill(body, names)
            data = None if body is None else render(body, one)
            if "raw" in one:
                data = one["raw"].encode()
            method = "GET" if data is None else "POST"
            url = self.url + path + one.get("query", "")
            jobs.append((url, method, data, self.headers_of(one, index if "sample" in one else 0),
                         one.get("leave_after")))
        if not step.get("at_once"):
            return [exchange(*job) for job in jobs], jobs
        with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
            return list(pool.map(lambda job: exchange(*job), jobs)), jobs


def render(body, step):
    """JSON as clients write it; `reorder`: members the other way round, with spaces."""
    if step.get("grow"):  # a body of about so many bytes
        body["messages"][-1]["content"] += " " + "x" * step["grow"]
    if not step.get("reorder"):
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()

    def turned(value):
        if isinstance(value, dict):
            return {name: turned(value[name]) for name in reversed(value)}
        return [turned(one) for one in value] if isinstance(value, list) else value
    return json.dumps(turned(body), ensure_ascii=False, indent=2).encode()


def wait_until(holds):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return False


def nonce():
    return "question " + os.urandom(8).hex()
