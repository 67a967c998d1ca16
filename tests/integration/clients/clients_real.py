"""Real clients, unchanged and pinned, hold scripted conversations with the gateway."""
import json
import math
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))
import install  # noqa: E402
from harness import ROOT, GatewayTest, call  # noqa: E402

LOCAL = "fixpoint-tiny"
CONVERSATION_S = 120
TINY = ROOT / "local_engine" / "models" / "tiny"


class RealClients(GatewayTest):
    @classmethod
    def config(cls):
        root = cls.mock.url.removesuffix("/v1")
        once = {"api_key": "sk-upstream", "retries": 0, "breaker_failures": 0}  # retries are the clients' here
        return {"cache": {"store_length": True},  # a prompt that is scored by echo ends at its limit
                "models": [{"name": LOCAL, "path": str(TINY)}],
                "upstreams": [{"name": "mock", "base_url": cls.mock.url, **once},
                              {"name": "claude", "kind": "anthropic", "base_url": root, **once}],
                "routes": [{"model": LOCAL, "local": LOCAL}, {"model": "mock-claude*", "upstream": "claude"},
                           {"model": "mock*", "upstream": "mock"}]}

    def environment(self):
        root = f"http://127.0.0.1:{self.gateway.port}"
        return {**os.environ, "OPENAI_API_KEY": "sk-client", "OPENAI_BASE_URL": root + "/v1",
                "ANTHROPIC_API_KEY": "sk-client", "ANTHROPIC_BASE_URL": root, "NO_PROXY": "127.0.0.1",
                "FIXPOINT_MOCK": self.mock.url.removesuffix("/v1"), "FIXPOINT_LOCAL": LOCAL,
                # What clients would fetch or send of their own accord.
                "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1",
                "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}

    def run_client(self, command, **options):
        done = install.run(command, env={**self.environment(), **options.pop("env", {})},
                           timeout=CONVERSATION_S, **options)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        return done.stdout

    def hold(self, command, **options):
        self.assertEqual(self.run_client(command, **options).strip().splitlines()[-1], "conversation held")

    def python(self, script):
        python, reason = install.python("sdks")
        if reason:
            self.skipTest(reason)
        self.hold([python, str(HERE / script)])

    def node(self, script):
        folder, reason = install.node("sdks")
        if reason:
            self.skipTest(reason)
        for name in (script, "support.mjs"):  # modules are looked for beside the script
            shutil.copy(HERE / name, folder / name)
        self.hold([str(folder / "node_modules" / ".bin" / "node"), script], cwd=folder)

    def test_python_openai(self):
        self.python("python_openai.py")

    def test_python_anthropic(self):
        self.python("python_anthropic.py")

    def test_python_langchain(self):
        self.python("python_langchain.py")

    def test_python_litellm(self):
        self.python("python_litellm.py")

    def test_node_openai(self):
        self.node("node_openai.mjs")

    def test_node_anthropic(self):
        self.node("node_anthropic.mjs")

    def test_node_ai(self):
        self.node("node_ai.mjs")

    def test_promptfoo(self):
        folder, reason = install.node("promptfoo")
        if reason:
            self.skipTest(reason)
        with tempfile.TemporaryDirectory() as work:
            out = pathlib.Path(work) / "out.json"
            self.run_client([str(folder / "node_modules" / ".bin" / "node"),
                             str(folder / "node_modules" / "promptfoo" / "dist" / "src" / "entrypoint.js"), "eval",
                             "-c", str(HERE / "promptfoo.json"), "--no-cache", "--no-table", "--no-progress-bar",
                             "-o", str(out)], env={"PROMPTFOO_CONFIG_DIR": work}, cwd=work)
            stats = json.loads(out.read_text())["results"]["stats"]
        self.assertEqual((stats["successes"], stats["failures"], stats["errors"]), (8, 0, 0))

    def test_lm_eval(self):
        """Log-likelihoods of token ids, several prompts to a request, by echo; twice, the second from the cache."""
        python, reason = install.python("lm_eval")
        if reason:
            self.skipTest(reason)
        with tempfile.TemporaryDirectory() as work:
            data = pathlib.Path(work) / "capitals.jsonl"
            rows = [{"question": "Capital of France?", "choices": ["Paris", "Rome"], "answer": 0},
                    {"question": "Capital of Italy?", "choices": ["Paris", "Rome", "Oslo"], "answer": 1}]
            data.write_text("".join(json.dumps(row) + "\n" for row in rows))
            (pathlib.Path(work) / "task.yaml").write_text((HERE / "lm_eval_task.yaml").read_text().replace("DATA", str(data)))
            seen = []
            for turn in ("first", "second"):
                out = pathlib.Path(work) / turn
                arguments = f"model=mock,base_url=http://127.0.0.1:{self.gateway.port}/v1/completions,tokenizer={TINY},num_concurrent=2"
                self.run_client([python, "-m", "lm_eval", "run", "--model", "local-completions", "--model_args", arguments,
                                 "--batch_size", "3", "--tasks", "fixpoint_capitals", "--include_path", work,
                                 "--output_path", str(out), "--log_samples"], env={"HF_HOME": work}, cwd=work)
                lines = next(out.rglob("samples_*.jsonl")).read_text().splitlines()
                samples = sorted((json.loads(line) for line in lines), key=lambda sample: sample["doc_id"])
                seen.append([sample["resps"] for sample in samples])
                self.assertEqual([len(resps) for resps in seen[-1]], [2, 3])
            self.assertEqual(seen[0], seen[1])
            self.assertTrue(all(math.isfinite(float(one[0][0])) and float(one[0][0]) < 0 for resps in seen[0] for one in resps))
        self.assertEqual(self.mock.stats()["requests"], 2)  # five prompts in two requests, once

    def test_curl(self):
        if shutil.which("curl") is None:
            self.skipTest("curl is not installed")
        root = f"http://127.0.0.1:{self.gateway.port}"
        chat = json.dumps({"model": "mock", "messages": [{"role": "user", "content": "hi"}]})
        plain = ["curl", "-sS", "--fail-with-body", root + "/v1/chat/completions", "-d", chat]
        said = json.loads(self.run_client(plain))  # without -H: Content-Type is application/x-www-form-urlencoded
        self.assertTrue(said["choices"][0]["message"]["content"].startswith("mock answer"))
        for more in (["-H", "Content-Type: application/json"], ["--http2"], ["-H", "Expect: 100-continue"],
                     ["-H", "Transfer-Encoding: chunked"], ["--http1.0"], ["--compressed"]):
            self.assertIn("choices", json.loads(self.run_client([*plain, *more])), more)
        stream = json.dumps({**json.loads(chat), "stream": True})
        lines = self.run_client(["curl", "-sSN", root + "/v1/chat/completions", "-d", stream]).splitlines()
        self.assertEqual([line for line in lines if line][-1], "data: [DONE]")
        message = json.dumps({"model": "mock-claude", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})
        for key in ("x-api-key: sk-client", "Authorization: Bearer sk-client"):
            said = json.loads(self.run_client(["curl", "-sS", root + "/v1/messages", "-H", key, "-H", "anthropic-version: 2023-06-01",
                                               "-d", message]))
            self.assertEqual(said["type"], "message", said)
        models = [json.loads(self.run_client(["curl", "-sS", root + "/v1/models", *more]))
                  for more in ([], ["-H", "anthropic-version: 2023-06-01"])]
        self.assertIn(LOCAL, [model["id"] for model in models[0]["data"]])
        self.assertEqual(models[0]["object"], "list")
        self.assertTrue({"has_more", "first_id", "last_id"} <= set(models[1]), models[1])
        self.assertEqual({model["type"] for model in models[1]["data"]}, {"model"})
        left = install.run(["curl", "-sSN", "--max-time", "1", root + "/v1/chat/completions",
                            "-d", json.dumps({**json.loads(stream), "model": "mock-stream-400-50"})])
        self.assertEqual(left.returncode, 28, left.stderr)
        self.assertIn("data: ", left.stdout)
        self.assertEqual(call(self.gateway.port, "GET", "/healthz").status, 200)


if __name__ == "__main__":
    unittest.main()
