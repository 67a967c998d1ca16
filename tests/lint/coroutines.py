#!/usr/bin/python3
"""Checks the coroutine law: one co_await per statement, its operands are names.

GCC 12.2 miscompiles several ordinary forms without a warning: co_await in a condition whose body has
no local variable, in a conditional expression, and full-expressions that also build a capturing lambda
or an aggregate. This script refuses all of them, wherever they stand.

usage: coroutines.py [FOLDER...]      exit code 1 when a statement breaks the law
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["kernels", "local_engine", "cache", "gateway", "eval", "tests"]
SUFFIXES = {".cpp", ".hpp"}

RULES = [
    (re.compile(r"\?[^;]*\bco_await\b|\bco_await\b[^;]*\?"), "co_await in a conditional expression"),
    (re.compile(r"\bco_await\b[^;]*\["r"(?!\]|&\])[^\]]*\]\s*(\(|\{|mutable)"),
     "a capturing lambda in the expression of a co_await"),
    (re.compile(r"\bco_await\b[^;]*\{"), "a braced list or lambda in the expression of a co_await"),
    (re.compile(r"\{[^;{}]*\bco_await\b"), "co_await inside a braced list"),
    (re.compile(r"\bco_await\b.*\bco_await\b"), "two co_await in one statement"),
    (re.compile(r"(&&|\|\|).*\bco_await\b|\bco_await\b.*(&&|\|\|)"),
     "co_await under a logical operator"),
]


def without_comments_and_literals(text):
    """The same text with comments and literals blanked; line numbers stay."""
    def blank(match):
        token = match.group(0)
        if token.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]
    pattern = (r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"'
               r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'")
    return re.sub(pattern, blank, text, flags=re.S)


def statements(text):
    """(line number, statement) for each piece that has a co_await. Statements end at ';' and at braces
    outside of parentheses; a block's opening brace ends the statement before it."""
    start = depth = 0
    for at, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        ends = (char == ";" and depth == 0) or (
            depth == 0 and char in "{}" and (char == "}" or opens_block(text, start, at)))
        if ends:
            piece = text[start:at + 1 if char == ";" else at]
            if "co_await" in piece:
                lead = len(piece) - len(piece.lstrip())
                yield text.count("\n", 0, start + lead) + 1, " ".join(piece.split())
            start = at + 1


def split_condition(statement):
    """("if (...)" or the like with its condition, the rest). The condition is "" when there is none."""
    found = re.match(r"(else\s+)?(if|while|switch|for)\b[^(]*\(", statement)
    if not found:
        return "", statement
    depth = 1
    at = found.end()
    while at < len(statement) and depth > 0:
        depth += {"(": 1, ")": -1}.get(statement[at], 0)
        at += 1
    return statement[:at], statement[at:]


def opens_block(text, start, at):
    """Whether the brace opens a block rather than a braced list."""
    before = text[start:at].rstrip()
    if "co_await" in before and not re.match(r"\s*(if|while|for|switch)\b", text[start:at]):
        return False
    return before == "" or before.endswith((")", "else", "try", "do", ">", ":", "const", "noexcept",
                                            "override", "final", "mutable", "]")) or bool(
        re.match(r"\s*(struct|class|namespace|enum|union|extern|template)\b", text[start:at]))


def check(path):
    text = without_comments_and_literals(path.read_text(encoding="utf-8"))
    for line, statement in statements(text):
        condition, rest = split_condition(statement)
        # "for (auto& x : co_await list())" awaits once, before the loop, and is fine.
        ranged = condition.startswith("for") and ";" not in condition
        reasons = [why for pattern, why in RULES if pattern.search(rest)]
        if "co_await" in condition and not ranged:
            reasons.insert(0, "co_await in a condition")
        if reasons:
            yield f"{path}:{line}: {reasons[0]}: {statement[:100]}"


def main(arguments):
    roots = [pathlib.Path(a) for a in arguments] or [ROOT / f for f in FOLDERS]
    files = sorted(p for r in roots for p in ([r] if r.is_file() else r.rglob("*"))
                   if p.suffix in SUFFIXES)
    problems = [problem for path in files for problem in check(path)]
    print("\n".join(problems) if problems else f"coroutine law: {len(files)} files keep it")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
