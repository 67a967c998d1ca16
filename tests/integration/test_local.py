"""The local engine behind the gateway, with a small random model that the tests make."""
import concurrent.futures
import json
import os
import pathlib
import socket
import struct
import tempfile
import threading
import time
import unittest

from harness import BUILD, Gateway, GatewayTest, call, chat, tiny_model


def logprob_bits(answer):
    return [(entry["bytes"], struct.pack("<d", entry["logprob"]),
             [struct.pack("<d", top["logprob"]) for top in entry["top_logprobs"]])
            for entry in answer.json()["choices"][0]["logprobs"]["content"]]


def expect_same_bits_alone_and_under_load(test, watched, noise):
    """The watched request 20 times alone, then 20 times while 8 others keep running."""
    alone = [watched() for _ in range(20)]
    done = threading.Event()

    def other(i):
        while not done.is_set():
            noise(i)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        others = [pool.submit(other, i) for i in range(8)]
        try:
            loaded = [watched() for _ in range(20)]
        finally:
            done.set()
        for one in others:
            one.result()
    test.assertTrue(alone[0])
    test.assertTrue(all(one == alone[0] for one in alone + loaded))


class Local(GatewayTest):
    @classmethod
    def config(cls):
        cls.model = tiny_model(cls.folder)
        return {"models": [{"name": "tiny", "path": cls.model, "threads": 2},
                           {"name": "short", "path": cls.model, "threads": 1, "context": 128}],
                "upstreams": [{"name": "mock", "base_url": cls.mock.url,
                               "model_names": {"gpt-*": "mock", "plain": "mock"}}],
                "routes": [{"model": "tiny", "local": "tiny", "cache": "off"},
                           {"model": "short", "local": "short"},
                           {"model": "tiny-cached", "local": "tiny"},
                           {"model": "gpt-*", "upstream": "mock", "repro_model": "tiny"},
                           {"model": "plain", "upstream": "mock"}]}

    def ask(self, text="Hello there", model="tiny", headers=None, **fields):
        fields.setdefault("max_tokens", 12)
        return chat(self.gateway.port, model, text, headers, **fields)

    def test_answer_has_everything_a_client_reads(self):
        answer = self.ask(temperature=0)
        self.assertEqual(answer.status, 200, answer.body)
        body = answer.json()
        self.assertEqual(body["object"], "chat.completion")
        self.assertEqual(body["model"], "tiny")
        self.assertRegex(body["system_fingerprint"], "^fp-[0-9a-f]{16}$")
        self.assertIn(body["choices"][0]["finish_reason"], ("stop", "length"))
        usage = body["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertLessEqual(usage["completion_tokens"], 12)
        self.assertRegex(answer.headers["x-fixpoint-key"], "^prompt:[0-9a-f]{64}$")

    def test_stream_says_the_same_as_plain(self):
        plain = self.ask(temperature=0, logprobs=True, top_logprobs=3)
        streamed = self.ask(temperature=0, logprobs=True, top_logprobs=3, stream=True,
                            stream_options={"include_usage": True})
        self.assertEqual(streamed.text(), plain.text())
        self.assertEqual(streamed.events()[-1], "[DONE]")
        chunks = streamed.chunks()
        self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
        self.assertEqual(chunks[-1]["usage"], plain.json()["usage"])
        probs = [entry for chunk in chunks for choice in chunk["choices"]
                 for entry in (choice["logprobs"] or {}).get("content", [])]
        self.assertEqual(probs, plain.json()["choices"][0]["logprobs"]["content"])
        self.assertTrue(all(len(entry["top_logprobs"]) == 3 for entry in probs))

    def test_same_bits_alone_and_under_load(self):
        fields = dict(temperature=0, logprobs=True, top_logprobs=5, max_tokens=24,
                      headers={"x-fixpoint-repro": "required"})

        def bits():
            return logprob_bits(self.ask("The prompt that is watched", **fields))

        def noise(i):
            self.ask(f"noise {i} " * (i + 1), temperature=1, max_tokens=40)

        expect_same_bits_alone_and_under_load(self, bits, noise)

    def test_seeded_sampling(self):
        def draw(**fields):
            return self.ask(temperature=1.5, **fields).text()
        self.assertEqual(draw(seed=1), draw(seed=1))
        self.assertNotEqual(draw(seed=1), draw(seed=2))
        tagged = {"x-fixpoint-repro": "required"}
        self.assertEqual(draw(headers=tagged), draw(headers=tagged))
        samples = [draw(headers={**tagged, "x-fixpoint-sample": str(i)}) for i in range(4)]
        self.assertEqual(len(set(samples)), 4)
        self.assertGreater(len({draw() for _ in range(6)}), 1)  # neither seed nor tag: fresh draws
        n = self.ask(temperature=1.5, n=3, headers=tagged).json()["choices"]
        self.assertEqual([choice["message"]["content"] for choice in n], samples[:3])

    def test_stop_strings(self):
        whole = self.ask(temperature=0, max_tokens=40).text()
        # Three plain characters of it: the model is random, and some of its bytes are no text.
        stop = next(whole[i:i + 3] for i in range(1, len(whole)) if whole[i:i + 3].isascii())
        answer = self.ask(temperature=0, max_tokens=40, stop=[stop])
        self.assertEqual(answer.text(), whole[:whole.index(stop)])
        self.assertEqual(answer.json()["choices"][0]["finish_reason"], "stop")
        self.assertEqual(self.ask(temperature=0, max_tokens=40, stop=[stop], stream=True).text(), answer.text())

    def test_streams_never_split_a_character(self):
        for seed in range(5):
            streamed = self.ask(temperature=2, seed=seed, stream=True, max_tokens=60)
            streamed.body.decode()  # strict
            plain = self.ask(temperature=2, seed=seed, max_tokens=60)
            self.assertEqual(streamed.text(), plain.text())

    def test_cache(self):
        first = self.ask("cached", "tiny-cached", temperature=0)
        hit = self.ask("cached", "tiny-cached", temperature=0)
        streamed = self.ask("cached", "tiny-cached", temperature=0, stream=True)
        self.assertIn("hit", hit.headers["cache-status"])
        self.assertIn("hit", streamed.headers["cache-status"])
        self.assertEqual(first.body, hit.body)
        self.assertEqual(streamed.text(), first.text())

    def test_reproducible_routing(self):
        self.assertNotEqual(self.ask(model="gpt-x").json()["model"], "tiny")
        for fields in (dict(headers={"x-fixpoint-repro": "required"}), dict(headers={"x-fixpoint-repro": "preferred"}),
                       dict(metadata={"fixpoint_repro": "required"})):
            answer = self.ask(model="gpt-x", **fields)
            self.assertEqual(answer.json()["model"], "tiny")
            self.assertEqual(answer.headers["x-fixpoint-repro"], "reproducible")
        error = self.assert_error(self.ask(model="plain", headers={"x-fixpoint-repro": "required"}), 400,
                                  "no_reproducible_model")
        self.assertIn("repro_model", error["message"])
        fallback = self.ask(model="plain", headers={"x-fixpoint-repro": "preferred"})
        self.assertEqual(fallback.status, 200)
        self.assertNotIn("x-fixpoint-repro", fallback.headers)
        tools = [{"type": "function", "function": {"name": "f"}}]  # the local engine has none
        self.assertEqual(self.ask(model="gpt-x", tools=tools, headers={"x-fixpoint-repro": "preferred"}).status, 200)
        self.assert_error(self.ask(model="gpt-x", tools=tools, headers={"x-fixpoint-repro": "required"}), 400,
                          param="tools")

    def test_completions(self):
        body = {"model": "tiny", "prompt": "Once upon", "max_tokens": 8, "temperature": 0, "logprobs": 2}
        answer = call(self.gateway.port, "POST", "/v1/completions", body).json()
        self.assertEqual(answer["object"], "text_completion")
        probs = answer["choices"][0]["logprobs"]
        self.assertEqual(len(probs["tokens"]), len(probs["token_logprobs"]))
        self.assertTrue(all(len(top) <= 2 for top in probs["top_logprobs"]))
        streamed = call(self.gateway.port, "POST", "/v1/completions", {**body, "stream": True})
        self.assertEqual(streamed.text(), answer["choices"][0]["text"])

    def test_refused_by_name(self):
        for name, value in (("temperature", 3), ("top_p", -1), ("max_tokens", 0), ("n", 1000), ("stop", 1),
                            ("stop", ["x"] * 17), ("seed", "a"), ("logit_bias", {"x": 1}),
                            ("response_format", {"type": "json_object"}), ("some_new_thing", 1)):
            with self.subTest(name=name, value=value):
                self.assert_error(self.ask(**{name: value}), 400, param=name)
        turns = [{"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function"}]}]
        answer = call(self.gateway.port, "POST", "/v1/chat/completions", {"model": "tiny", "messages": turns})
        self.assert_error(answer, 400, param="messages[0].tool_calls")
        image = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
        self.assert_error(chat(self.gateway.port, "tiny", image), 400)

    def test_prompt_longer_than_the_context(self):
        self.assert_error(self.ask("word " * 5000), 400, "context_length_exceeded")
        self.assertEqual(self.ask(temperature=0).status, 200)

    def test_a_limit_beyond_the_context_is_for_large_models(self):
        def messages(text, **fields):
            body = {"model": "short", "max_tokens": 16384, "temperature": 0,
                    "messages": [{"role": "user", "content": text}], **fields}
            return call(self.gateway.port, "POST", "/v1/messages", body, {"x-api-key": "k"})

        fresh, again = messages("Hi"), messages("Hi", max_tokens=4096)
        self.assertEqual(fresh.status, 200, fresh.body)
        self.assertIn(fresh.json()["stop_reason"], ("model_context_window_exceeded", "end_turn"))
        self.assertIn("hit", again.headers["cache-status"])
        self.assertEqual(again.body, fresh.body)
        self.assertEqual(messages("word " * 200).status, 400)
        self.assert_error(self.ask("Hi", "short", max_tokens=4096), 400, "context_length_exceeded")

    def test_message_streams_begin_with_the_prompts_tokens(self):
        for model in ("tiny", "tiny-cached", "tiny-cached"):  # made twice, then a hit
            body = {"model": model, "max_tokens": 12, "temperature": 0, "stream": True,
                    "messages": [{"role": "user", "content": "How long is this?"}]}
            answer = call(self.gateway.port, "POST", "/v1/messages", body, {"x-api-key": "k"})
            events = [json.loads(line[6:]) for line in answer.body.decode().splitlines() if line.startswith("data: ")]
            start, end = events[0]["message"]["usage"], events[-2]["usage"]
            self.assertGreater(start["input_tokens"], 0)
            self.assertEqual(start["input_tokens"], end["input_tokens"])
            self.assertGreater(end["output_tokens"], 0)
        self.assertIn("hit", answer.headers["cache-status"])
        chunks = self.ask(temperature=0, stream=True).chunks()
        self.assertFalse(any(chunk.get("usage") for chunk in chunks))

    def test_a_client_that_leaves_frees_the_engine(self):
        body = json.dumps({"model": "tiny", "stream": True, "temperature": 1, "max_tokens": 400, "logit_bias": {},
                           "messages": [{"role": "user", "content": "long"}]}).encode()
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", self.gateway.port), 30) as connection:
                connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                                   b"Content-Length: %d\r\n\r\n" % len(body) + body)
                connection.recv(100)
        self.assertEqual(self.ask(temperature=0).status, 200)

    def test_token_log(self):
        answer = self.ask("logged", temperature=0, headers={"x-fixpoint-repro": "required"})
        generation = answer.headers["x-fixpoint-generation"]
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            shown = self.gateway.cli("log", "show", generation, "--json", check=False)
            if shown.returncode == 0:
                break
            time.sleep(0.05)
        record = json.loads(shown.stdout)
        self.assertEqual(record["model"], "tiny")
        self.assertEqual(record["logprobs"], "captured")
        self.assertEqual(len(record["tokens"]), answer.json()["usage"]["completion_tokens"])
        for token in record["tokens"]:
            self.assertAlmostEqual(token["margin"], token["top"][0]["logprob"] - token["top"][1]["logprob"], 4)
        tail = json.loads(self.gateway.cli("log", "tail", "-n", "200", "--json").stdout)
        self.assertIn(generation, json.dumps(tail))
        margins = json.loads(self.gateway.cli("log", "margins", generation, "--json").stdout)
        values = [one["margin"] for one in margins]
        self.assertTrue(values)
        self.assertEqual(values, sorted(values))
        self.assertIn(generation, self.gateway.cli("log", "show", generation).stdout)


DATA_HOME = pathlib.Path(os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local" / "share")
DEFAULT_MODEL = pathlib.Path(os.environ.get("FIXPOINT_TEST_MODEL") or DATA_HOME / "fixpoint" / "models" / "smollm2-135m.gguf")


class DefaultModel(unittest.TestCase):
    """The promise of reproducible bits, on the model that the quick start serves."""

    def setUp(self):
        if not DEFAULT_MODEL.exists():
            self.skipTest(f"no model at {DEFAULT_MODEL}: run `fixpoint model pull smollm2-135m`")
        if BUILD.name in ("asan", "tsan"):
            self.skipTest("a sanitized engine is too slow for 135 million parameters; the plain builds run this")
        self.gateway = Gateway({"models": [{"name": "m", "path": str(DEFAULT_MODEL)}],
                                "routes": [{"model": "m", "local": "m", "cache": "off"}]})
        self.addCleanup(self.gateway.stop)

    def ask(self, text, **fields):
        return chat(self.gateway.port, "m", text, {"x-fixpoint-repro": "required"}, **fields)

    def test_same_bits_alone_and_under_load(self):
        def watched():
            return logprob_bits(self.ask("Name three colours.", temperature=0.7, max_tokens=12, logprobs=True,
                                         top_logprobs=5))

        def noise(i):
            self.ask(f"Tell me about the number {i}. " * (i + 1), temperature=1, max_tokens=10 + i)

        expect_same_bits_alone_and_under_load(self, watched, noise)

    def test_it_knows_the_capital(self):
        self.assertIn("Paris", self.ask("What is the capital of France?", temperature=0).text())


class BrokenModels(unittest.TestCase):
    def start(self, data):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "model.gguf"
        path.write_bytes(data)
        return Gateway({"models": [{"name": "bad", "path": str(path)}], "routes": [{"model": "bad", "local": "bad"}]})

    def test_cut_and_absurd_files_are_a_clear_start_up_error(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = pathlib.Path(tiny_model(folder)).read_bytes()
        absurd = whole[:8] + struct.pack("<Q", 2**60) + whole[16:]
        for data in (whole[:100], whole[:len(whole) // 2], absurd, b"", b"not a model"):
            with self.assertRaises(RuntimeError) as caught:
                self.start(data)
            self.assertIn("model 'bad'", str(caught.exception))
            self.assertNotIn("terminate called", str(caught.exception))
