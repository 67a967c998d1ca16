"""The gateway is killed under load, again and again, over one data folder."""
import asyncio
import json
import os
import random
import re
import signal
import sqlite3
import tempfile
import threading
import time
import unittest

from harness import Gateway, MockUpstream, chat
from raw_client import spread

KILLS = int(os.environ.get("FIXPOINT_KILLS", "5"))
CONCURRENCY = 16
# The token log is on disk at most 50 ms and a commit after a generation ended; the rest is for the commit,
# and for the answer to reach us.
LOG_WINDOW_S = 0.5
LOAD_S = (0.9, 1.6)
# Of the answers before a kill, so many are asked for again.
ASKED_AGAIN = 150


class Load:
    """Asks until the gateway is gone; remembers what was answered, and when."""

    def __init__(self, port, name):
        self.port = port
        self.name = name
        self.answered = {}  # prompt -> (text, generation, time)
        self.thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.stopping = False
        self.thread.start()

    def _prompts(self):
        number = 0
        while not self.stopping:
            yield f"{self.name} {number}"
            number += 1

    async def _run(self):
        async def ask(connection, prompt):
            body = {"model": "mock-fp-a", "temperature": 0, "messages": [{"role": "user", "content": prompt}]}
            try:
                reply = await connection.post("/v1/chat/completions", body)
            except OSError:
                self.stopping = True
                return
            if reply.status != 200 or reply.broken:
                self.stopping = True
                return
            text = json.loads(reply.body)["choices"][0]["message"]["content"]
            self.answered[prompt] = (text, reply.headers["x-fixpoint-generation"], time.monotonic())
        await spread(self.port, CONCURRENCY, self._prompts(), ask)


class Crash(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fixpoint-crash-")
        self.addCleanup(folder.cleanup)
        self.data = folder.name
        self.mock = MockUpstream()
        self.addCleanup(self.mock.stop)

    def start(self):
        return Gateway({"upstreams": [{"name": "mock", "base_url": self.mock.url, "api_key": "x"}],
                        "routes": [{"model": "*", "upstream": "mock"}]}, self.data)

    def test_kill_under_load(self):
        gateway = self.start()
        everything, hits = {}, 0
        for kill in range(KILLS):
            load = Load(gateway.port, f"load {kill}")
            time.sleep(random.uniform(*LOAD_S))
            killed = time.monotonic()
            gateway.stop(signal.SIGKILL)
            load.thread.join()
            self.assertGreater(len(load.answered), 20, gateway.final_log[-2000:])
            everything.update(load.answered)

            gateway = self.start()  # raises where it cannot open its files
            self.check_files()
            hits += self.check_answers(gateway, everything)
            self.check_log(gateway, load.answered, killed)
        self.assertGreater(hits, 0)
        self.assertEqual(gateway.stop(), 0, gateway.final_log[-2000:])

    def check_files(self):
        for name in ("cache.db", "log.db"):
            with sqlite3.connect(f"file:{self.data}/{name}?mode=ro", uri=True) as database:
                self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)], name)

    def check_answers(self, gateway, everything):
        """What the cache has is what was answered; what it lost is answered anew, well."""
        hits = 0
        for prompt in random.sample(sorted(everything), min(ASKED_AGAIN, len(everything))):
            answer = chat(gateway.port, "mock-fp-a", prompt, temperature=0)
            self.assertEqual(answer.status, 200, answer.body)
            self.assertTrue(re.fullmatch(r"mock answer body=[0-9a-f]{16} call=\d+", answer.text()), answer.body)
            if "hit" in answer.headers["cache-status"]:
                hits += 1
                self.assertEqual(answer.text(), everything[prompt][0])
            else:  # lost with the last moments before a kill; from now on it is this one
                everything[prompt] = (answer.text(), None, None)
        return hits

    def check_log(self, gateway, answered, killed):
        safe = {generation for _, generation, when in answered.values() if when and when < killed - LOG_WINDOW_S}
        self.assertTrue(safe)
        with sqlite3.connect(f"file:{self.data}/log.db?mode=ro", uri=True) as database:
            logged = {row[0] for row in database.execute("SELECT id FROM generations")}
        self.assertEqual(sorted(safe - logged)[:5], [], f"{len(safe - logged)} of {len(safe)} completed rows are lost")


if __name__ == "__main__":
    unittest.main()
