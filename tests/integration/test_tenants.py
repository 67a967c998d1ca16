"""Gateway keys: who may ask, for what and how much of it; what no tenant sees of another."""
import json
import pathlib
import socket
import subprocess
import tempfile
import unittest

from harness import PATIENCE_S, Gateway, GatewayTest, MockUpstream, call, chat, in_parallel, program, tiny_model
from helpers import wait_logged, wait_until

ADMIN = {"Authorization": "Bearer the-admin-token-of-16"}


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def message(port, key_header, model="mock", text="Hello", **fields):
    body = {"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": text}], **fields}
    return call(port, "POST", "/v1/messages", body, {"anthropic-version": "2023-06-01", **key_header})


def reaches(address, port):
    try:
        socket.create_connection((address, port), PATIENCE_S).close()
        return True
    except ConnectionRefusedError:
        return False


class WithKeys(GatewayTest):
    """The gateway has one key from the start, so that nothing is open to everybody."""

    @classmethod
    def config(cls):
        return {"admin": {"token": "the-admin-token-of-16"},
                "prices": [{"model": name, "input": 1000, "output": 2000} for name in ("mock", "mock-alias")],
                "models": [{"name": "tiny", "path": tiny_model(cls.folder), "threads": 1}],
                "upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "sk-upstream"},
                              {"name": "claude", "kind": "anthropic", "base_url": cls.mock.url.removesuffix("/v1"),
                               "api_key": "sk-claude"},
                              {"name": "open", "base_url": cls.mock.url},
                              {"name": "silent", "base_url": cls.mock.url, "api_key": "x", "ask_for_usage": False},
                              {"name": "alias", "base_url": cls.mock.url, "api_key": "x", "model_names": {"alias": "mock-alias"}}],
                "routes": [{"model": "tiny", "local": "tiny"}, {"model": "mock-claude*", "upstream": "claude"},
                           {"model": "mock-open", "upstream": "open"}, {"model": "mock-silent*", "upstream": "silent"},
                           {"model": "alias", "upstream": "alias"}, {"model": "mock-exact", "upstream": "mock"},
                           {"model": "mock*", "upstream": "mock"}]}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.everything = cls.create()

    @classmethod
    def create(cls, *limits, name="test"):
        return json.loads(cls.gateway.cli("keys", "create", "--name", name, "--json", *limits).stdout)

    def ask(self, key, text="Hello", model="mock", **fields):
        return chat(self.gateway.port, model, text, bearer(key["secret"]), **fields)

    def admin(self, method, path, body=None):
        answer = call(self.gateway.port, method, f"/admin/{path}", body, ADMIN)
        self.assertLess(answer.status, 300, answer.body)
        return answer.json()

    def usage(self, key):
        return self.admin("GET", f"keys/{key['id']}/usage")["data"][0]


class Authentication(WithKeys):
    def test_both_sdks_headers(self):
        secret = self.everything["secret"]
        for header in (bearer(secret), {"x-api-key": secret}, {"Authorization": f"bearer {secret}"}):
            self.assertEqual(chat(self.gateway.port, "mock", "x", header).status, 200, header)
            self.assertEqual(message(self.gateway.port, header, "mock-claude").status, 200, header)
            self.assertEqual(call(self.gateway.port, "GET", "/v1/models", headers=header).status, 200)

    def test_openai_error(self):
        for headers in ({}, bearer("sk-wrong"), bearer(self.everything["secret"][:-1]), {"x-api-key": "nope"},
                        {"Authorization": f"Basic {self.everything['secret']}"}):
            answer = chat(self.gateway.port, "mock", "x", headers)
            error = self.assert_error(answer, 401, "invalid_api_key")
            self.assertEqual(error["type"], "invalid_request_error")
            self.assertIn("x-request-id", answer.headers)
        self.assert_error(call(self.gateway.port, "GET", "/v1/models"), 401, "invalid_api_key")
        self.assertEqual(self.mock.stats()["requests"], 0)

    def test_no_body_is_read_without_a_key(self):
        for path in ("/v1/chat/completions", "/admin/cache/purge", "/unknown"):
            with socket.create_connection(("127.0.0.1", self.gateway.port), PATIENCE_S) as client:
                client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n"
                               "Expect: 100-continue\r\n\r\n{".encode())
                self.assertIn(client.recv(12), (b"HTTP/1.1 401", b"HTTP/1.1 404"), path)

    def test_anthropic_error(self):
        answer = message(self.gateway.port, {"x-api-key": "sk-wrong"}, "mock-claude")
        self.assertEqual(answer.status, 401)
        body = answer.json()
        self.assertEqual((body["type"], body["error"]["type"]), ("error", "authentication_error"))
        self.assertEqual(body["request_id"], answer.headers["request-id"])

    def test_what_needs_no_key(self):
        for path in ("/healthz", "/readyz", "/metrics"):
            self.assertEqual(call(self.gateway.port, "GET", path).status, 200)

    def test_the_key_stays_here(self):
        secret = self.everything["secret"]
        for header in (bearer(secret), {"x-api-key": secret}):
            for ask, model in ((chat, "mock"), (chat, "mock-open"), (chat, "mock-claude"), (message, "mock-claude")):
                if ask is chat:
                    answer = chat(self.gateway.port, model, "no secrets", header)
                else:
                    answer = message(self.gateway.port, header, model)
                self.assertEqual(answer.status, 200, answer.body)
                stats = self.mock.stats()
                self.assertEqual(stats["requests"] > 0, True)
                self.assertNotIn(secret, json.dumps(stats))
                if model == "mock-open":
                    self.assertNotIn("authorization", stats["last_headers"])
                    self.assertNotIn("x-api-key", stats["last_headers"])

    def test_only_a_digest_is_kept(self):
        data = pathlib.Path(self.gateway.data_dir)
        secret = self.everything["secret"].encode()
        for file in data.glob("*"):
            self.assertNotIn(secret, file.read_bytes(), file)
        self.assertNotIn(self.everything["secret"], self.gateway.log())
        self.assertEqual((data / "keys.db").stat().st_mode & 0o077, 0)

    def test_revoked_at_once(self):
        by_cli, by_api = self.create(), self.create()
        self.assertEqual(self.ask(by_cli).status, 200)
        self.gateway.cli("keys", "revoke", by_cli["id"])
        self.assert_error(self.ask(by_cli), 401, "invalid_api_key")
        self.admin("POST", f"keys/{by_api['id']}/revoke")
        self.assert_error(self.ask(by_api), 401, "invalid_api_key")
        listed = json.loads(self.gateway.cli("keys", "list", "--json").stdout)["data"]
        self.assertEqual({key["id"] for key in listed if key["revoked_ms"]} & {by_cli["id"], by_api["id"]},
                         {by_cli["id"], by_api["id"]})
        self.assertEqual(self.gateway.cli("keys", "revoke", "key_000000000000", check=False).returncode, 3)

    def test_a_running_stream_outlives_its_key(self):
        key = self.create()

        def do(i):
            if i == 0:
                return self.ask(key, "long", "mock-stream-10-80", stream=True)
            wait_until(self, lambda: self.mock.stats()["by_model"].get("mock-stream-10-80"), "it streams")
            self.gateway.cli("keys", "revoke", key["id"])
            return self.ask(key)
        stream, after = in_parallel(2, do)
        self.assertEqual(after.status, 401)
        self.assertEqual(stream.events()[-1], "[DONE]")


class Limits(WithKeys):
    def assert_limited(self, answer, what):
        error = self.assert_error(answer, 429, "rate_limit_exceeded")
        self.assertEqual(error["type"], what)
        self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        self.assertGreater(int(answer.headers["retry-after-ms"]), 0)
        self.assertEqual(answer.headers[f"x-ratelimit-remaining-{what}"], "0")

    def test_allowed_models(self):
        key = self.create("--models", "mock-exact,mock-fp-*")
        for model in ("mock-exact", "mock-fp-a"):
            self.assertEqual(self.ask(key, model=model).status, 200)
        error = self.assert_error(self.ask(key), 403, "permission_denied", "model")
        self.assertIn("'mock'", error["message"])
        refused = message(self.gateway.port, bearer(key["secret"]), "mock-claude")
        self.assertEqual((refused.status, refused.json()["error"]["type"]), (403, "permission_error"))
        models = call(self.gateway.port, "GET", "/v1/models", headers=bearer(key["secret"])).json()["data"]
        self.assertEqual([model["id"] for model in models], ["mock-exact"])
        self.assertEqual(call(self.gateway.port, "GET", "/v1/models/mock-open", headers=bearer(key["secret"])).status, 404)

    def test_requests_per_minute(self):
        key = self.create("--rpm", "2")
        first, second = self.ask(key), self.ask(key)
        self.assertEqual((first.status, second.status), (200, 200))
        self.assertEqual(first.headers["x-ratelimit-limit-requests"], "2")
        self.assertEqual(first.headers["x-ratelimit-remaining-requests"], "1")
        self.assertEqual(second.headers["x-ratelimit-remaining-requests"], "0")
        self.assertIn("x-ratelimit-reset-requests", second.headers)
        self.mock.reset()
        self.assert_limited(self.ask(key), "requests")
        refused = message(self.gateway.port, bearer(key["secret"]), "mock-claude")
        self.assertEqual((refused.status, refused.json()["error"]["type"]), (429, "rate_limit_error"))
        self.assertEqual(self.mock.stats()["requests"], 0)
        self.assertEqual(self.ask(self.everything).status, 200)  # others have limits of their own

    def test_exactly_so_many_at_once(self):
        key = self.create("--rpm", "5")
        answers = in_parallel(20, lambda i: self.ask(key, f"at once {i}"))
        self.assertEqual(sorted(answer.status for answer in answers), [200] * 5 + [429] * 15)
        self.assertEqual(self.usage(key)["requests"], 5)

    def test_the_local_engine_is_charged_too(self):
        key = self.create("--monthly-tokens", "5")
        answer = self.ask(key, model="tiny", max_tokens=8)
        self.assertEqual(answer.status, 200, answer.body)
        used = self.usage(key)
        self.assertEqual(used["prompt_tokens"] + used["completion_tokens"], answer.json()["usage"]["total_tokens"])
        self.assert_error(self.ask(key, model="tiny"), 429, "insufficient_quota")

    def test_what_was_refused_costs_nothing(self):
        key = self.create()
        for model in ("mock-error-500", "mock-error-400"):
            self.assertGreaterEqual(self.ask(key, model=model).status, 400)
        used = [month["completion_tokens"] for month in self.admin("GET", f"keys/{key['id']}/usage")["data"]]
        self.assertEqual(sum(used), 0)

    def test_the_upstreams_limits_are_not_the_tenants(self):
        for answer in (self.ask(self.everything), self.ask(self.everything, stream=True),
                       self.ask(self.everything, model="mock-error-429"),
                       message(self.gateway.port, bearer(self.everything["secret"]), "mock-claude")):
            self.assertFalse([name for name in answer.headers if "ratelimit" in name])

    def test_tokens_per_minute(self):
        key = self.create("--tpm", "10")
        first = self.ask(key)
        self.assertEqual(first.status, 200)
        self.assertEqual(first.headers["x-ratelimit-limit-tokens"], "10")
        self.assertGreater(first.json()["usage"]["total_tokens"], 10)
        self.assert_limited(self.ask(key), "tokens")

    def test_a_months_tokens(self):
        key = self.create("--monthly-tokens", "5")
        self.assertEqual(self.ask(key).status, 200)
        spent = self.ask(key)
        self.assert_error(spent, 429, "insufficient_quota")
        self.assertEqual(spent.headers["x-should-retry"], "false")
        self.admin("PATCH", f"keys/{key['id']}", {"monthly_tokens": 100000})
        self.assertEqual(self.ask(key).status, 200)

    def test_a_months_money(self):
        key = self.create("--monthly-usd", "0.01")
        first = self.ask(key)
        tokens = first.json()["usage"]
        cost = (tokens["prompt_tokens"] * 1000 + tokens["completion_tokens"] * 2000) / 1e6
        self.assertAlmostEqual(float(first.headers["x-fixpoint-cost"]), cost, 6)
        self.assertAlmostEqual(self.usage(key)["cost_usd"], cost, 6)
        self.assert_error(self.ask(key), 429, "insufficient_quota")

    def test_no_budget_in_money_without_a_price(self):
        rich, other = self.create("--monthly-usd", "100"), self.create("--monthly-tokens", "100000")
        self.assert_error(self.ask(rich, model="mock-free"), 403, "no_price", "model")
        answer = self.ask(other, model="mock-free")
        self.assertEqual(answer.status, 200)
        self.assertNotIn("x-fixpoint-cost", answer.headers)
        self.assertGreater(float(self.ask(rich, model="alias").headers["x-fixpoint-cost"]), 0)  # the upstream's name has one

    def test_answers_without_usage_are_estimated(self):
        key = self.create()
        self.assertEqual(self.ask(key, "four letters each " * 10, "mock-silent-big-4000", stream=True).events()[-1], "[DONE]")
        used = self.usage(key)
        self.assertGreaterEqual(used["completion_tokens"], 1000)
        self.assertGreaterEqual(used["prompt_tokens"], 45)
        wait_logged(self, self.gateway, "upstream 'silent' answers without usage")

    def test_a_stream_that_was_cut_is_charged_for_its_text(self):
        key = self.create()
        answer = message(self.gateway.port, bearer(key["secret"]), "mock-claude-big-8000-cut-9150", stream=True)
        self.assertIn("error", answer.body.decode())
        self.assertGreaterEqual(self.usage(key)["completion_tokens"], 500)

    def test_what_is_generated_later_cannot_be_counted(self):
        limited, free = self.create("--tpm", "100000"), self.create("--rpm", "100")
        body = {"model": "mock", "input": "x", "background": True}
        refused = call(self.gateway.port, "POST", "/v1/responses", body, bearer(limited["secret"]))
        self.assert_error(refused, 400, "unsupported_parameter", "background")
        self.assertEqual(call(self.gateway.port, "POST", "/v1/responses", body, bearer(free["secret"])).status, 200)

    def test_streams_are_charged_too(self):
        key = self.create("--monthly-tokens", "5")
        self.assertEqual(self.ask(key, stream=True).events()[-1], "[DONE]")
        self.assert_error(self.ask(key), 429, "insufficient_quota")


class Answers(WithKeys):
    def test_no_answer_is_shared(self):
        one, other = self.create(name="same name"), self.create(name="same name")
        first, second = (self.ask(key, "mine", temperature=0) for key in (one, other))
        self.assertNotEqual(first.headers["x-fixpoint-key"], second.headers["x-fixpoint-key"])
        self.assertNotEqual(first.text(), second.text())
        for key, mine in ((one, first), (other, second)):
            again = self.ask(key, "mine", temperature=0)
            self.assertIn("hit", again.headers["cache-status"])
            self.assertEqual(again.body, mine.body)
        self.assertEqual(self.mock.stats()["requests"], 2)

    def test_a_namespace_is_shared(self):
        one, other = (self.create("--namespace", "team-shared") for _ in range(2))
        first, second = (self.ask(key, "ours", temperature=0) for key in (one, other))
        self.assertEqual(first.headers["x-fixpoint-key"], second.headers["x-fixpoint-key"])
        self.assertIn("hit", second.headers["cache-status"])

    def test_hits_cost_nothing(self):
        key = self.create()
        first = self.ask(key, "once", temperature=0)
        after_miss = self.usage(key)
        self.assertEqual(after_miss["prompt_tokens"] + after_miss["completion_tokens"],
                         first.json()["usage"]["total_tokens"])
        hit = self.ask(key, "once", temperature=0)
        self.assertIn("hit", hit.headers["cache-status"])
        self.assertNotIn("x-fixpoint-cost", hit.headers)
        self.assertEqual(self.usage(key), {**after_miss, "requests": 2})
        listed = json.loads(self.gateway.cli("keys", "usage", key["id"], "--json").stdout)
        self.assertEqual(listed["data"][0]["requests"], 2)

    def test_purge_by_tenant(self):
        one, other = self.create("--namespace", "purged"), self.create("--namespace", "kept")
        for key in (one, other):
            for text in ("a", "b"):
                self.ask(key, text, temperature=0)
        self.assertEqual(self.admin("POST", "cache/purge", {"tenant": "purged"}), {"removed": 2})
        self.assertIn("miss", self.ask(one, "a", temperature=0).headers["cache-status"])
        self.assertIn("hit", self.ask(other, "a", temperature=0).headers["cache-status"])


class Admin(WithKeys):
    def test_its_own_token(self):
        for headers in ({}, bearer("wrong"), bearer(self.everything["secret"]), {"x-api-key": "the-admin-token-of-16"}):
            for method, path, body in (("GET", "keys", None), ("POST", "keys", {"name": "x"}),
                                       ("POST", "cache/purge", {})):
                answer = call(self.gateway.port, method, f"/admin/{path}", body, headers)
                self.assert_error(answer, 401, "invalid_admin_token")

    def test_a_keys_life(self):
        made = self.admin("POST", "keys", {"name": "by hand", "requests_per_minute": 1})
        self.assertEqual(self.ask(made).status, 200)
        self.assert_error(self.ask(made), 429)
        changed = self.admin("PATCH", f"keys/{made['id']}", {"requests_per_minute": None})
        self.assertIsNone(changed["requests_per_minute"])
        self.assertEqual(self.ask(made).status, 200)
        listed = [key for key in self.admin("GET", "keys")["data"] if key["id"] == made["id"]]
        self.assertEqual(listed[0]["usage"]["requests"], 2)
        self.assertNotIn(made["secret"], json.dumps(listed))
        self.admin("POST", f"keys/{made['id']}/revoke")
        self.assert_error(self.ask(made), 401)

    def test_what_is_wrong_is_named(self):
        for body, word in (({}, "name"), ({"name": "x", "rpm": 3}, "rpm"), ({"name": "x", "monthly_usd": -1}, "monthly_usd"),
                           ({"name": "x", "requests_per_minute": 0}, "requests_per_minute")):
            answer = call(self.gateway.port, "POST", "/admin/keys", body, ADMIN)
            self.assertIn(word, self.assert_error(answer, 400)["message"])
        self.assert_error(call(self.gateway.port, "POST", "/admin/keys/key_000000000000/revoke", {}, ADMIN), 404)
        self.assert_error(call(self.gateway.port, "GET", "/admin/nothing", None, ADMIN), 404)


class Start(unittest.TestCase):
    """On every address, but only with keys."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fixpoint-test-")
        self.addCleanup(folder.cleanup)
        self.data = folder.name
        self.mock = MockUpstream()
        self.addCleanup(self.mock.stop)

    def start(self):
        gateway = Gateway({"server": {"listen": "0.0.0.0:0"}, "upstreams": [{"name": "mock", "base_url": self.mock.url}],
                           "routes": [{"model": "*", "upstream": "mock"}]}, self.data)
        self.addCleanup(gateway.stop)
        return gateway

    def create(self):
        done = subprocess.run([program("fixpoint"), "keys", "create", "--name", "first", "--data-dir", self.data, "--json"],
                              capture_output=True, text=True, timeout=PATIENCE_S, cwd=self.data,
                              env={"HOME": self.data, "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["secret"]

    def test_without_keys_on_this_machine_only(self):
        gateway = self.start()
        wait_logged(self, gateway, "listening on 127.0.0.1 ")
        wait_logged(self, gateway, "fixpoint keys create")
        self.assertFalse(reaches("127.0.0.2", gateway.port))
        self.assertEqual(chat(gateway.port, "mock").status, 200)

    def test_with_a_key_on_all_addresses(self):
        secret = self.create()  # while no gateway runs
        gateway = self.start()
        wait_logged(self, gateway, "listening on 0.0.0.0 ")
        self.assertTrue(reaches("127.0.0.2", gateway.port))
        self.assertEqual(chat(gateway.port, "mock").status, 401)
        self.assertEqual(chat(gateway.port, "mock", "x", bearer(secret)).status, 200)

    def test_the_first_key_closes_a_running_gateway(self):
        gateway = self.start()
        self.assertEqual(chat(gateway.port, "mock").status, 200)
        secret = self.create()
        self.assertEqual(chat(gateway.port, "mock").status, 401)
        self.assertEqual(chat(gateway.port, "mock", "x", bearer(secret)).status, 200)
        gateway.process.terminate()
        gateway.process.wait(PATIENCE_S)
        again = self.start()
        self.assertEqual(chat(again.port, "mock", "x", bearer(secret)).status, 200)


if __name__ == "__main__":
    unittest.main()
