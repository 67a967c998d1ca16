"""Starts the real programs and talks to them over sockets. Standard library only."""
import concurrent.futures
import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FIXPOINT_BUILD", ROOT / "build" / "ci")).resolve()
# Sanitized programs are several times slower; waits are limits, never measurements.
PATIENCE_S = 60


def program(name):
    for folder in ("gateway", "tests"):
        path = BUILD / folder / name
        if path.exists():
            return str(path)
    raise FileNotFoundError(f"{name} is not in {BUILD}: build it first")


class Process:
    """A program that says on stderr which port it got."""

    def __init__(self, command, port_pattern, env=None):
        self.lines = []
        self.log_file = tempfile.NamedTemporaryFile("w+", suffix=".log", delete=False)
        self.process = subprocess.Popen(command, stdout=self.log_file, stderr=self.log_file,
                                        env={**os.environ, **(env or {})})
        self.port = self._wait_for(port_pattern)

    def log(self):
        return pathlib.Path(self.log_file.name).read_text(errors="replace")

    def _wait_for(self, pattern):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = re.search(pattern, self.log())
            if found:
                return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        text = self.log()
        self.stop()
        raise RuntimeError(f"the program did not start:\n{text}")

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.final_log = self.log()
        self.log_file.close()
        os.unlink(self.log_file.name)
        return code


class MockUpstream(Process):
    def __init__(self):
        super().__init__([program("fixpoint_mock_upstream"), "--port", "0"], r"127.0.0.1:(\d+)/v1")
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def stats(self):
        return call(self.port, "GET", "/mock/stats").json()

    def reset(self):
        call(self.port, "POST", "/mock/reset", {})


class Gateway(Process):
    def __init__(self, config, data_dir=None, env=None, wait_ready=True, arguments=()):
        self.own_dir = tempfile.mkdtemp(prefix="fixpoint-test-")
        self.data_dir = data_dir or self.own_dir
        self.config_file = pathlib.Path(self.own_dir) / "config.yaml"
        config = {"server": {"listen": "127.0.0.1:0"}, "data_dir": str(self.data_dir), **config}
        # One failing call is what most tests are about; those of retries and breakers say so.
        config["upstreams"] = [{"retries": 0, "breaker_failures": 0, **one} for one in config.get("upstreams", [])]
        self.config_file.write_text(json.dumps(config))  # JSON is YAML
        super().__init__([program("fixpoint"), "serve", "--config", str(self.config_file), *arguments],
                         r"listening on \S+ \(port (\d+)\)", env)
        if wait_ready:
            self.wait_ready()

    def wait_ready(self):
        deadline = time.monotonic() + PATIENCE_S
        problem = "was not ready in time"
        while time.monotonic() < deadline:
            try:
                if call(self.port, "GET", "/readyz").status == 200:
                    return
            except OSError:
                pass  # it may have stopped
            if self.process.poll() is not None:
                problem = "stopped"
                break
            time.sleep(0.02)
        self.stop()
        raise RuntimeError(f"the gateway {problem}:\n{self.final_log}")

    def stop(self, how=signal.SIGTERM):
        code = super().stop(how)
        shutil.rmtree(self.own_dir, ignore_errors=True)
        return code

    def cli(self, *arguments, check=True):
        done = subprocess.run([program("fixpoint"), *arguments, "--config", str(self.config_file)],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        if check and done.returncode != 0:
            raise AssertionError(f"fixpoint {arguments}: exit {done.returncode}\n{done.stderr}")
        return done


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = body

    def json(self):
        return json.loads(self.body)

    def events(self):
        """The data of each server-sent event."""
        blocks = self.body.decode().split("\n\n")
        return [block[len("data: "):] for block in blocks if block.startswith("data: ")]

    def chunks(self):
        return [json.loads(data) for data in self.events() if data != "[DONE]"]

    def text(self):
        if "text/event-stream" not in self.headers["content-type"]:
            choice = self.json()["choices"][0]
            return choice["message"]["content"] if "message" in choice else choice["text"]
        pieces = [c for chunk in self.chunks() for c in chunk["choices"] if c["index"] == 0]
        return "".join(p.get("delta", {}).get("content") or p.get("text") or "" for p in pieces)


def call(port, method, path, body=None, headers=None, timeout=PATIENCE_S):
    """One request on a connection of its own. `body` is bytes, or anything that JSON can say."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        all_headers = {"Content-Type": "application/json", **(headers or {})} if data is not None else headers or {}
        connection.request(method, path, data, all_headers)
        response = connection.getresponse()
        return Answer(response, response.read())
    finally:
        connection.close()


def chat(port, model, text="Hello", headers=None, **fields):
    body = {"model": model, "messages": [{"role": "user", "content": text}], **fields}
    return call(port, "POST", "/v1/chat/completions", body, headers)


def in_parallel(count, function):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return [job.result() for job in [pool.submit(function, i) for i in range(count)]]


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def tiny_model(folder):
    """A small random model, made by the tests themselves."""
    path = str(pathlib.Path(folder) / "tiny.gguf")
    subprocess.run([program("fixpoint-tiny-gguf"), path], check=True, capture_output=True)
    return path


class GatewayTest(unittest.TestCase):
    """One mock upstream and one gateway for the whole class; `config` is a method of it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="fixpoint-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.mock = MockUpstream()
        cls.addClassCleanup(cls.mock.stop)
        cls.gateway = Gateway(cls.config())
        cls.addClassCleanup(cls.stop_gateway)

    @classmethod
    def stop_gateway(cls):
        code = cls.gateway.stop()
        if code != 0:  # a sanitizer's finding, or a crash
            raise AssertionError(f"the gateway ended with {code}:\n{cls.gateway.final_log[-4000:]}")

    @classmethod
    def config(cls):
        return {"upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "sk-upstream-secret"}],
                "routes": [{"model": "*", "upstream": "mock"}]}

    def setUp(self):
        self.mock.reset()

    def assert_error(self, answer, status, code=None, param=None):
        self.assertEqual(answer.status, status, answer.body)
        error = answer.json()["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"}, answer.body)
        self.assertTrue(error["message"])
        if code is not None:
            self.assertEqual(error["code"], code, error)
        if param is not None:
            self.assertEqual(error["param"], param, error)
        return error

    def assert_serving(self):
        self.assertEqual(chat(self.gateway.port, "mock").status, 200)
