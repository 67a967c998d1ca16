"""The response cache: same key, same answer, streamed or not."""
import json
import os
import resource
import subprocess
import tempfile
import unittest

from harness import Gateway, GatewayTest, call, chat, in_parallel
from helpers import metric, wait_until


def said(answer):
    return answer.text()


class Cache(GatewayTest):
    def ask(self, text, **fields):
        fields.setdefault("temperature", 0)
        headers = fields.pop("headers", None)
        return chat(self.gateway.port, fields.pop("model", "mock"), text, headers, **fields)

    def requests(self):
        return self.mock.stats()["requests"]

    def assert_hit(self, answer):
        self.assertEqual(answer.headers["cache-status"], "fixpoint; hit", answer.headers)

    def test_hit_is_the_same_bytes(self):
        first, second = self.ask("same"), self.ask("same")
        self.assertEqual(first.headers["cache-status"], "fixpoint; fwd=miss")
        self.assert_hit(second)
        self.assertEqual(first.body, second.body)
        self.assertEqual(self.requests(), 1)
        self.assertGreaterEqual(int(second.headers["age"]), 0)
        self.assertRegex(second.headers["x-fixpoint-key"], "^body:[0-9a-f]{64}$")
        self.assertEqual(first.headers["x-fixpoint-generation"], second.headers["x-fixpoint-generation"])

    def test_one_entry_serves_both_modes(self):
        for first_streams in (False, True):
            with self.subTest(first_streams=first_streams):
                text = f"modes {first_streams}"
                first = self.ask(text, stream=first_streams)
                second = self.ask(text, stream=not first_streams)
                again = self.ask(text, stream=not first_streams)
                self.assert_hit(second)
                self.assertEqual(said(first), said(second))
                self.assertEqual(second.body, again.body)
                streamed = second if not first_streams else first
                self.assertEqual(streamed.events()[-1], "[DONE]")
        self.assertEqual(self.requests(), 2)

    def test_plain_hit_after_a_stream_has_usage(self):
        self.ask("usage", stream=True)
        usage = self.ask("usage").json()["usage"]
        self.assertGreater(usage["total_tokens"], 0)

    def test_tool_calls_and_logprobs_survive_both_ways(self):
        tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
        for fields in ({"tools": tools}, {"logprobs": True, "top_logprobs": 2}):
            for first_streams in (False, True):
                text = json.dumps([list(fields), first_streams])
                plain = self.ask(text, **fields) if not first_streams else None
                streamed = self.ask(text, stream=True, **fields)
                plain = plain or self.ask(text, **fields)
                choice = plain.json()["choices"][0]
                joined, probs = {}, []
                for chunk in streamed.chunks():
                    for piece in chunk["choices"]:
                        for call_ in piece["delta"].get("tool_calls") or []:
                            slot = joined.setdefault(call_["index"], {"name": "", "arguments": ""})
                            slot["name"] += call_.get("function", {}).get("name") or ""
                            slot["arguments"] += call_.get("function", {}).get("arguments") or ""
                        probs += (piece.get("logprobs") or {}).get("content") or []
                if "tools" in fields:
                    calls = choice["message"]["tool_calls"]
                    self.assertEqual([c["function"] for c in calls], list(joined.values()))
                    self.assertTrue(all("index" not in c for c in calls))
                    self.assertEqual(choice["finish_reason"], "tool_calls")
                else:
                    self.assertEqual(choice["logprobs"]["content"], probs)
                    self.assertTrue(probs)

    def test_what_decides_the_answer_is_in_the_key(self):
        base = self.ask("keyed").headers["x-fixpoint-key"]
        others = [dict(temperature=0.0, top_p=0.5), dict(seed=1), dict(max_tokens=5), dict(unknown_member=1),
                  dict(stop=["x"]), dict(n=1), dict(model="mock-length"), dict(headers={"x-fixpoint-sample": "1"}),
                  dict(tools=[]), dict(logit_bias={"1": 1})]
        keys = {self.ask("keyed", **fields).headers["x-fixpoint-key"] for fields in others}
        keys |= {self.ask(text).headers["x-fixpoint-key"] for text in ("Keyed", "keyed ", "keyed\n")}
        self.assertEqual(len(keys | {base}), len(others) + 4)

    def test_what_does_not_decide_it_is_not(self):
        base = self.ask("same key").headers["x-fixpoint-key"]
        for fields in (dict(user="a"), dict(metadata={"x": "y"}), dict(stream=False)):
            self.assertEqual(self.ask("same key", **fields).headers["x-fixpoint-key"], base)
        spaced = b'{"temperature": 0,\n "messages": [ {"content": "same key", "role": "user"} ], "model": "mock"}'
        answer = call(self.gateway.port, "POST", "/v1/chat/completions", spaced,
                      {"user-agent": "other", "x-stainless-retry-count": "1", "traceparent": "00-1-2-01"})
        self.assert_hit(answer)

    def test_samples_are_different_draws_and_stay(self):
        def draw(i):
            return self.ask("sample", temperature=1, headers={"x-fixpoint-sample": str(i)})
        first, again = [said(draw(i)) for i in range(5)], [said(draw(i)) for i in range(5)]
        self.assertEqual(len(set(first)), 5)
        self.assertEqual(first, again)

    def test_automatic_policy(self):
        def stored(**fields):
            text = json.dumps(fields)
            self.ask(text, **fields)
            return "hit" in self.ask(text, **fields).headers["cache-status"]
        self.assertTrue(stored(temperature=0))
        self.assertTrue(stored(temperature=1, seed=7))
        self.assertFalse(stored(temperature=1))
        self.assertFalse(stored(temperature=None))

    def test_a_stored_prompt_may_get_a_new_version(self):
        def stored(prompt):
            body = {"model": "mock", "temperature": 0, "prompt": prompt}
            for _ in range(2):
                answer = call(self.gateway.port, "POST", "/v1/responses", body)
                self.assertEqual(answer.status, 200, answer.body)
            return "hit" in answer.headers["cache-status"]
        self.assertFalse(stored({"id": "pmpt_1"}))
        self.assertFalse(stored({"id": "pmpt_1", "version": None}))
        self.assertTrue(stored({"id": "pmpt_1", "version": "2"}))

    def test_only_complete_answers_are_stored(self):
        for model in ("mock-length", "mock-filter", "mock-error-500", "mock-nodone", "mock-garbage"):
            for stream in (False, True):
                if model == "mock-nodone" and not stream:
                    continue
                self.ask("bad", model=model, stream=stream)
                again = self.ask("bad", model=model, stream=stream)
                self.assertNotIn("hit", again.headers.get("cache-status", ""), model)

    def test_request_directives(self):
        self.ask("directives")
        self.assertIn("fwd=bypass", self.ask("directives", headers={"Cache-Control": "no-store"}).headers["cache-status"])
        refreshed = self.ask("directives", headers={"Cache-Control": "no-cache"})
        self.assertIn("fwd=request", refreshed.headers["cache-status"])
        self.assertEqual(said(self.ask("directives")), said(refreshed))
        self.assert_hit(self.ask("directives", headers={"Cache-Control": "max-age=3600"}))
        self.assert_error(self.ask("never asked", headers={"Cache-Control": "only-if-cached"}), 504, "cache_miss")
        self.assert_error(self.ask("x", headers={"x-fixpoint-sample": "-1"}), 400)

    def test_a_hundred_identical_requests_make_one_call(self):
        answers = in_parallel(100, lambda i: self.ask("flight", model="mock-delay-1500", stream=i % 2 == 0))
        self.assertEqual({a.status for a in answers}, {200})
        self.assertEqual(len({said(a) for a in answers}), 1)
        self.assertEqual(len({a.body for a in answers[1::2]}), 1)
        self.assertEqual(len({a.body for a in answers[0::2]}), 1)
        self.assertEqual(self.requests(), 1)
        joined = sum("collapsed" in a.headers["cache-status"] for a in answers)
        hits = sum("hit" in a.headers["cache-status"] for a in answers)
        self.assertEqual(joined + hits, 99)

    def test_a_hundred_identical_streams_make_one_call(self):
        answers = in_parallel(100, lambda _: self.ask("stream flight", model="mock-stream-20-60", stream=True))
        self.assertEqual(len({said(a) for a in answers}), 1)
        self.assertEqual({a.events()[-1] for a in answers}, {"[DONE]"})
        self.assertEqual(self.requests(), 1)

    def test_the_leaders_failure_is_everybodys_own_error(self):
        answers = in_parallel(10, lambda _: self.ask("fails", model="mock-error-503"))
        self.assertEqual({a.status for a in answers}, {503})

    def test_uncacheable_requests_are_not_joined(self):
        in_parallel(5, lambda _: self.ask("fresh", model="mock-delay-300", temperature=1))
        self.assertEqual(self.requests(), 5)

    def test_command_line(self):
        key = self.ask("command line").headers["x-fixpoint-key"]
        stats = json.loads(self.gateway.cli("cache", "stats", "--json").stdout)
        self.assertGreater(stats["entries"], 0)
        got = json.loads(self.gateway.cli("cache", "get", key, "--json").stdout)
        self.assertEqual(got["key"], key)
        self.gateway.cli("cache", "purge", "--key", key)
        self.assertEqual(self.gateway.cli("cache", "get", key, check=False).returncode, 3)
        self.assertIn("fwd=miss", self.ask("command line").headers["cache-status"])

    def test_entries_outlive_the_process(self):
        with tempfile.TemporaryDirectory() as folder:
            one = Gateway(self.config(), folder)
            first = chat(one.port, "mock", "outlive", temperature=0)
            one.stop()
            two = Gateway(self.config(), folder)
            self.addCleanup(two.stop)
            second = chat(two.port, "mock", "outlive", temperature=0)
            self.assert_hit(second)
            self.assertEqual(first.body, second.body)


class Tenants(GatewayTest):
    """Without an api_key of the gateway's own, each client's key is passed on."""

    @classmethod
    def config(cls):
        return {"upstreams": [{"name": "mock", "base_url": cls.mock.url}],
                "routes": [{"model": "*", "upstream": "mock", "cache": "all"}]}

    def test_answers_belong_to_the_holder_of_the_key(self):
        def ask(key):
            return chat(self.gateway.port, "mock", "whose", {"Authorization": f"Bearer {key}"})
        a, b, again = ask("sk-a"), ask("sk-b"), ask("sk-a")
        self.assertNotEqual(a.headers["x-fixpoint-key"], b.headers["x-fixpoint-key"])
        self.assertIn("hit", again.headers["cache-status"])
        self.assertEqual(self.mock.stats()["requests"], 2)


    def test_every_header_that_carries_a_key_counts(self):
        keys = {chat(self.gateway.port, "mock", "whose", {name: "k"}).headers["x-fixpoint-key"]
                for name in ("Authorization", "x-api-key", "api-key")}
        self.assertEqual(len(keys), 3)

    def test_what_the_upstream_is_asked_is_keyed(self):
        body = {"model": "mock", "messages": [{"role": "user", "content": "query"}]}
        keys = {call(self.gateway.port, "POST", f"/v1/chat/completions{query}", body).headers["x-fixpoint-key"]
                for query in ("", "?api-version=1", "?api-version=2")}
        self.assertEqual(len(keys), 3)


class Renamed(GatewayTest):
    @classmethod
    def config(cls):
        return {"upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "x",
                               "model_names": {"alias": "mock", "other": "mock-length"}}],
                "routes": [{"model": "alias", "upstream": "mock"},
                           {"model": "other", "upstream": "mock"},
                           {"model": "mock", "upstream": "mock"}]}

    def test_an_alias_shares_the_answers_of_what_it_stands_for(self):
        def key(model):
            return chat(self.gateway.port, model, "x", temperature=0).headers["x-fixpoint-key"]
        self.assertEqual(key("alias"), key("mock"))
        self.assertNotEqual(key("other"), key("mock"))


class FullDisk(GatewayTest):
    def test_requests_go_on(self):
        folder = tempfile.mkdtemp(prefix="fixpoint-test-")
        self.addCleanup(os.rmdir, folder)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("needs the right to mount a small tmpfs")
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        gateway = Gateway(self.config(), folder)
        self.addCleanup(gateway.stop)
        for i in range(100):
            answer = chat(gateway.port, "mock-big-40000", f"fill {i}", temperature=0)
            self.assertEqual(answer.status, 200)
        free = os.statvfs(folder)
        self.assertLess(free.f_bavail * free.f_bsize, 300_000)
        metrics = call(gateway.port, "GET", "/metrics").body.decode()
        self.assertRegex(metrics, r"fixpoint_cache_write_failures_total [1-9]")
        self.assertEqual(chat(gateway.port, "mock", "after", temperature=0).status, 200)

    def test_a_limit_for_files_is_a_full_disk(self):
        gateway = Gateway({**self.config(), "cache": {"compress_above": "64MiB"}})
        self.addCleanup(gateway.stop)
        _, hard = resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (1 << 17, hard))  # as `ulimit -f`
        for i in range(5):
            self.assertEqual(chat(gateway.port, "mock-big-40000", f"limited {i}", temperature=0).status, 200)
        wait_until(self, lambda: metric(gateway.port, "fixpoint_cache_write_failures_total") > 0, "a write failed")
        self.assertEqual(chat(gateway.port, "mock", "after", temperature=0).status, 200)


if __name__ == "__main__":
    unittest.main()
