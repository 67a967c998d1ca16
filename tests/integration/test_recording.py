"""Answers that are kept on purpose: recordings for test suites, export and import, age and length limits."""
import json
import pathlib
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE_S, Gateway, GatewayTest, MockUpstream, call, chat, program, tiny_model
from helpers import wait_until


class Recordings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fixpoint-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "recordings"
        self.mock = MockUpstream()
        self.gone = False
        self.addCleanup(self.stop_mock)

    def stop_mock(self):
        if not self.gone:
            self.gone = True
            self.mock.stop()

    def start(self, how):
        gateway = Gateway({"upstreams": [{"name": "mock", "base_url": self.mock.url, "api_key": "sk-never-recorded"}],
                           "routes": [{"model": "*", "upstream": "mock"}]}, arguments=[how, str(self.folder)])
        self.addCleanup(gateway.stop)
        return gateway

    def record(self, ask):
        """What `ask(gateway)` returned; afterwards there is no upstream any more."""
        result = ask(self.start("--record"))
        self.stop_mock()
        return result

    def files(self):
        return sorted(self.folder.glob("*.json"))

    def test_replayed_without_an_upstream(self):
        asks = [lambda g, i=i: chat(g.port, "mock", f"question {i}", temperature=1) for i in range(3)]
        asks.append(lambda g: call(g.port, "POST", "/v1/embeddings", {"model": "mock", "input": "embed"}))
        asks.append(lambda g: call(g.port, "POST", "/v1/responses", {"model": "mock", "input": "x"}))
        recorded = self.record(lambda g: [ask(g) for ask in asks])
        self.assertEqual(len(self.files()), len(asks))
        gateway = self.start("--replay")
        for ask, answer in zip(asks, recorded):
            again = ask(gateway)
            self.assertEqual(again.status, 200, again.body)
            self.assertEqual(again.json(), answer.json())
            self.assertIn("hit", again.headers["cache-status"])

    def test_recording_again_changes_nothing(self):
        gateway = self.start("--record")
        first = chat(gateway.port, "mock", "once", temperature=1)
        before = [file.read_bytes() for file in self.files()]
        self.assertEqual(chat(gateway.port, "mock", "once", temperature=1).body, first.body)
        self.assertEqual([file.read_bytes() for file in self.files()], before)
        self.assertEqual(self.mock.stats()["requests"], 1)

    def test_what_is_recorded_anew(self):
        def twice(gateway):
            return [chat(gateway.port, "mock", "again", {"Cache-Control": "no-cache"}) for _ in range(2)]
        first, second = self.record(twice)
        self.assertNotEqual(first.text(), second.text())
        self.assertEqual(len(self.files()), 1)
        self.assertEqual(chat(self.start("--replay").port, "mock", "again").json(), second.json())

    def test_a_recording_does_not_age(self):
        config = {"cache": {"ttl": "100ms"}, "upstreams": [{"name": "mock", "base_url": self.mock.url, "api_key": "x"}],
                  "routes": [{"model": "*", "upstream": "mock"}]}
        gateway = Gateway(config, arguments=["--record", str(self.folder)])
        self.addCleanup(gateway.stop)
        first = chat(gateway.port, "mock", "kept", temperature=0)
        time.sleep(0.2)
        self.assertEqual(chat(gateway.port, "mock", "kept", temperature=0).body, first.body)
        self.assertEqual(self.mock.stats()["requests"], 1)

    def test_whose_key_it_was_does_not_matter(self):
        config = {"upstreams": [{"name": "mock", "base_url": self.mock.url}], "routes": [{"model": "*", "upstream": "mock"}]}
        for how, key in (("--record", "Bearer sk-of-a-person"), ("--replay", "Bearer sk-of-the-build")):
            gateway = Gateway(config, arguments=[how, str(self.folder)])
            self.addCleanup(gateway.stop)
            self.assertEqual(chat(gateway.port, "mock", "anybody", {"Authorization": key}).status, 200)
        self.assertEqual(self.mock.stats()["requests"], 1)
        self.assertNotIn("sk-of-a-person", self.files()[0].read_text())

    def test_streams(self):
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        kinds = ({}, {"tools": tools}, {"logprobs": True})
        recorded = self.record(lambda g: [chat(g.port, "mock", "stream", stream=True, **fields) for fields in kinds])
        gateway = self.start("--replay")
        for fields, live in zip(kinds, recorded):
            with self.subTest(fields=list(fields)):
                replayed = chat(gateway.port, "mock", "stream", stream=True, **fields)
                self.assertEqual(replayed.events()[-1], "[DONE]")
                self.assertEqual(replayed.text(), live.text())
                plain = chat(gateway.port, "mock", "stream", **fields).json()["choices"][0]
                self.assertEqual(plain["message"]["content"] or "", live.text())
                self.assertEqual(bool(plain["message"].get("tool_calls")), "tools" in fields)

    def test_files_are_for_people(self):
        self.record(lambda g: chat(g.port, "mock", "readable é"))
        text = self.files()[0].read_text()
        self.assertIn('"content": "readable é"', text)
        self.assertIn('"content": "mock answer', text)
        self.assertGreater(len(text.splitlines()), 20)
        self.assertNotIn("sk-never-recorded", text)

    def test_an_edited_file_is_served(self):
        self.record(lambda g: chat(g.port, "mock", "edit me"))
        file, = self.files()
        recording = json.loads(file.read_text())
        recording["answer"]["choices"][0]["message"]["content"] = "by hand: 42"
        file.write_text(json.dumps(recording))
        gateway = self.start("--replay")
        self.assertEqual(chat(gateway.port, "mock", "edit me").text(), "by hand: 42")
        self.assertEqual(chat(gateway.port, "mock", "edit me", stream=True).text(), "by hand: 42")

    def test_an_edited_question_is_told(self):
        self.record(lambda g: chat(g.port, "mock", "question"))
        file, = self.files()
        file.write_text(file.read_text().replace('"question"', '"other question"'))
        with self.assertRaises(RuntimeError) as caught:
            self.start("--replay")
        self.assertIn(file.name, str(caught.exception))

    def test_a_miss_names_what_differs(self):
        self.record(lambda g: [chat(g.port, "mock", "near", temperature=0.5), chat(g.port, "mock", "nothing like it")])
        gateway = self.start("--replay")
        answer = chat(gateway.port, "mock", "near", temperature=0.7, seed=3)
        self.assertEqual(answer.status, 504)
        error = answer.json()["error"]
        self.assertEqual(error["code"], "recording_missing")
        for part in ("temperature", "0.5", "0.7", "seed"):
            self.assertIn(part, error["message"])
        self.assertNotIn("messages", error["message"])
        streamed = chat(gateway.port, "mock", "near", temperature=0.7, stream=True)
        self.assertEqual(streamed.status, 504)
        anthropic = call(gateway.port, "POST", "/v1/messages", {"model": "mock", "max_tokens": 5, "messages": [
            {"role": "user", "content": "x"}]}, {"anthropic-version": "2023-06-01"})
        self.assertEqual((anthropic.status, anthropic.json()["type"]), (504, "error"))

    def test_a_miss_names_the_header(self):
        def ask(gateway, beta):
            return call(gateway.port, "POST", "/v1/chat/completions", {"model": "mock", "messages": [
                {"role": "user", "content": "x"}]}, {"anthropic-beta": beta, "x-team": "of secrets"})
        self.record(lambda g: ask(g, "a"))
        text = self.files()[0].read_text()
        self.assertIn('"anthropic-beta": "a"', text)
        self.assertIn('"x-team": "sha256:', text)
        self.assertNotIn("of secrets", text)
        gateway = self.start("--replay")
        self.assertEqual(ask(gateway, "a").status, 200)
        self.assertIn('differs in headers.anthropic-beta (recorded "a", asked "b")',
                      ask(gateway, "b").json()["error"]["message"])

    def test_a_stored_prompt(self):
        def ask(gateway):
            return call(gateway.port, "POST", "/v1/responses", {"model": "mock", "prompt": {"id": "pmpt_1"}})
        recorded = self.record(ask)
        self.assertEqual(ask(self.start("--replay")).json(), recorded.json())

    def test_local_models(self):
        model = tiny_model(self.folder.parent)

        def start(how):
            gateway = Gateway({"models": [{"name": "tiny", "path": model, "threads": 1}],
                               "routes": [{"model": "tiny", "local": "tiny"}]}, arguments=[how, str(self.folder)])
            self.addCleanup(gateway.stop)
            return gateway

        def ask(gateway, label="a", text="who is it"):
            return call(gateway.port, "POST", "/v1/responses", {
                "model": "tiny", "input": text, "max_output_tokens": 4, "metadata": {"label": label}})
        recorded = ask(start("--record"))
        wait_until(self, self.files, "it is recorded")
        self.assertIn('"input": "who is it"', self.files()[0].read_text())
        gateway = start("--replay")
        self.assertEqual(ask(gateway).json(), recorded.json())
        for fields, said in (({"text": "who was it"}, 'input (recorded "who is it", asked "who was it")'),
                             ({"label": "b"}, 'metadata.label (recorded "a", asked "b")')):
            message = ask(gateway, **fields).json()["error"]["message"]
            self.assertTrue(message.endswith("differs in " + said), message)

    def test_what_a_suite_says_about_caches(self):
        headers = {"Cache-Control": "no-cache"}
        self.record(lambda g: chat(g.port, "mock", "fresh, please", headers))
        gateway = self.start("--replay")
        self.assertEqual(chat(gateway.port, "mock", "fresh, please", headers).status, 200)

    def test_answers_that_reached_their_limit(self):
        self.record(lambda g: chat(g.port, "mock-length", "short", max_tokens=5))
        gateway = self.start("--replay")
        answer = chat(gateway.port, "mock-length", "short", max_tokens=5)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.json()["choices"][0]["finish_reason"], "length")

    def test_whatever_ended_an_answer(self):
        def ask(gateway, model, stream):
            return chat(gateway.port, model, "ended", stream=stream)
        kinds = [(model, stream) for model in ("mock-filter", "mock-nofinish") for stream in (False, True)]
        recorded = self.record(lambda g: [ask(g, *kind) for kind in kinds])
        gateway = self.start("--replay")
        for kind, live in zip(kinds, recorded):
            with self.subTest(kind=kind):
                again = ask(gateway, *kind)
                self.assertEqual((again.status, again.text()), (200, live.text()), again.body)
                if not kind[1]:
                    self.assertEqual(again.json()["choices"], live.json()["choices"])

    def test_what_is_left_out_is_told(self):
        gateway = self.start("--record")
        asks = (lambda: chat(gateway.port, "mock", "private", {"Cache-Control": "no-store"}),
                lambda: call(gateway.port, "POST", "/v1/responses", {"model": "mock", "input": "x", "conversation": "c"}),
                lambda: call(gateway.port, "POST", "/v1/responses", {"model": "mock-failed", "input": "x"}))
        for count, ask in enumerate(asks, 1):
            answer = ask()
            self.assertEqual(answer.status, 200, answer.body)
            wait_until(self, lambda n=count: gateway.log().count("not recorded: the answer to ") == n, "the log says so")
        self.assertEqual(self.files(), [])

    def test_a_purge_keeps_recordings(self):
        plain = Gateway({"upstreams": [{"name": "mock", "base_url": self.mock.url, "api_key": "x"}],
                         "routes": [{"model": "*", "upstream": "mock"}]})
        self.addCleanup(plain.stop)
        self.assertEqual(chat(plain.port, "mock", "cached", temperature=0).status, 200)
        wait_until(self, lambda: plain.cli("cache", "export").stdout, "it is stored")
        exported = plain.cli("cache", "export").stdout
        for how in ("--record", "--replay"):
            gateway = self.start(how)
            self.assertEqual(chat(gateway.port, "mock", "recorded").status, 200)
            data = pathlib.Path(gateway.data_dir)
            access = json.loads((data / "gateway.json").read_text())
            asked = call(gateway.port, "POST", "/admin/cache/purge", {"all": True},
                         {"Authorization": f"Bearer {access['token']}"})
            self.assertEqual((asked.status, asked.json()["error"]["code"]), (409, "no_cache"))
            self.assertIn(how, asked.json()["error"]["message"])
            # The cache in the same data folder is purged all the same.
            file = data / "export.jsonl"
            file.write_text(exported)
            gateway.cli("cache", "import", str(file))
            purged = gateway.cli("cache", "purge", "--all", "--json")
            self.assertEqual(json.loads(purged.stdout), {"removed": 1})
            self.assertEqual(len(self.files()), 1)

    def test_a_folder_that_is_not_there(self):
        with self.assertRaises(RuntimeError) as caught:
            self.start("--replay")
        self.assertIn(f"{self.folder}: there is no such folder", str(caught.exception))
        self.assertFalse(self.folder.exists())

    def test_not_both(self):
        done = subprocess.run([program("fixpoint"), "serve", "--record", "a", "--replay", "b"], capture_output=True,
                              timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 2)


class Export(unittest.TestCase):
    def test_there_and_back(self):
        mock = MockUpstream()
        self.addCleanup(mock.stop)
        config = {"upstreams": [{"name": "mock", "base_url": mock.url, "api_key": "x"}],
                  "routes": [{"model": "*", "upstream": "mock"}]}

        def ask(gateway, model="mock-utf8", **fields):
            return chat(gateway.port, model, "to be moved", temperature=0, **fields)
        one = Gateway(config)
        self.addCleanup(one.stop)
        first, big = ask(one), ask(one, "mock-big-20000")
        wait_until(self, lambda: json.loads(one.cli("cache", "stats", "--json").stdout)["entries"] == 2, "both are stored")

        def export(gateway, *arguments):  # str.splitlines() would also split at U+2028, which is in the answers
            return sorted(gateway.cli("cache", "export", *arguments).stdout.rstrip("\n").split("\n"))
        exported = export(one)
        self.assertEqual({json.loads(line)["key"] for line in exported},
                         {answer.headers["x-fixpoint-key"] for answer in (first, big)})
        self.assertEqual(len(exported), 2)
        self.assertEqual([json.loads(line)["model"] for line in export(one, "--model", "mock-utf8")], ["mock-utf8"])

        with tempfile.TemporaryDirectory(prefix="fixpoint-test-") as folder:
            file, data = pathlib.Path(folder) / "export.jsonl", pathlib.Path(folder) / "data"
            file.write_text("\n".join(exported) + "\n")
            moved = one.cli("cache", "import", str(file), "--data-dir", str(data), "--json")
            self.assertEqual(json.loads(moved.stdout), {"imported": 2, "refused": 0, "failed": 0, "expired": 0,
                                                        "evicted": 0})
            two = Gateway(config, data)
            self.addCleanup(two.stop)
            mock.reset()
            for answer in (ask(two), ask(two, "mock-big-20000")):
                self.assertIn("hit", answer.headers["cache-status"])
                self.assertIn(answer.body, (first.body, big.body))
            self.assertEqual(ask(two, stream=True).text(), first.text())
            self.assertEqual(mock.stats()["requests"], 0)
            self.assertEqual(export(two), exported)

            file.write_text(file.read_text().replace("mock answer", "mock anSwer", 1))
            refused = one.cli("cache", "import", str(file), "--data-dir", folder, check=False)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("export.jsonl:", refused.stderr)


class Limits(GatewayTest):
    @classmethod
    def config(cls):
        return {"cache": {"ttl": "1500ms", "store_length": True, "replay": "recorded"},
                "upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "x"}],
                "routes": [{"model": "*", "upstream": "mock"}]}

    def ask(self, text, model="mock", headers=None, **fields):
        return chat(self.gateway.port, model, text, headers, temperature=0, **fields)

    def test_age(self):
        made = time.monotonic()
        first = self.ask("ages")
        again = self.ask("ages")
        if time.monotonic() - made < 1.5:
            self.assertIn("hit", again.headers["cache-status"])
        time.sleep(max(0, made + 1.1 - time.monotonic()))
        young = self.ask("ages", headers={"Cache-Control": "max-age=0, only-if-cached"})
        self.assert_error(young, 504, "cache_miss")
        self.assertIn("fwd=stale", young.headers["cache-status"])
        time.sleep(max(0, made + 1.6 - time.monotonic()))
        self.assert_error(self.ask("ages", headers={"Cache-Control": "only-if-cached"}), 504, "cache_miss")
        stale = self.ask("ages")
        self.assertRegex(stale.headers["cache-status"], "fwd=(stale|miss)")
        self.assertNotEqual(stale.text(), first.text())
        self.assertEqual(self.mock.stats()["requests"], 2)

    def test_only_if_cached(self):
        self.ask("there")
        self.assertEqual(self.ask("there", headers={"Cache-Control": "only-if-cached"}).status, 200)
        self.assert_error(self.ask("not there", headers={"Cache-Control": "only-if-cached"}), 504, "cache_miss")

    def test_length_stops_are_stored_when_asked_for(self):
        first = self.ask("long", "mock-length")
        again = self.ask("long", "mock-length")
        self.assertIn("hit", again.headers["cache-status"])
        self.assertEqual(again.body, first.body)
        self.assertEqual(self.ask("long", "mock-length", stream=True).chunks()[-1]["choices"][0]["finish_reason"], "length")

    def test_recorded_pace(self):
        live = self.ask("pace", "mock-stream-10-60", stream=True)
        started = time.monotonic()
        replayed = self.ask("pace", "mock-stream-10-60", stream=True)
        took = time.monotonic() - started
        self.assertIn("hit", replayed.headers["cache-status"])
        self.assertEqual(replayed.text(), live.text())
        self.assertEqual(replayed.events()[-1], "[DONE]")
        self.assertGreater(took, 0.4)  # the live one took 0.6 s at least


if __name__ == "__main__":
    unittest.main()
