"""Jinja set up as `transformers` sets it up for chat templates (checked against transformers
5.24.0).
"""

import datetime
import json

import jinja2
from jinja2 import ext, nodes, sandbox


class TransparentGeneration(ext.Extension):
    """{% generation %} marks text for training; when rendering it prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_print"), [], [], body).set_lineno(line)

    def _print(self, caller):
        return caller()


class TemplateRaised(jinja2.TemplateError):
    """A template called raise_exception."""


def raise_exception(message):
    raise TemplateRaised(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def environment():
    env = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[TransparentGeneration, ext.loopcontrols]
    )
    env.filters["tojson"] = to_json  # Jinja's own escapes <, >, & and ' for HTML
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return env


def render(
    source, messages, tools=None, add_generation_prompt=False, bos_token="", eos_token="", **extra
):
    """Absent tools and documents are defined and None, as apply_chat_template passes them."""
    return (
        environment()
        .from_string(source)
        .render(
            messages=messages,
            tools=tools,
            documents=None,
            add_generation_prompt=add_generation_prompt,
            bos_token=bos_token,
            eos_token=eos_token,
            **extra,
        )
    )
