"""Files of the data folder that are damaged, or taken away while the gateway runs."""
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import tempfile
import unittest

from harness import Gateway, GatewayTest, chat
from helpers import metric, wait_logged, wait_until

PAGE = 16384


def damage_everything(data):
    return os.urandom(len(data))


def damage_the_header(data):
    return bytes(100) + data[100:]


def cut_in_half(data):
    return data[:len(data) // 2]


class Damage(GatewayTest):
    STORES = {"cache.db": "cache", "log.db": "token log"}
    PROMPTS = [f"t{i}" for i in range(3)]

    def setUp(self):
        super().setUp()
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="fixpoint-test-"))
        self.addCleanup(shutil.rmtree, self.data)

    def start(self):
        gateway = Gateway(self.config(), self.data)
        self.addCleanup(lambda: gateway.process.poll() is None and gateway.stop())
        return gateway

    def ask(self, gateway, prompts):
        answers = [chat(gateway.port, "mock-big-40000", prompt, temperature=0) for prompt in prompts]
        self.assertEqual([answer.status for answer in answers], [200] * len(answers))
        return [answer.headers["cache-status"] for answer in answers]

    def fill(self):
        gateway = self.start()
        self.ask(gateway, self.PROMPTS)
        gateway.stop()

    def aside(self, name):
        return sorted(p for p in self.data.iterdir() if re.fullmatch(re.escape(name) + r"\.damaged-\w+(-\d+)?", p.name))

    def test_a_new_file_begins_where_one_was_damaged(self):
        self.fill()
        kept = {name: (self.data / name).read_bytes() for name in self.STORES}
        for name, what in self.STORES.items():
            damaged_files = []
            for damage in (damage_everything, damage_the_header, cut_in_half):
                (self.data / name).write_bytes(damage(kept[name]))
                damaged_files.append((self.data / name).read_bytes())
                gateway = self.start()
                wait_logged(self, gateway, "a new file begins")
                line = next(line for line in gateway.log().splitlines() if "a new file begins" in line)
                self.assertRegex(line, rf" error {what}: .*{name}: the file is damaged: .*{name}\.damaged-")
                self.assertNotIn("PRAGMA", line)
                self.ask(gateway, self.PROMPTS)
                self.assertEqual(self.ask(gateway, self.PROMPTS), ["fixpoint; hit"] * 3)
                self.assertEqual(gateway.stop(), 0)
            self.assertCountEqual([path.read_bytes() for path in self.aside(name)], damaged_files)

    def test_a_link_stays_where_it_leads(self):
        self.fill()
        with tempfile.TemporaryDirectory() as elsewhere:
            target = pathlib.Path(elsewhere) / "cache.db"
            (self.data / "cache.db").rename(target)
            target.write_bytes(damage_the_header(target.read_bytes()))
            (self.data / "cache.db").symlink_to(target)
            gateway = self.start()
            wait_logged(self, gateway, "a new file begins")
            self.ask(gateway, self.PROMPTS)
            self.assertEqual(gateway.stop(), 0)
            self.assertTrue((self.data / "cache.db").is_symlink())
            self.assertTrue(target.read_bytes().startswith(b"SQLite format 3"))
            self.assertEqual(len(list(target.parent.glob("cache.db.damaged-*"))), 1)

    def test_a_file_elsewhere_that_was_none_of_ours_is_left_alone(self):
        with tempfile.TemporaryDirectory() as elsewhere:
            thesis = pathlib.Path(elsewhere) / "thesis.txt"
            thesis.write_text("Chapter one. " * 500)
            with self.assertRaisesRegex(RuntimeError, "thesis.txt: the file is damaged: .*move it away"):
                Gateway({**self.config(), "cache": {"path": str(thesis)}}, self.data)
            self.assertEqual(thesis.read_text(), "Chapter one. " * 500)

    def test_a_tool_leaves_a_damaged_file_alone(self):
        gateway = self.start()  # for its configuration
        gateway.process.send_signal(signal.SIGTERM)
        gateway.process.wait()
        for name, verb in (("cache.db", ["cache", "stats"]), ("cache.db", ["cache", "purge", "--all"]),
                           ("log.db", ["log", "tail"])):
            (self.data / name).write_bytes(b"x" * 5000)
            done = gateway.cli(*verb, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rf"^fixpoint: \S+{name}: the file is damaged: [a-z :]+ \(SQLite 26\)\n$")
            self.assertEqual((self.data / name).read_bytes(), b"x" * 5000)
            self.assertEqual(self.aside(name), [])

    def test_what_is_damaged_inside_stops_nothing(self):
        self.fill()
        gateway = self.start()
        for name in self.STORES:  # the running gateway's file, behind its back
            path = self.data / name
            size = path.stat().st_size
            with open(path, "r+b") as file:
                file.seek(PAGE)
                file.write(os.urandom(size - PAGE))
        self.ask(gateway, self.PROMPTS + ["new"])
        self.assertEqual(gateway.stop(), 0)

    def test_what_opening_does_not_show_stops_nothing(self):
        self.fill()
        for name, table in {"cache.db": "entries", "log.db": "generations"}.items():
            with sqlite3.connect(self.data / name) as database:
                query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
                (page,) = database.execute(query, (table,)).fetchone()
            with open(self.data / name, "r+b") as file:
                file.seek((page - 1) * PAGE)
                file.write(os.urandom(PAGE))
        gateway = self.start()
        self.assertEqual(self.ask(gateway, self.PROMPTS), ["fixpoint; fwd=miss; detail=store-error"] * 3)
        for name, what in self.STORES.items():
            wait_logged(self, gateway, f"warning {what}: {self.data / name}: the file is damaged: writing: ")
            self.assertEqual(self.aside(name), [])
        self.assertIn("; move the file away and restart to begin a new one", gateway.log())
        for series in ("fixpoint_cache_write_failures_total", "fixpoint_log_write_failures_total"):
            wait_until(self, lambda series=series: metric(gateway.port, series) >= 3, f"{series} is 3")
        self.assertEqual(self.ask(gateway, self.PROMPTS), ["fixpoint; hit"] * 3)  # of memory
        self.assertEqual(gateway.stop(), 0)

    def test_a_file_that_was_taken_away_is_told_of(self):
        gateway = self.start()
        self.ask(gateway, ["before"])
        wait_until(self, lambda: (self.data / "log.db").exists(), "the log is there")
        for name in self.STORES:
            os.rename(self.data / name, self.data / (name + ".old"))
        self.ask(gateway, self.PROMPTS)
        for name, what in self.STORES.items():
            wait_logged(self, gateway, f"warning {what}: {self.data / name}: was removed or replaced")
        for series in ("fixpoint_cache_write_failures_total", "fixpoint_log_write_failures_total"):
            wait_until(self, lambda series=series: metric(gateway.port, series) >= 3, f"{series} is 3")
        self.assertEqual(self.ask(gateway, self.PROMPTS), ["fixpoint; hit"] * 3)

    def test_damaged_keys_are_never_begun_anew(self):
        self.fill()
        (self.data / "keys.db").write_bytes(os.urandom(5000))
        with self.assertRaisesRegex(Exception, r"keys\.db: the file is damaged.*put a copy of it back"):
            self.start()
        self.assertEqual(self.aside("keys.db"), [])


if __name__ == "__main__":
    unittest.main()
