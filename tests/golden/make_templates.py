#!/usr/bin/env python3
"""Writes templates/cases.json and snippets.json: what real Jinja renders for template_inputs.py.

    make_templates.py [--out tests/golden/templates]

Made with jinja2 3.1.6.
"""

import argparse
import json
import pathlib
import re

import jinja2

import chat_env
from template_inputs import CONVERSATIONS, SNIPPETS, VALUES


def outcome(source, case):
    """{"output": text}, {"raised": its words} or {"error": kind, "message": Jinja's words}."""
    inputs = {key: value for key, value in case.items() if key not in ("name", "extra", "source")}
    inputs = json.loads(
        json.dumps(inputs | case.get("extra", {}))
    )  # a template must not change the next case's input
    try:
        return {"output": chat_env.render(source, **inputs)}
    except chat_env.TemplateRaised as error:
        return {"raised": str(error)}
    except jinja2.TemplateSyntaxError as error:
        return {"error": "syntax", "message": str(error)}
    except jinja2.UndefinedError as error:
        return {"error": "undefined", "message": str(error)}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def write(path, head, key, entries):
    """One entry a line, so that a change shows in a diff."""
    about = {"made_by": "tests/golden/make_templates.py", "jinja2": jinja2.__version__} | head
    head = "".join(f'"{name}":{json.dumps(value, indent=1)},\n' for name, value in about.items())
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    path.write_text("{" + head + f'"{key}":[\n' + lines + "\n]}\n")
    print(f"{path}: {len(entries)} entries, {path.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "templates"
    )
    args = parser.parse_args()

    cases = []
    for template, conversations in CONVERSATIONS.items():
        source = (args.out / f"{template}.jinja").read_text()
        for case in conversations:
            entry = {"template": f"{template}.jinja"} | case
            cases.append(entry | outcome(source, case))
    write(
        args.out / "cases.json",
        {
            "inputs": "absent: tools, documents are null, tokens are empty, add_generation_prompt "
            "is false; extra holds further variables. A case has output, raised or error."
        },
        "cases",
        cases,
    )
    sources = [
        s
        for line in SNIPPETS
        for s in (re.split(r"(?<=}})\|(?={{)", line) if "{%" not in line else [line])
    ]
    snippets = [{"source": s} | outcome(s, {"messages": [], "extra": VALUES}) for s in sources]
    write(args.out / "snippets.json", {"values": VALUES}, "snippets", snippets)


if __name__ == "__main__":
    main()
