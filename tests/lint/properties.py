#!/usr/bin/env python3
"""rc::check() only returns whether a property holds: a GoogleTest that drops the result cannot fail."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
bare = [f"{path.relative_to(root)}:{number}: the result of rc::check() is dropped; write EXPECT_TRUE(rc::check(...))"
        for path in sorted((root / "tests").rglob("*.cpp"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.match(r"\s*rc::check\(", line)]
print("\n".join(bare) or "every property's result is looked at")
sys.exit(1 if bare else 0)
