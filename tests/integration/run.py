#!/usr/bin/env python3
"""Runs the integration tests against one build, and closes with a line that counts them."""
import argparse
import os
import pathlib
import sys
import unittest

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--build", default="build/ci", help="folder of the build under test")
parser.add_argument("--clients", action="store_true", help="also the real clients, installed from PyPI and npm")
parser.add_argument("-k", dest="pattern", help="only tests whose name contains this")
arguments = parser.parse_args()

here = pathlib.Path(__file__).resolve().parent
os.environ["FIXPOINT_BUILD"] = str(pathlib.Path(arguments.build).resolve())
os.environ.setdefault("NO_PROXY", "127.0.0.1")
sys.path.insert(0, str(here))

loader = unittest.TestLoader()
if arguments.pattern:
    loader.testNamePatterns = [f"*{arguments.pattern}*"]
suite = unittest.TestSuite([loader.discover(str(here), "test_*.py")])
if arguments.clients:
    suite.addTest(loader.discover(str(here / "clients"), "clients_*.py", top_level_dir=str(here / "clients")))

result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
for test, reason in result.skipped:
    print(f"SKIPPED {test.id() if hasattr(test, 'id') else test}: {reason}")
bad = len(result.failures) + len(result.errors)
passed = result.testsRun - bad - len(result.skipped)
print(f"{passed} passed, {bad} failed, {len(result.skipped)} skipped")
sys.exit(1 if bad or passed == 0 else 0)
