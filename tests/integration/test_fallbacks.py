"""Which upstream answers: fallbacks, weights, and under whose key the answer is kept."""
import json
import unittest

from harness import GatewayTest, call, chat
from helpers import metric, wait_until


class Fallbacks(GatewayTest):
    @classmethod
    def config(cls):
        bad = {"failing": "mock-error-500", "refused": "mock-error-400", "patient": "mock-error-429-retryafter-30",
               "garbled": "mock-garbage", "broken": "mock-errorevent-3"}
        return {"upstreams": [{"name": "first", "base_url": cls.mock.url, "api_key": "one", "model_names": bad},
                              {"name": "second", "base_url": cls.mock.url, "api_key": "two", "retries": 1,
                               "model_names": {"only-second": "mock", **{name: "mock" for name in bad}}}],
                "routes": [{"model": "only-second", "upstream": "second"},
                           {"model": "*", "upstream": "first", "fallbacks": ["second"]}]}

    def ask(self, model, text, **fields):
        return chat(self.gateway.port, model, text, temperature=0, **fields)

    def test_the_second_answers(self):
        for stream in (False, True):
            answer = self.ask("failing", f"fall back {stream}", stream=stream)
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual(answer.headers["x-fixpoint-upstream"], "second")
            self.assertEqual(answer.headers["x-fixpoint-attempts"], "2")
            self.assertEqual(self.mock.stats()["last_headers"]["authorization"], "Bearer two")

    def test_its_answer_is_stored_under_its_own_key(self):
        answer = self.ask("failing", "whose key")
        key = answer.headers["x-fixpoint-key"]
        entry = json.loads(self.gateway.cli("cache", "get", key, "--json").stdout)
        self.assertEqual(entry["provider"], "second")
        direct = self.ask("only-second", "whose key")
        self.assertEqual(direct.headers["x-fixpoint-key"], key)
        self.assertIn("hit", direct.headers["cache-status"])
        self.assertEqual(direct.body, answer.body)
        self.mock.reset()
        self.ask("failing", "whose key")  # the first is not judged by what the second said
        self.assertEqual(self.mock.stats()["by_model"]["mock-error-500"], 1)

    def test_a_key_keeps_its_answer(self):
        direct = self.ask("only-second", "one key, one answer")
        fallen = self.ask("failing", "one key, one answer")
        self.assertEqual(fallen.headers["x-fixpoint-key"], direct.headers["x-fixpoint-key"])
        self.assertEqual(fallen.text(), direct.text())

    def test_a_kept_answer_is_a_hit(self):
        def counts():
            return [metric(self.gateway.port, "fixpoint_cache_requests_total", result=one) for one in ("hit", "miss")]

        self.ask("only-second", "a hit by way of a fallback")
        hits, misses = counts()
        fallen = self.ask("failing", "a hit by way of a fallback")
        self.assertIn("hit", fallen.headers["cache-status"])
        self.assertGreaterEqual(int(fallen.headers["age"]), 0)
        wait_until(self, lambda: counts() == [hits + 1, misses], "it is counted")
        self.assertNotIn("age", self.ask("failing", "made by a fallback").headers)

    def test_a_kept_answer_names_its_own_generation(self):
        direct = self.ask("only-second", "whose generation")
        for stream in (False, True):
            fallen = self.ask("failing", "whose generation", stream=stream)
            self.assertEqual(fallen.text(), direct.text())
            self.assertEqual(fallen.headers["x-fixpoint-generation"], direct.headers["x-fixpoint-generation"], stream)

    def test_a_request_that_is_wrong_is_not_sent_on(self):
        self.assert_error(self.ask("refused", "wrong"), 400)
        self.assertEqual(self.mock.stats()["requests"], 1)

    def test_a_long_wait_is_not_waited_for(self):
        answer = self.ask("patient", "no time")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["x-fixpoint-upstream"], "second")

    def test_no_fallback_after_the_first_event(self):
        answer = self.ask("broken", "half an answer", stream=True)
        self.assertIn("error", json.loads(answer.events()[-1]))
        self.assertEqual(self.mock.stats()["requests"], 1)


class OtherApi(GatewayTest):
    """The fallback speaks the other API."""

    @classmethod
    def config(cls):
        return {"upstreams": [{"name": "openai", "base_url": cls.mock.url, "api_key": "one",
                               "model_names": {"x": "mock-error-503-retryafterms-10"}},
                              {"name": "anthropic", "kind": "anthropic", "base_url": cls.mock.url.removesuffix("/v1"),
                               "api_key": "two", "model_names": {"*": "mock"}}],
                "routes": [{"model": "y", "upstream": "anthropic"},
                           {"model": "x", "upstream": "openai", "fallbacks": ["anthropic"]}]}

    def test_translated_for_the_fallback_only(self):
        for stream in (False, True):
            text = f"either {stream}"
            answer = chat(self.gateway.port, "x", text, temperature=0, seed=1, stream=stream)
            self.assertEqual(answer.status, 200, answer.body)
            self.assertTrue(answer.text().startswith("mock answer"))
            self.assertEqual(answer.headers["x-fixpoint-upstream"], "anthropic")
            self.assertEqual(answer.headers["x-fixpoint-dropped"], "seed")
            self.assertEqual(self.mock.stats()["last_headers"]["x-api-key"], "two")
            self.assertNotIn("authorization", self.mock.stats()["last_headers"])
            direct = chat(self.gateway.port, "y", text, temperature=0, seed=1, stream=stream)
            self.assertIn("hit", direct.headers["cache-status"])
            self.assertEqual(direct.headers["x-fixpoint-key"], answer.headers["x-fixpoint-key"])
            self.assertEqual(direct.text(), answer.text())

    def test_the_first_ones_error_is_told(self):
        refused = chat(self.gateway.port, "x", "n is not Anthropic's", n=2)  # the fallback cannot take it
        self.assert_error(refused, 503)


class Weights(GatewayTest):
    @classmethod
    def config(cls):
        return {"upstreams": [{"name": name, "base_url": cls.mock.url, "api_key": name} for name in ("a", "b")],
                "routes": [{"model": "*", "weights": {"a": 3, "b": 1}}]}

    def who(self, text, **fields):
        return chat(self.gateway.port, "mock", text, {"Cache-Control": "no-cache"}, **fields).headers[
            "x-fixpoint-upstream"]

    def test_what_is_stored_always_asks_the_same_one(self):
        chosen = {}
        for i in range(40):
            chosen[i] = self.who(f"sticky {i}", temperature=0)
        self.assertEqual(set(chosen.values()), {"a", "b"})
        self.assertEqual({i: self.who(f"sticky {i}", temperature=0) for i in range(40)}, chosen)

    def test_others_are_shared_by_weight(self):
        asked = [self.who(f"share {i}", temperature=1) for i in range(16)]
        self.assertEqual((asked.count("a"), asked.count("b")), (12, 4))
        self.assertNotIn("bb", "".join(asked))


class WeightsOfBothApis(GatewayTest):
    """Every request has an upstream that can take it."""

    @classmethod
    def config(cls):
        return {"upstreams": [{"name": "openai", "base_url": cls.mock.url, "api_key": "one"},
                              {"name": "anthropic", "kind": "anthropic", "base_url": cls.mock.url.removesuffix("/v1"),
                               "api_key": "two"}],
                "routes": [{"model": "mock-first", "upstream": "anthropic", "fallbacks": ["openai"]},
                           {"model": "mock-claude", "upstream": "anthropic"},
                           {"model": "*", "weights": {"openai": 1, "anthropic": 1}}]}

    def who(self, path, model="mock", **fields):
        answer = call(self.gateway.port, "POST", path, {"model": model, **fields}, {"Cache-Control": "no-cache"})
        self.assertEqual(answer.status, 200, answer.body)
        return answer.headers["x-fixpoint-upstream"]

    def test_one_that_can_take_it_is_asked(self):
        words = [{"role": "user", "content": "x"}]
        chat_path = "/v1/chat/completions"
        self.assertEqual({self.who(chat_path, messages=words, temperature=1) for _ in range(4)}, {"openai", "anthropic"})
        for path, fields, able in (("/v1/embeddings", {}, "openai"),
                                   ("/v1/completions", {"prompt": "x", "temperature": 1}, "openai"),
                                   ("/v1/messages/count_tokens", {"messages": words}, "anthropic"),
                                   (chat_path, {"messages": words, "temperature": 1.5}, "openai"),
                                   (chat_path, {"messages": words, "temperature": 0, "n": 2}, "openai")):
            with self.subTest(path=path, fields=fields):
                asked = {self.who(path, **{"input": f"{i}", **fields} if "embed" in path else fields) for i in range(8)}
                self.assertEqual(asked, {able})
        self.assertEqual(self.who(chat_path, "mock-first", messages=words, temperature=1.5), "openai")

    def test_nobody_can(self):
        refused = call(self.gateway.port, "POST", "/v1/embeddings", {"model": "mock-claude", "input": "x"})
        self.assert_error(refused, 400, "unsupported_endpoint")
        self.assert_error(chat(self.gateway.port, "mock-claude", "x", temperature=1.5), 400)


class WeightsWithOneDown(GatewayTest):
    @classmethod
    def config(cls):
        down = {"name": "b", "base_url": "http://127.0.0.1:9/v1", "breaker_failures": 1, "breaker_cooldown": "1h"}
        return {"upstreams": [{"name": "a", "base_url": cls.mock.url}, down],
                "routes": [{"model": "mock-warm", "upstream": "b", "fallbacks": ["a"]},
                           {"model": "*", "weights": {"a": 1, "b": 1}}]}

    def test_what_is_stored_is_answered_by_the_other(self):
        self.assertEqual(chat(self.gateway.port, "mock-warm", "opens the breaker").status, 200)
        keys = set()
        for i in range(20):
            first, second = (chat(self.gateway.port, "mock", f"one is down {i}", temperature=0) for _ in range(2))
            self.assertEqual((first.status, second.status), (200, 200), first.body)
            self.assertEqual(first.headers["x-fixpoint-upstream"], "a")
            self.assertIn("hit", second.headers["cache-status"])
            self.assertEqual(second.headers["x-fixpoint-key"], first.headers["x-fixpoint-key"])
            self.assertEqual(second.body, first.body)
            keys.add(first.headers["x-fixpoint-key"])
        self.assertEqual(len(keys), 20)


if __name__ == "__main__":
    unittest.main()
