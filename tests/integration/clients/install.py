"""Installs the clients once, outside of the repository, and says why where that is not possible."""
import functools
import hashlib
import json
import os
import pathlib
import platform
import shutil
import subprocess

MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
# Pinned: a new release is met on purpose, not on a Monday morning.
PYTHON = {
    "sdks": ["openai==3.57.0", "anthropic==2.14.0", "langchain-openai==1.7.4", "litellm==1.110.2"],
    # transformers only for its tokenizers; neither drags torch in.
    "lm_eval": ["lm_eval[api]==0.4.13", "transformers==5.24.0"],
}
# The newest clients ask for Node 22 (Debian 12 has 18): the package "node" carries one.
NODE = {
    "sdks": {"openai": "7.59.0", "@anthropic-ai/sdk": "1.14.0", "ai": "7.0.173", "@ai-sdk/openai": "4.0.118",
             "zod": "4.6.7", "node": "22.23.3"},
    # Without its optional packages (700 MB); the one for its database depends on the machine.
    "promptfoo": {"promptfoo": "0.123.1", "node": "22.23.3", f"@libsql/linux-{MACHINE}-gnu": "0.5.29"},
}
PATIENCE_S = 600  # of an installation


def cache_folder():
    if "FIXPOINT_CLIENTS" in os.environ:
        return pathlib.Path(os.environ["FIXPOINT_CLIENTS"])
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "fixpoint-clients"


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **{"timeout": PATIENCE_S, **options})


def place(kind, name, wanted):
    """A folder for just these versions, and whether they are in it already."""
    digest = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:12]
    folder = cache_folder() / f"{kind}-{name}-{digest}"
    return folder, (folder / "complete").exists()


@functools.cache
def python(name):
    """(interpreter, None), or (None, the reason why there is none)."""
    folder, complete = place("python", name, PYTHON[name])
    if not complete:
        if run(["/usr/bin/python3", "-m", "venv", "--clear", str(folder)]).returncode != 0:
            return None, "python3-venv is not installed"
        got = run([str(folder / "bin" / "pip"), "install", "--quiet", *PYTHON[name]])
        if got.returncode != 0:
            return None, f"pip cannot install {PYTHON[name]} here: {got.stderr.strip().splitlines()[-1:]}"
        (folder / "complete").touch()
    return str(folder / "bin" / "python"), None


@functools.cache
def node(name):
    """(folder with node_modules, None), or (None, the reason why there is none)."""
    folder, complete = place("node", name, NODE[name])
    if not complete:
        if shutil.which("npm") is None:
            return None, "npm is not installed"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(json.dumps({"private": True, "type": "module", "dependencies": NODE[name]}))
        got = run(["npm", "install", "--omit=optional", "--silent", "--no-audit", "--no-fund"], cwd=folder)
        if got.returncode != 0:
            return None, f"npm cannot install {NODE[name]} here: {got.stderr.strip().splitlines()[-1:]}"
        (folder / "complete").touch()
    return folder, None
