"""The official OpenAI clients, unchanged, hold one scripted conversation with the gateway."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import BUILD, GatewayTest, tiny_model  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
# Pinned: a new release is met on purpose, not on a Monday morning. Node's own package carries a Node
# that the client asks for (22 or newer; Debian 12 has 18).
PYTHON_CLIENT = "openai==3.57.0"
NODE_CLIENTS = {"openai": "7.59.0", "node": "22"}


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)


def python_client():
    """The interpreter of an environment that has the client, or the reason why there is none."""
    python = BUILD / "clients" / "python" / "bin" / "python"
    if not python.exists():
        made = run(["/usr/bin/python3", "-m", "venv", str(python.parents[1])])
        if made.returncode != 0:
            return None, "python3-venv is not installed"
    got = run([str(python), "-m", "pip", "install", "--quiet", PYTHON_CLIENT])
    if got.returncode != 0:
        return None, f"pip cannot install {PYTHON_CLIENT} here: {got.stderr.strip().splitlines()[-1:]}"
    return str(python), None


def node_client():
    folder = BUILD / "clients" / "node"
    if shutil.which("npm") is None:
        return None, "npm is not installed"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"private": True, "type": "module", "dependencies": NODE_CLIENTS}))
    got = run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder)
    if got.returncode != 0:
        return None, f"npm cannot install {NODE_CLIENTS} here: {got.stderr.strip().splitlines()[-1:]}"
    shutil.copy(HERE / "conversation.mjs", folder / "conversation.mjs")
    return folder, None


class OpenAiClients(GatewayTest):
    @classmethod
    def config(cls):
        return {"models": [{"name": "tiny", "path": tiny_model(cls.folder)}],
                "upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "sk-upstream"}],
                "routes": [{"model": "tiny", "local": "tiny"}, {"model": "mock*", "upstream": "mock"}]}

    def check(self, command, **options):
        env = {**os.environ, "OPENAI_API_KEY": "sk-client", "NO_PROXY": "127.0.0.1",
               "OPENAI_BASE_URL": f"http://127.0.0.1:{self.gateway.port}/v1"}
        done = run(command, env=env, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.strip().splitlines()[-1], "conversation held")

    def test_python(self):
        python, reason = python_client()
        if reason:
            self.skipTest(reason)
        self.check([python, str(HERE / "conversation.py")])

    def test_node(self):
        folder, reason = node_client()
        if reason:
            self.skipTest(reason)
        self.check([str(folder / "node_modules" / ".bin" / "node"), "conversation.mjs"], cwd=folder)
