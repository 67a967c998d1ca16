#!/usr/bin/env python3
"""Dependencies between rooms point one way: reads every #include and fails on any other edge."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWED = {
    "kernels": {"kernels"},
    "local_engine": {"local_engine", "kernels"},
    "cache": {"cache"},
    "gateway": {"gateway", "cache", "local_engine"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def violations():
    for room, allowed in ALLOWED.items():
        for file in sorted((ROOT / room).rglob("*.[ch]pp")):
            for target in INCLUDE.findall(file.read_text()):
                other = target.split("/")[0]
                if "/" not in target or other not in ALLOWED:
                    yield f"{file.relative_to(ROOT)}: \"{target}\" is not a path from a room"
                elif other not in allowed:
                    yield f"{file.relative_to(ROOT)}: {room} may not use {other} (\"{target}\")"
                elif not (ROOT / target).exists():
                    yield f"{file.relative_to(ROOT)}: \"{target}\" does not exist"
                # cache/base is the foundation of the services: it knows none of them.
                elif str(file.relative_to(ROOT)).startswith("cache/base/") and not target.startswith("cache/base/"):
                    yield f"{file.relative_to(ROOT)}: cache/base may use cache/base only (\"{target}\")"


found = list(violations())
print("\n".join(found) or "dependencies between rooms point one way")
sys.exit(1 if found else 0)
