"""Two gateways share their answers in one Redis; when that fails, requests go on."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE_S, Gateway, MockUpstream, chat
from helpers import metric, wait_until


class Redis:
    """A server of the test's own, on a port that stays the same when it starts again."""

    def __init__(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = taken.getsockname()[1]
        self.folder = tempfile.mkdtemp(prefix="fixpoint-test-")
        self.start()

    def start(self):
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                                         "--appendonly", "no", "--dir", self.folder], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if self.command("PING") == "+PONG":
                    return
            except OSError:
                pass
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("redis-server did not start")
            time.sleep(0.02)

    def command(self, text):
        """The first line of the answer."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as connection:
            connection.sendall(text.encode() + b"\r\n")
            return connection.makefile("rb").readline().decode().strip()

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class TwoGateways:
    """Beside each other, over one Redis."""
    MEMORY = 0

    @classmethod
    def setUpClass(cls):
        cls.redis = Redis()
        cls.addClassCleanup(cls.redis.stop)
        cls.mock = MockUpstream()
        cls.addClassCleanup(cls.mock.stop)
        cls.gateways = []
        for _ in range(2):
            gateway = Gateway({"cache": {"redis_url": f"redis://127.0.0.1:{cls.redis.port}/0", "memory_bytes": cls.MEMORY},
                               "upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "x"}],
                               "routes": [{"model": "*", "upstream": "mock"}]})
            cls.addClassCleanup(gateway.stop)
            cls.gateways.append(gateway)

    def setUp(self):
        self.mock.reset()

    def ask(self, which, text, headers=None, **fields):
        answer = chat(self.gateways[which].port, "mock", text, headers, temperature=0, **fields)
        return answer

    def stored(self, which, text):
        """Whether this gateway finds the answer, without making it."""
        return self.ask(which, text, {"Cache-Control": "only-if-cached"}).status == 200

    def wait_stored(self, which, text):
        wait_until(self, lambda: self.stored(which, text), f"{text!r} is stored")

    def assert_works(self, text):
        """What one stores the other finds."""
        self.assertEqual(self.ask(0, text).status, 200)
        self.wait_stored(1, text)
        self.assertIn("hit", self.ask(1, text).headers["cache-status"])

    def recovered(self):
        """Until look-ups of both gateways reach the server again."""
        for which in (0, 1):
            wait_until(self, lambda w=which: "store-error" not in self.ask(w, f"recovered {time.monotonic()}").headers[
                "cache-status"], "the store is back")

    def assert_goes_on(self, name):
        for which in (0, 1):
            for stream in (False, True):
                text = f"{name} {which} {stream}"
                answer = self.ask(which, text, stream=stream)
                self.assertEqual(answer.status, 200, answer.body)
                self.assertEqual(answer.headers["cache-status"], "fixpoint; fwd=miss; detail=store-error")
                self.assertTrue(answer.text().startswith("mock answer"))

    def test_a_damaged_entry_is_replaced(self):
        key = self.ask(0, "damaged").headers["x-fixpoint-key"]
        self.wait_stored(0, "damaged")
        self.redis.command(f"SETRANGE fixpoint:e:{{{key}}} 300 XXXX")
        self.assertIn("store-error", self.ask(1, "damaged").headers["cache-status"])
        self.wait_stored(1, "damaged")
        self.assertIn("hit", self.ask(1, "damaged").headers["cache-status"])

    def test_a_hit_across_gateways(self):
        first = self.ask(0, "shared")
        self.wait_stored(1, "shared")
        second = self.ask(1, "shared")
        self.assertEqual(second.headers["cache-status"], "fixpoint; hit")
        self.assertEqual(second.body, first.body)
        self.assertEqual(second.headers["x-fixpoint-key"], first.headers["x-fixpoint-key"])
        self.assertEqual(self.ask(1, "shared", stream=True).text(), first.text())
        self.assertEqual(self.mock.stats()["requests"], 1)

    def test_killed(self):
        self.assert_works("before it dies")
        self.redis.kill()
        try:
            self.assert_goes_on("killed")
            error = self.ask(0, "not made", {"Cache-Control": "only-if-cached"})
            self.assertEqual(error.status, 504)
            results = metric(self.gateways[0].port, "fixpoint_cache_requests_total", result="error")
            self.assertGreaterEqual(results, 2)
        finally:
            self.redis.start()
        self.recovered()
        self.assert_works("after its restart")

    def test_paused(self):
        self.assert_works("before the pause")
        self.redis.signal(signal.SIGSTOP)
        try:
            started = time.monotonic()
            self.assert_goes_on("paused")
            self.assertLess(time.monotonic() - started, 10)  # four requests, each with a look-up of 100 ms
        finally:
            self.redis.signal(signal.SIGCONT)
        self.recovered()
        self.assert_works("after the pause")


NO_REDIS = None if shutil.which("redis-server") else "redis-server is not installed: apt-get install redis-server"


@unittest.skipIf(NO_REDIS, NO_REDIS)
class SharedStore(TwoGateways, unittest.TestCase):
    def test_the_command_line_works_on_it(self):
        key = self.ask(0, "by hand").headers["x-fixpoint-key"]
        self.wait_stored(1, "by hand")
        self.assertEqual(json.loads(self.gateways[1].cli("cache", "get", key, "--json").stdout)["key"], key)
        self.gateways[1].cli("cache", "purge", "--key", key)
        self.assertFalse(self.stored(0, "by hand"))

    def test_a_purge_beside_recordings(self):
        key = self.ask(0, "not recorded").headers["x-fixpoint-key"]
        self.wait_stored(0, "not recorded")
        with tempfile.TemporaryDirectory(prefix="fixpoint-test-") as folder:
            recorder = Gateway({"cache": {"redis_url": f"redis://127.0.0.1:{self.redis.port}/0"},
                                "upstreams": [{"name": "mock", "base_url": self.mock.url, "api_key": "x"}],
                                "routes": [{"model": "*", "upstream": "mock"}]}, arguments=["--record", folder])
            self.addCleanup(recorder.stop)
            self.assertEqual(chat(recorder.port, "mock", "recorded").status, 200)
            recorder.cli("cache", "purge", "--key", key)
            self.assertFalse(self.stored(0, "not recorded"))
            recorder.cli("cache", "purge", "--all")
            self.assertEqual(len(os.listdir(folder)), 1)

    def test_an_import_leaves_out_what_is_too_old(self):
        self.ask(0, "ages")
        self.wait_stored(0, "ages")
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(self.gateways[0].cli("cache", "export").stdout)
            file.flush()
            self.gateways[0].cli("cache", "purge", "--all")
            young = Gateway({"cache": {"redis_url": f"redis://127.0.0.1:{self.redis.port}/0", "ttl": "1ms"}})
            self.addCleanup(young.stop)
            done = young.cli("cache", "import", file.name)
            self.assertEqual(done.stdout, "imported 0 entries\n")
            self.assertIn("left out: older than cache.ttl", done.stderr)
        self.assertFalse(self.stored(0, "ages"))

    def test_out_of_memory(self):
        failed = "fixpoint_cache_write_failures_total"
        before = metric(self.gateways[0].port, failed)
        self.assertEqual(self.redis.command("CONFIG SET maxmemory-policy noeviction"), "+OK")
        self.assertEqual(self.redis.command("CONFIG SET maxmemory 100kb"), "+OK")
        try:
            for i in range(3):
                answer = self.ask(0, f"full {i}")
                self.assertEqual(answer.status, 200, answer.body)
                self.assertNotIn("hit", answer.headers["cache-status"])
            wait_until(self, lambda: metric(self.gateways[0].port, failed) >= before + 3, "the refused writes are counted")
            self.assertFalse(self.stored(0, "full 0"))
            # Warnings of one second share a line: one of this comes when writes go on.
            wait_until(self, lambda: self.ask(0, f"fuller {time.monotonic()}") and "OOM" in self.gateways[0].log(),
                       "the log says why")
        finally:
            self.redis.command("CONFIG SET maxmemory 0")
        self.recovered()
        self.assert_works("with room again")


class OneFolder(unittest.TestCase):
    """What is not Redis belongs to one gateway."""

    def test_a_second_gateway_is_told(self):
        with tempfile.TemporaryDirectory(prefix="fixpoint-test-") as folder:
            first = Gateway({}, folder, wait_ready=False)
            self.addCleanup(first.stop)
            with self.assertRaises(RuntimeError) as caught:
                Gateway({}, folder)
            self.assertIn(folder, str(caught.exception))
            self.assertIn("another fixpoint has the file open", str(caught.exception))


class Password(unittest.TestCase):
    def test_it_is_never_shown(self):
        mock = MockUpstream()
        self.addCleanup(mock.stop)
        gateway = Gateway({"cache": {"redis_url": "redis://someone:passw0rd-of-redis@127.0.0.1:9/0"},
                           "upstreams": [{"name": "mock", "base_url": mock.url, "api_key": "x"}],
                           "routes": [{"model": "*", "upstream": "mock"}]})
        self.addCleanup(gateway.stop)
        answer = chat(gateway.port, "mock", "no store", temperature=0)
        self.assertIn("store-error", answer.headers["cache-status"])
        done = gateway.cli("cache", "stats", check=False)
        self.assertEqual(done.returncode, 1)
        for text in (gateway.log(), done.stdout + done.stderr):
            self.assertNotIn("passw0rd-of-redis", text)


@unittest.skipIf(NO_REDIS, NO_REDIS)
class MemoryInFront(TwoGateways, unittest.TestCase):
    """What a gateway has in memory it gives whatever happens to the server."""
    MEMORY = 16 << 20

    def test_what_was_purged_is_gone_from_memory(self):
        for arguments in (lambda key: ("--key", key), lambda _: ("--all",)):
            key = self.ask(0, "purged").headers["x-fixpoint-key"]
            self.wait_stored(0, "purged")
            self.gateways[0].cli("cache", "purge", *arguments(key))
            self.assertFalse(self.stored(0, "purged"), arguments(key))

    def test_hits_need_no_server(self):
        self.ask(0, "in memory")  # the server decides whose answer the key has; a look-up brings it here
        first = self.ask(0, "in memory")
        self.redis.kill()
        try:
            again = self.ask(0, "in memory")
        finally:
            self.redis.start()
        self.assertEqual(again.headers["cache-status"], "fixpoint; hit")
        self.assertEqual(again.body, first.body)
        self.recovered()


if __name__ == "__main__":
    unittest.main()
