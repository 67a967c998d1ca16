"""The cases of tests/conformance against Fixpoint."""
import json
import subprocess
import sys
import unittest

from harness import BUILD, ROOT

RUN = str(ROOT / "tests" / "conformance" / "run.py")


class Conformance(unittest.TestCase):
    def test_each_row_has_a_case_or_a_reason(self):
        done = subprocess.run([sys.executable, RUN, "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def group(self, letter):
        done = subprocess.run([sys.executable, RUN, "--fixpoint", str(BUILD), "--groups", letter, "--json"],
                              capture_output=True, text=True, timeout=600)
        self.assertTrue(done.stdout, done.stderr)
        results = json.loads(done.stdout)
        for case in results["cases"]:
            with self.subTest(case["id"]):
                self.assertEqual(case["result"], "passed", "\n".join(case["why"][:10]))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_keys(self):
        self.group("K")

    def test_tenants(self):
        self.group("T")

    def test_streams(self):
        self.group("S")

    def test_logprobs(self):
        self.group("L")

    def test_framing(self):
        self.group("D")

    def test_retries(self):
        self.group("R")

    def test_bodies(self):
        self.group("B")

    def test_recording(self):
        self.group("V")


if __name__ == "__main__":
    unittest.main()
