"""The token log of hosted models: log-probabilities, fingerprints, redaction, exports."""
import csv
import http.server
import io
import json
import unittest

from harness import Gateway, GatewayTest, call, chat
from helpers import Server, metric, wait_logged, wait_until


def show(gateway, answer):
    """The generation's record; None: not yet written."""
    done = gateway.cli("log", "show", answer.headers["x-fixpoint-generation"], "--json", check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


class Hosted(http.server.BaseHTTPRequestHandler):
    """An upstream whose fingerprint changes, and that may refuse log-probabilities."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.calls += 1
        if self.server.refuses_logprobs and body.get("logprobs"):
            status, answer = 400, {"error": {"message": "no logprobs here", "type": "invalid_request_error"}}
        else:
            status, answer = 200, {
                "id": "x", "object": "chat.completion", "created": 1, "model": body["model"],
                "system_fingerprint": self.server.fingerprint, "choices": [{
                    "index": 0, "message": {"role": "assistant", "content": f"call {self.server.calls}"},
                    "logprobs": None, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


class Backends(unittest.TestCase):
    def start(self, **log):
        self.server = Server(Hosted)
        self.server.fingerprint, self.server.calls, self.server.refuses_logprobs = "fp_one", 0, False
        self.addCleanup(self.server.stop)
        gateway = Gateway({"log": log, "upstreams": [
            {"name": "hosted", "base_url": f"http://127.0.0.1:{self.server.port}/v1", "api_key": "x"}],
            "routes": [{"model": "*", "upstream": "hosted"}]})
        self.addCleanup(gateway.stop)
        return gateway

    def test_a_changed_fingerprint_is_told(self):
        gateway = self.start()
        changes = lambda: metric(gateway.port, "fixpoint_fingerprint_changes_total", upstream="hosted")  # noqa: E731
        for _ in range(2):
            chat(gateway.port, "gpt", "x")
        self.assertFalse(changes())
        self.server.fingerprint = "fp_two"
        for _ in range(2):
            chat(gateway.port, "gpt", "x")
        self.assertEqual(changes(), 1)
        wait_logged(self, gateway, "the fingerprint of model 'gpt' at 'hosted' changed")

        def seen():
            text = gateway.cli("log", "fingerprints", "--json").stdout
            return text if "fp_two" in text else None
        self.assertIn("fp_one", wait_until(self, seen, "the log has both"))

    def test_a_new_epoch(self):
        gateway = self.start(fingerprint_epoch=True)

        def ask(text):
            return chat(gateway.port, "gpt", text, temperature=0)
        before = ask("epoch")
        self.assertIn("hit", ask("epoch").headers["cache-status"])
        self.server.fingerprint = "fp_two"
        ask("the gateway learns of it")
        after = ask("epoch")
        self.assertNotIn("hit", after.headers["cache-status"])
        self.assertNotEqual(after.text(), before.text())
        self.assertIn("hit", ask("epoch").headers["cache-status"])

    def test_without_epochs_answers_stay(self):
        gateway = self.start()
        before = chat(gateway.port, "gpt", "stays", temperature=0)
        self.server.fingerprint = "fp_two"
        chat(gateway.port, "gpt", "learns", temperature=0)
        self.assertEqual(chat(gateway.port, "gpt", "stays", temperature=0).body, before.body)

    def test_logprobs_that_are_refused(self):
        gateway = self.start(logprobs="inject")
        self.server.refuses_logprobs = True
        first = chat(gateway.port, "gpt", "x")
        self.assertEqual((first.status, self.server.calls), (200, 2))
        self.assertEqual(chat(gateway.port, "gpt", "y").status, 200)
        self.assertEqual(self.server.calls, 3)  # remembered
        shown = wait_until(self, lambda: show(gateway, first), "it is logged")
        self.assertTrue(shown["logprobs"].startswith("unavailable: the upstream refuses"), shown["logprobs"])
        asked = chat(gateway.port, "gpt", "z", logprobs=True)
        self.assertEqual(asked.status, 400)  # the client's own wish


class TokenLog(GatewayTest):
    @classmethod
    def config(cls):
        return {"log": {"logprobs": "inject", "top_logprobs": 3, "redact": ["body=[0-9a-f]+", "(?i)private"]},
                "upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "x"}],
                "routes": [{"model": "*", "upstream": "mock"}]}

    def record(self, answer):
        return wait_until(self, lambda: show(self.gateway, answer), "it is logged")

    def test_injected_and_taken_out(self):
        plain = chat(self.gateway.port, "mock", "inject")
        sent = json.loads(self.mock.stats()["last_body"])
        self.assertEqual((sent["logprobs"], sent["top_logprobs"]), (True, 3))
        self.assertIsNone(plain.json()["choices"][0]["logprobs"])
        streamed = chat(self.gateway.port, "mock", "inject", stream=True)
        self.assertNotIn(b"top_logprobs", streamed.body)
        self.assertTrue(all(choice["logprobs"] is None for chunk in streamed.chunks() for choice in chunk["choices"]))
        completion = call(self.gateway.port, "POST", "/v1/completions", {"model": "mock", "prompt": "inject"})
        self.assertIsNone(completion.json()["choices"][0]["logprobs"])
        for answer in (plain, streamed, completion):
            record = self.record(answer)
            self.assertEqual(record["logprobs"], "captured")
            self.assertEqual(len(record["tokens"]), 4)
            for token in record["tokens"]:
                self.assertEqual(len(token["top"]), 3)
                self.assertAlmostEqual(token["margin"], 0.75, 4)

    def test_injected_whatever_the_client_speaks(self):
        messages = {"model": "mock", "max_tokens": 50, "messages": [{"role": "user", "content": "inject"}]}
        for path, body in (("responses", {"model": "mock", "input": "inject"}), ("messages", messages)):
            answer = call(self.gateway.port, "POST", f"/v1/{path}", body)
            self.assertNotIn(b"top_logprobs", answer.body)
            self.assertEqual(self.record(answer)["logprobs"], "captured", path)
            streamed = call(self.gateway.port, "POST", f"/v1/{path}", {**body, "stream": True})
            self.assertNotIn(b"top_logprobs\":[{", streamed.body)
            self.assertNotIn(b"\"logprob\"", streamed.body)
            self.assertEqual(self.record(streamed)["logprobs"], "captured", path)

    def test_what_was_asked_for_stays(self):
        answer = chat(self.gateway.port, "mock", "asked", logprobs=True, top_logprobs=1)
        entries = answer.json()["choices"][0]["logprobs"]["content"]
        self.assertEqual([len(entry["top_logprobs"]) for entry in entries], [1] * 4)

    def test_a_stored_answer_has_none_either(self):
        for text, streams in (("stored plain", (False, False, True)), ("stored stream", (True, True, False))):
            for stream in streams:
                self.assertNotIn(b"top_logprobs", chat(self.gateway.port, "mock", text, temperature=0, stream=stream).body)
        again = chat(self.gateway.port, "mock", "stored plain", temperature=0, logprobs=True)
        self.assertNotIn("hit", again.headers["cache-status"])
        self.assertTrue(again.json()["choices"][0]["logprobs"]["content"])

    def test_redaction(self):
        answer = chat(self.gateway.port, "mock", "redact")
        self.assertIn("body=", answer.text())
        record = self.record(answer)
        redacted = [token for token in record["tokens"] if token.get("redacted")]
        self.assertEqual(len(redacted), 1)
        self.assertEqual(redacted[0]["bytes"], [])
        self.assertAlmostEqual(redacted[0]["margin"], 0.75, 4)
        self.assertNotIn("body=", json.dumps(record))

    def test_export(self):
        answers = [chat(self.gateway.port, "mock-fp-=1+1", f"export {i}") for i in range(2)]
        for answer in answers:
            self.record(answer)
        wanted = {answer.headers["x-fixpoint-generation"] for answer in answers}
        model = ("--model", "mock-fp-=1+1")
        lines = [json.loads(line) for line in self.gateway.cli("log", "export", *model).stdout.splitlines()]
        self.assertEqual({line["id"] for line in lines}, wanted)
        self.assertNotIn("tokens", lines[0])
        self.assertEqual(lines[0]["provider"], "mock")
        with_tokens = self.gateway.cli("log", "export", "--tokens", *model).stdout.splitlines()
        self.assertEqual([len(json.loads(line)["tokens"]) for line in with_tokens], [4, 4])
        rows = list(csv.DictReader(io.StringIO(self.gateway.cli("log", "export", "--format", "csv", *model).stdout)))
        self.assertEqual({row["id"] for row in rows}, wanted)
        self.assertEqual({row["completion_tokens"] for row in rows}, {"4"})
        tokens = list(csv.DictReader(io.StringIO(
            self.gateway.cli("log", "export", "--format", "csv", "--tokens", *model).stdout)))
        self.assertEqual(len(tokens), 8)
        self.assertEqual({row["generation"] for row in tokens}, wanted)
        self.assertTrue(all(float(row["logprob"]) < 0 for row in tokens))

    def test_margins_by_model(self):
        self.record(chat(self.gateway.port, "mock-margins", "margins"))
        report = self.gateway.cli("log", "margins", "--by", "model,route", "--model", "mock-margins", "--json").stdout
        self.assertIn("mock-margins", report)


class WithoutText(GatewayTest):
    @classmethod
    def config(cls):
        return {**super().config(), "log": {"logprobs": "inject", "text": "off"}}

    def test_numbers_alone(self):
        answer = chat(self.gateway.port, "mock", "no text")
        record = wait_until(self, lambda: show(self.gateway, answer), "it is logged")
        self.assertEqual(len(record["tokens"]), 4)
        for token in record["tokens"]:
            self.assertEqual([token["bytes"], *(top["bytes"] for top in token["top"])], [[]] * (1 + len(token["top"])))
            self.assertLess(token["logprob"], 0)


if __name__ == "__main__":
    unittest.main()
