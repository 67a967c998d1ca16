"""Inputs of the chat template golden files: whole conversations for the templates, one-line sources
for the constructs.
"""

SYSTEM = {"role": "system", "content": "  You answer briefly.\n"}
HELLO = {"role": "user", "content": "Hello, who are you?"}
REPLY = {"role": "assistant", "content": "  A test assistant. "}
AGAIN = {"role": "user", "content": 'Say "caf\u00e9" & <b>\U0001f600</b> again\\n\n\nplease.  '}

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a place,\nnow.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {
                    "type": "string",
                    "description": "A town's name, e.g. <Z\u00fcrich> & around",
                },
                "days": {"type": "integer", "minimum": 1, "default": 1},
                "unit": {"enum": ["C", "F"]},
                "at": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"x": {"type": "number"}, "y": {}},
                        "required": ["x"],
                    },
                },
            },
            "required": ["place"],
            "additionalProperties": False,
        },
        "strict": None,
    },
}
NOTHING = {"type": "function", "function": {"name": "nothing", "parameters": {}}}
BARE = {"name": "bare", "description": "", "parameters": {"type": "object", "properties": {}}}

CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            "function": {
                "name": "get_weather",
                "arguments": {"place": "Z\u00fcrich", "days": 2, "at": [{"x": 1.5}]},
            },
        }
    ],
}
TWO_CALLS = {
    "role": "assistant",
    "content": "<think>\nwhich one?\n</think>\n\nBoth.",
    "tool_calls": [
        {"function": {"name": "get_weather", "arguments": '{"place": "Oslo"}'}},
        {"name": "nothing", "arguments": {}},
    ],
}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "12.5 C, wind < 3"}
RESULT_2 = {"role": "tool", "content": "nothing at all"}
RESULT_OBJECT = {"role": "tool", "content": {"t": 12.5, "unit": "C", "ok": True, "note": None}}
THOUGHT = {"role": "assistant", "reasoning_content": "\nIt is cold.\n", "content": "Take a coat."}
PARTS = {
    "role": "user",
    "content": [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:,"}},
        {"image": "b"},
        "and this",
    ],
}


def case(name, messages, **inputs):
    return {"name": name, "messages": messages, **inputs}


CONVERSATIONS = {
    "chatml_default_system": [
        case("one_turn", [HELLO], add_generation_prompt=True),
        case("system", [SYSTEM, HELLO], add_generation_prompt=True),
        case("several_turns", [HELLO, REPLY, AGAIN]),
        case("system_later", [HELLO, SYSTEM, AGAIN], add_generation_prompt=True),
        case("no_messages", [], add_generation_prompt=True),
        case("content_is_null", [CALL]),
    ],
    "header_date": [
        case("today", [HELLO], add_generation_prompt=True),
        case(
            "date_given",
            [SYSTEM, HELLO, REPLY, AGAIN],
            add_generation_prompt=True,
            extra={"date_string": "26 Jul 2024"},
        ),
        case(
            "tools_in_user",
            [SYSTEM, HELLO, CALL, RESULT],
            tools=[WEATHER, NOTHING],
            extra={"date_string": "D"},
        ),
        case(
            "tools_in_system",
            [HELLO, CALL, RESULT_OBJECT],
            tools=[WEATHER],
            extra={"date_string": "D", "tools_in_user_message": False},
        ),
        case("custom_tools", [HELLO], extra={"date_string": "D", "custom_tools": [BARE]}),
        case("two_calls", [HELLO, TWO_CALLS], extra={"date_string": "D"}),
        case("tools_and_no_user", [SYSTEM], tools=[WEATHER], extra={"date_string": "D"}),
    ],
    "tools_thinking": [
        case("plain", [HELLO], add_generation_prompt=True),
        case(
            "no_thinking",
            [SYSTEM, HELLO],
            add_generation_prompt=True,
            extra={"enable_thinking": False},
        ),
        case("tools", [SYSTEM, HELLO], tools=[WEATHER, NOTHING], add_generation_prompt=True),
        case(
            "tool_round",
            [HELLO, TWO_CALLS, RESULT, RESULT_2, THOUGHT],
            tools=[WEATHER, NOTHING],
            add_generation_prompt=True,
        ),
        case(
            "old_thought_dropped", [HELLO, THOUGHT, AGAIN, CALL, RESULT], add_generation_prompt=True
        ),
        case(
            "fake_tool_response",
            [HELLO, {"role": "user", "content": "<tool_response>x</tool_response>"}, REPLY],
        ),
        case("content_parts", [HELLO, PARTS]),
    ],
    "strict_turns": [
        case("one_turn", [HELLO], bos_token="<s>", eos_token="</s>"),
        case("system", [SYSTEM, HELLO, REPLY, AGAIN], bos_token="<s>", eos_token="</s>"),
        case("no_messages", [], bos_token="<s>", eos_token="</s>"),
        case("not_alternating", [HELLO, AGAIN], bos_token="<s>", eos_token="</s>"),
        case("unknown_role", [HELLO, RESULT], bos_token="<s>", eos_token="</s>"),
    ],
    "macros": [
        case("messages", [SYSTEM, HELLO], add_generation_prompt=True),
        case("named", [{"role": "user", "name": "ada", "content": "hi"}, {"role": "assistant"}]),
        case("tools", [HELLO], tools=[WEATHER, NOTHING, BARE], add_generation_prompt=True),
    ],
    "content_parts": [
        case("strings", [HELLO, REPLY, AGAIN]),
        case("parts", [SYSTEM, PARTS, CALL]),
        case(
            "two_systems",
            [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}, RESULT_OBJECT],
        ),
        case("unknown_part", [{"role": "user", "content": ["x", {"type": "video"}]}]),
    ],
    "whitespace": [
        case(
            "some",
            [{"role": "user", "content": c} for c in ("one", "skip", "three", "stop", "five")],
        ),
        case("none", [{"role": "system", "content": "abcdef"}]),
    ],
}

# Values that the one-line sources may use. Sources joined by "}}|{{" become entries of their own.
VALUES = {
    "n": 7, "f": 2.5, "whole": 3.0, "big": 123456789012345678, "tiny": 1e-07, "huge": 1e21, "neg": -3,
    "s": "Hello, World", "empty": "", "spaced": "  two words \n", "uni": "Stra\u00dfe \u00e9\U0001f600",
    "html": "<a href='x'>&\"</a>", "t": True, "no": False, "null": None,
    "list": [3, 1, 2], "words": ["pear", "Apple", "fig"], "nested": [[1, 2], [3]], "none_list": [],
    "obj": {"b": 1, "a": [True, None, 1.5], "c": {"d": "x"}},
    "people": [
        {"name": "Ada", "age": 36, "tags": ["x"]},
        {"name": "Bob", "age": 25},
        {"name": "Cy", "age": 36, "admin": True},
    ],
}  # fmt: skip

SNIPPETS = """
{{ s }}|{{ n }}|{{ f }}|{{ whole }}|{{ big }}|{{ tiny }}|{{ huge }}|{{ t }}|{{ no }}|{{ null }}|{{ neg }}
{{ list }}|{{ words }}|{{ obj }}|{{ none_list }}|{{ {} }}|{{ (1, 2) }}|{{ (1,) }}|{{ [] }}
{{ ["it's", 'say "hi"', "both ' and \\"", 'tab\\t', 'back\\\\slash', 'é'] }}
{{ undefined_name }}|{{ obj.missing }}|{{ obj['missing'] }}|{{ list[10] }}|
{{ undefined_name.attribute }}
{{ undefined_name + 'x' }}
{{ undefined_name ~ 'x' }}|{{ undefined_name | length }}|{{ undefined_name | default('d') }}
{% for x in undefined_name %}{{ x }}{% else %}empty{% endfor %}
{{ missing_function() }}
{{ n + 1 }}|{{ n - 10 }}|{{ n * 2 }}|{{ n / 2 }}|{{ n // 2 }}|{{ n % 4 }}|{{ n ** 2 }}|{{ -n }}|{{ +n }}|{{ -7 // 2 }}|{{ -7 % 3 }}
{{ 1 / 4 }}|{{ 6 / 2 }}|{{ 7.0 // 2 }}|{{ 2 ** -1 }}|{{ 1e3 }}|{{ 0.1 + 0.2 }}|{{ 1_000 }}|{{ 100000000000000000000.0 }}
{{ 1 / 0 }}
{{ 'a' + 'b' }}|{{ 'a' * 3 }}|{{ [1] + [2] }}|{{ 'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1] }}
{{ 'a' + 1 }}
{{ 1 + 2 * 3 - 4 }}|{{ (1 + 2) * 3 }}|{{ 2 * 3 ~ 4 }}|{{ 10 - 2 - 3 }}|{{ not true == false }}|{{ 1 + 1 ~ 1 }}|{{ '1' + 1 ~ 1 }}|{{ -2 ** 2 }}|{{ 2 ** 3 ** 2 }}
{{ 'x' 'y' "z" }}|{{ "a\\nb" }}|{{ 'single \\' quote' }}|{{ "\\u00e9" }}
{{ 1 < 2 }}|{{ 1 <= 1 < 2 }}|{{ 'a' < 'b' }}|{{ 2 > 3 }}|{{ 1 == 1.0 }}|{{ '1' == 1 }}|{{ none == none }}|{{ [1] == [1] }}|{{ true == 1 }}|{{ 1 != 2 }}
{{ 1 < 'a' }}
{{ 'ell' in s }}|{{ 'z' not in s }}|{{ 3 in list }}|{{ 'a' in obj }}|{{ 'z' in obj }}|{{ none in [none] }}
{{ t and 'yes' }}|{{ no and 'yes' }}|{{ empty or 'alt' }}|{{ null or 0 or 'end' }}|{{ not empty }}|{{ not list }}|{{ 0 or none }}
{{ 'a' if t else 'b' }}|{{ 'a' if no else 'b' }}|[{{ 'a' if no }}]|{{ 'x' if no else 'y' if no else 'z' }}
{{ 'a' if no is true else 'b' ~ 'c' }}|{{ ('a' if t else 'b') ~ 'c' }}
{{ list[0] }}|{{ list[-1] }}|{{ words[1][0] }}|{{ obj.b }}|{{ obj['b'] }}|{{ obj.c.d }}|{{ obj["c"]["d"] }}|{{ people[0].name }}|{{ s[4] }}|{{ s[-1] }}
{{ list[1:] }}|{{ list[:-1] }}|{{ list[::-1] }}|{{ list[::2] }}|{{ s[:5] }}|{{ s[::-1] }}|{{ s[7:100] }}|{{ uni[5:] }}|{{ list[5:] }}|{{ s[-5:-2] }}|{{ list[2:0:-1] }}|{{ words[:n] }}
{{ uni | length }}|{{ list | length }}|{{ obj | length }}|{{ empty | length }}|{{ list | count }}
{{ n | length }}
{{ list.0 }}|{{ people.1.name }}
{{ n is defined }}|{{ nope is defined }}|{{ nope is undefined }}|{{ obj.nope is defined }}|{{ null is defined }}|{{ null is none }}|{{ n is not none }}|{{ not nope is defined }}
{{ s is string }}|{{ n is string }}|{{ obj is mapping }}|{{ list is mapping }}|{{ list is sequence }}|{{ obj is sequence }}|{{ s is sequence }}|{{ list is iterable }}|{{ s is iterable }}|{{ n is iterable }}|{{ obj is iterable }}
{{ n is number }}|{{ f is number }}|{{ t is number }}|{{ t is boolean }}|{{ n is integer }}|{{ f is float }}|{{ t is integer }}|{{ t is true }}|{{ no is false }}|{{ 1 is true }}|{{ s is callable }}
{{ n is odd }}|{{ n is even }}|{{ 9 is divisibleby 3 }}|{{ 9 is divisibleby(2) }}|{{ n is eq 7 }}|{{ n is equalto(8) }}|{{ n is gt 3 }}|{{ n is lt(3) }}|{{ n is ne 7 }}|{{ n is ge 7 }}|{{ n is le 6 }}|{{ 'a' is in ['a'] }}|{{ n is sameas n }}
{{ 'abc' is lower }}|{{ 'ABC' is upper }}|{{ 'Abc' is lower }}
{{ n is not odd }}|{{ n is not none and s is string }}|{{ n is defined and n > 3 }}
{{ spaced | trim }}|{{ '--x--' | trim('-') }}|{{ s | upper }}|{{ s | lower }}|{{ 'hello wORLD' | capitalize }}|{{ "it's a hello-world day" | title }}|{{ uni | upper }}
[{{ spaced | trim | length }}]|{{ '\\u00a0x\\u3000' | trim }}|
{{ s | replace('l', 'L') }}|{{ s | replace('o', '0', 1) }}|{{ 'aaa' | replace('aa', 'b') }}|{{ 'ab' | replace('', '-') }}
{{ nope | default('d') }}|{{ empty | default('d') }}|{{ empty | default('d', true) }}|{{ null | default('d') }}|{{ null | d('d', boolean=true) }}|[{{ nope | default }}]|{{ nope.x | default('no') if nope else 'guard' }}
{{ list | first }}|{{ list | last }}|{{ s | first }}|{{ s | last }}|[{{ none_list | first }}]|[{{ none_list | last }}]|{{ obj | first }}
{{ words | join }}|{{ words | join(', ') }}|{{ list | join('-') }}|{{ people | join(', ', attribute='name') }}|{{ s | join('.') }}|{{ [none, true, 1.5] | join(' ') }}
{{ list | sort }}|{{ list | sort(reverse=true) }}|{{ words | sort }}|{{ words | sort(case_sensitive=true) }}|{{ people | sort(attribute='age') | map(attribute='name') | list }}
{{ list | reverse | list }}|{{ 'abc' | reverse }}|{{ [1, 1, 2, 'a', 'A'] | unique | list }}
{{ list | sum }}|{{ people | sum(attribute='age') }}|{{ list | max }}|{{ list | min }}|{{ -3 | abs }}|{{ 2.567 | round(2) }}|{{ 2.5 | round }}|{{ 3.7 | round(0, 'floor') }}|{{ 2.1 | round(method='ceil') }}
{{ '42' | int + 1 }}|{{ 'x' | int }}|{{ 'x' | int(-1) }}|{{ '3.7' | int }}|{{ 3.9 | int }}|{{ '2.5' | float }}|{{ n | float }}|{{ n | string ~ '!' }}|{{ 'abc' | list }}|{{ obj | list }}|{{ null | string }}
{{ obj | items | list }}|{{ obj.items() | list }}|{{ obj.keys() | list }}|{{ obj.values() | list }}|{{ obj | dictsort }}|{{ obj.get('b') }}|{{ obj.get('z') }}|{{ obj.get('z', 'dflt') }}
{% for k, v in obj.items() %}{{ k }}={{ v }};{% endfor %}|{% for k, v in obj | dictsort %}{{ k }}={{ v }};{% endfor %}|{% for k, v in obj | items %}{{ loop.index }}{{ k }}{% endfor %}|{% for k in obj %}{{ k }}{% endfor %}
{{ people | map(attribute='name') | join(',') }}|{{ words | map('upper') | list }}|{{ words | map('replace', 'p', 'P') | join }}|{{ people | map(attribute='tags', default='-') | list }}|{{ words | map('length') | list }}
{{ people | selectattr('age', 'equalto', 36) | map(attribute='name') | list }}|{{ people | rejectattr('age', '==', 36) | map(attribute='name') | list }}|{{ people | selectattr('admin') | list | length }}|{{ people | selectattr('admin', 'defined') | list | length }}|{{ people | selectattr('age', 'gt', 30) | list | length }}|{{ people | selectattr('name', 'in', ['Bob', 'Cy']) | map(attribute='age') | list }}
{{ list | select('odd') | list }}|{{ list | reject('odd') | list }}|{{ [0, 1, '', 'a', none] | select | list }}|{{ [0, 1] | reject | list }}|{{ words | select('in', ['fig']) | list }}|{{ list | select('>', 1) | list }}
{{ people | groupby('age') | map('first') | list }}|{{ [1,2,3,4,5] | batch(2) | list }}|{{ [1,2,3] | slice(2) | list }}
{{ "a\\nb\\n\\nc" | indent }}|{{ "a\\nb" | indent(2, true) }}|{{ "a\\n\\nb" | indent(2, blank=true) }}|{{ "a\\nb" | indent(first=true, width=1) }}
{{ html | e }}|{{ html | escape }}|{{ html | safe }}|{{ html }}|{{ 'a b/c?&=é' | urlencode }}|{{ s | wordcount }}|{{ 'a long text here' | truncate(9, true, '…', 0) }}|{{ '%s has %d' | format('x', 3) }}|{{ '<b>x</b>' | striptags }}|{{ 'x' | center(5) }}|
{{ obj | tojson }}|{{ html | tojson }}|{{ uni | tojson }}|{{ null | tojson }}|{{ [t, f, whole, big, tiny, huge, neg, 1e16, 0.1, 100.0] | tojson }}|{{ {} | tojson }}|{{ [] | tojson }}|{{ "q\\"b\\\\n\\n\\t\\u0001\\u007f/" | tojson }}
{{ obj | tojson(indent=2) }}|{{ list | tojson(indent=4) }}|{{ [] | tojson(indent=2) }}|{{ {} | tojson(indent=2) }}|{{ obj | tojson(separators=(',', ':')) }}|{{ obj | tojson(sort_keys=true) }}|{{ uni | tojson(ensure_ascii=true) }}|{{ [[], {}, [1]] | tojson(indent=1) }}
{{ nope | tojson }}
{{ s.upper() }}|{{ s.lower() }}|{{ spaced.strip() }}|{{ spaced.lstrip() }}|{{ spaced.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcab'.lstrip('ba') }}|{{ s.startswith('He') }}|{{ s.endswith(('x', 'ld')) }}|{{ s.split(', ') }}|{{ ' a  b '.split() }}|{{ 'a,b,c'.split(',', 1) }}|{{ 'a,b,c'.rsplit(',', 1) }}|{{ s.replace('l', 'L', 1) }}|{{ s.title() }}|{{ 'abc'.capitalize() }}|{{ s.find('W') }}|{{ s.find('z') }}|{{ s.count('l') }}|{{ ','.join(words) }}|{{ 'a\\nb\\r\\nc'.splitlines() }}|{{ 'a{}b{}'.format(1, 'x') }}|{{ '12'.isdigit() }}|{{ 'ab'.isalpha() }}|{{ 'k: v'.partition(': ') }}|{{ 'abc'.removeprefix('a') }}|{{ 'abc'.removesuffix('c') }}|{{ s.index('W') }}
{{ list.index(1) }}|{{ list.count(3) }}|{{ s.nothing }}|
{{ list.append(4) }}
{{ s.nothing() }}
{{ range(3) | list }}|{{ range(1, 4) | list }}|{{ range(5, 0, -2) | list }}|{% for i in range(3) %}{{ i }}{% endfor %}|{{ dict(a=1, b='x') }}|{{ range(3) | length }}
{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}|{% for i in [1] %}{% set x = 3 %}{% endfor %}{{ x }}
{% set a, b = 1, 2 %}{{ b }}{{ a }}|{% set pair = (3, 4) %}{% set c, d = pair %}{{ c + d }}|{% set z = {'k': [1, 2], "m": none, 3: 'int'} %}{{ z.k[1] }}{{ z[3] }}
{% set ns = namespace(x=1, l=[]) %}{% for i in list %}{% set ns.x = ns.x + i %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.x }}{{ ns.l }}|{% set ns.new = 'n' %}{{ ns.new }}|{% set m = namespace({'k': 1}) %}{{ m.k }}|[{{ ns.absent }}]
{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}
{% for row in nested %}{% set outer = loop %}{% for x in row %}{{ outer.index }}.{{ loop.index }}={{ x }} {% endfor %}{% endfor %}|{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }}{% endfor %}|{% for x in list if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% endfor %}
{% for x in [1,2,3,4,5] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}|{% for x in [] %}a{% else %}b{% endfor %}|{% for c in 'abc' %}{{ c }}.{% endfor %}|{% for x in list %}{{ loop.changed(x > 2) }}{% endfor %}
{% for x in nested recursive %}[{{ loop(x) if x is iterable else x }}]{% endfor %}
{% if no %}a{% elif n > 5 %}b{% else %}c{% endif %}|{% if list and not none_list %}d{% endif %}|{% if nope %}e{% endif %}|{% if 0.0 %}f{% endif %}|{% if '0' %}g{% endif %}
{% macro m(a, b='x', c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 2) }}|{{ m(b=3, a=1) }}|{{ m() }}|{{ m('q') | upper }}|{{ m(1) ~ '!' }}
{% macro v() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ v(1, k=2) }}
{% macro m(a) %}{% set n = 99 %}{{ n + a }}{% endmacro %}{{ m(1) }}{{ n }}
{% macro w() %}<{{ caller() }}>{% endmacro %}{% call w() %}in{{ n }}side{% endcall %}
{% macro one(a) %}{{ a }}{% endmacro %}{{ one(1, 2) }}
{{ raise_exception('no: ' ~ n) }}
{{ raise_exception() }}
{{ obj.c.d.upper() }}|{{ (obj.nope or {}).x }}|{{ people | map(attribute='name') | first }}|{{ (people | last).name }}|{{ people[-1]['name'] | lower | first }}
{{ [1, 2, 3,] }}|{{ {'a': 1,} }}|{{ {'a': {'b': [1]}}.a.b[0] }}|{{ {1: 'x'}[1] }}|{{ 'a' if {} else 'b' }}|{{ (n) }}
{{ (1, 2)[0] }}|{% for x in 1, 2 %}{{ x }}{% endfor %}|{{ ((1)) }}|{{ [(1, 'a'), (2, 'b')] }}
{{ n | string | length }}|{{ n|string|length + 1 }}|{{ not n | string == '7' }}|{{ -neg | abs }}|{{ 'a' ~ 'b' | upper }}|{{ ('a' ~ 'b') | upper }}|{{ 1 + 2 | string | length }}
{{ no is false and null is none }}|{{ n in [1, 7] and not n in [2] }}|{{ 'a' in 'abc' == true }}|{{ n is defined == true }}
{{ true }}{{ True }}{{ false }}{{ False }}{{ none }}{{ None }}
{# a comment {{ n }} #}x{# {% if %} #}y
{% raw %}{{ n }}{% if %}{# x #}{% endraw %}|{{ '{{' }}{{ '%}' }}
{%- set x -%}  body {{ n }}  {%- endset -%}[{{ x }}]|{% set y | upper %}abc{% endset %}{{ y }}|{{ x | length }}
{% with %}{% set q = 1 %}{{ q }}{% endwith %}|[{{ q }}]|{% with q = 2, r = 3 %}{{ q + r }}{% endwith %}
{% generation %}x{% endgeneration %}{% filter upper | trim %} abc {% endfilter %}
{% autoescape true %}{{ html }}{% endautoescape %}
{% include 'other' %}
{% extends 'base' %}
{% import 'x' as y %}
{{ 1 +
{% if n %}unclosed
{% endif %}
{{ n | no_such_filter }}
{{ n is no_such_test }}
{% unknown_tag %}
{{ 'unclosed }}
{{ n }
{{ s.__class__ }}
{{ s is startingwith 'H' }}
{{ documents is defined }}|{{ documents is none }}|{{ tools is defined }}|{{ tools is none }}|{{ messages }}|{{ bos_token }}|{{ eos_token }}|{{ add_generation_prompt }}
{{ strftime_now('%Y') | length }}|{{ strftime_now('%d %b %Y') | length }}|{{ strftime_now('%H:%M:%S') | length }}|{{ strftime_now('100%%') }}|{{ strftime_now('%Y-%m-%d') | replace('-', '') | length }}
""".strip().split("\n")  # fmt: skip
