"""By hand: FIXPOINT_SOAK_MINUTES=30. Half the peak load with faults; memory and open files stay where they are."""
import asyncio
import itertools
import os
import random
import time
import unittest

from harness import GatewayTest
from raw_client import Connection, open_files, resident_bytes, spread

MINUTES = float(os.environ.get("FIXPOINT_SOAK_MINUTES", "0"))
CONCURRENCY = 64
PEAK_S = 5
PROMPTS = 5000  # that repeat, so that the cache ends to grow
SAMPLE_S = 5
# Of the time: caches fill, the allocator finds its size.
WARM_UP = 0.3
GROWTH_BYTES = 8 << 20
FAULTS = ["mock-error-400", "mock-error-500-shouldretry-0", "mock-cut-700", "mock-end-900", "mock-reset", "mock-nodone",
          "mock-garbage", "mock-errorevent-3", "mock-resetat-800", "mock-split", "mock-big-200000", "mock-delay-50"]


@unittest.skipUnless(MINUTES > 0, "by hand: FIXPOINT_SOAK_MINUTES=30")
class Soak(GatewayTest):
    @classmethod
    def config(cls):
        return {"upstreams": [{"name": "mock", "base_url": cls.mock.url, "api_key": "x", "breaker_failures": 0}],
                "routes": [{"model": "*", "upstream": "mock"}]}

    def body(self, choice, fault):
        model = choice.choice(FAULTS) if fault else choice.choice(["mock", "mock", "mock", "mock-stream-16-1"])
        return {"model": model, "temperature": choice.choice([0, 1]), "stream": choice.random() < 0.5,
                "messages": [{"role": "user", "content": f"prompt {choice.randrange(PROMPTS)}"}]}

    def peak(self):
        """Requests per second without faults."""
        choice, done, end = random.Random(1), 0, time.monotonic() + PEAK_S

        async def ask(connection, _):
            nonlocal done
            await connection.post("/v1/chat/completions", self.body(choice, False))
            done += 1
        jobs = itertools.takewhile(lambda _: time.monotonic() < end, itertools.count())
        asyncio.run(spread(self.gateway.port, CONCURRENCY, jobs, ask))
        return done / PEAK_S

    def test_soak(self):
        rate = self.peak() / 2
        choice = random.Random(2)
        begin = time.monotonic()
        end = begin + 60 * MINUTES
        samples, statuses = [], {}

        async def work(_):
            connection = Connection(self.gateway.port)
            while time.monotonic() < end:
                due = time.monotonic() + choice.expovariate(rate / CONCURRENCY)
                try:
                    await connection.send("/v1/chat/completions", self.body(choice, choice.random() < 0.1))
                    leaves = choice.randrange(2000) if choice.random() < 0.03 else None
                    reply = await connection.receive(leave_after=leaves)
                    statuses[reply.status] = statuses.get(reply.status, 0) + 1
                except OSError:
                    connection.close()
                    statuses["connection"] = statuses.get("connection", 0) + 1
                await asyncio.sleep(max(0, due - time.monotonic()))
            connection.close()

        async def watch():
            while time.monotonic() < end:
                await asyncio.sleep(SAMPLE_S)
                pid = self.gateway.process.pid
                samples.append((time.monotonic() - begin, resident_bytes(pid), open_files(pid)))

        async def everything():
            await asyncio.gather(watch(), *[work(i) for i in range(CONCURRENCY)])

        asyncio.run(everything())
        steady = [sample for sample in samples if sample[0] > 60 * MINUTES * WARM_UP]
        third = max(1, len(steady) // 3)
        first, last = (sum(s[1] for s in part) / len(part) for part in (steady[:third], steady[-third:]))
        print(f"\n  {rate:.0f} requests/s, answers {statuses}; resident {first / 2**20:.1f} MiB, then {last / 2**20:.1f} MiB; "
              f"files {min(s[2] for s in steady)} to {max(s[2] for s in steady)}")
        self.assertLess(last - first, GROWTH_BYTES)
        self.assertLess(max(s[2] for s in steady), 4 * CONCURRENCY + 100)
        self.assertGreater(statuses.get(200, 0), 0)
        time.sleep(2)  # connections that were left are gone
        self.assertLess(open_files(self.gateway.process.pid), 2 * CONCURRENCY + 100)
        self.assert_serving()


if __name__ == "__main__":
    unittest.main()
