"""A thousand identical streams at once, some of whose clients leave: one upstream call."""
import asyncio
import resource
import unittest

from harness import GatewayTest, chat
from raw_client import Connection

CLIENTS = 1000
LEAVES_EVERY = 10
PATIENCE_S = 120


class Storm(GatewayTest):
    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # the gateway inherits it
        wanted = 4 * CLIENTS
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
        super().setUpClass()

    def test_one_call_and_equal_streams(self):
        # 60 tokens in about 6 s: every client has asked long before the last one.
        body = {"model": "mock-stream-60-100", "temperature": 0, "stream": True,
                "messages": [{"role": "user", "content": "everybody wants to know"}]}

        async def one(connection, index):
            await connection.send("/v1/chat/completions", body)
            leaves = index % LEAVES_EVERY == LEAVES_EVERY - 1
            return await connection.receive(leave_after=600 if leaves else None)

        async def everybody():
            connections = [Connection(self.gateway.port) for _ in range(CLIENTS)]
            for start in range(0, CLIENTS, 50):  # the backlog of a listener is finite
                await asyncio.gather(*[c.open() for c in connections[start:start + 50]])
            replies = await asyncio.gather(*[one(c, i) for i, c in enumerate(connections)])
            for connection in connections:
                connection.close()
            return replies

        replies = asyncio.run(asyncio.wait_for(everybody(), PATIENCE_S))
        stayed = [r for i, r in enumerate(replies) if i % LEAVES_EVERY != LEAVES_EVERY - 1]
        self.assertEqual({reply.status for reply in replies}, {200})
        self.assertFalse(any(reply.broken for reply in stayed))
        self.assertEqual(len({reply.body for reply in stayed}), 1)
        self.assertTrue(stayed[0].body.rstrip().endswith(b"data: [DONE]"))
        left = [r for i, r in enumerate(replies) if i % LEAVES_EVERY == LEAVES_EVERY - 1]
        for reply in left:
            self.assertTrue(stayed[0].body.startswith(reply.body))
            self.assertNotIn(b"[DONE]", reply.body)
        stats = self.mock.stats()
        self.assertEqual(stats["requests"], 1)
        self.assertEqual(stats["aborted"], 0)
        collapsed = sum("collapsed" in reply.headers["cache-status"] for reply in replies)
        self.assertEqual(collapsed, CLIENTS - 1)
        self.assertIn("hit", chat(self.gateway.port, **{**body, "text": body["messages"][0]["content"],
                                                        "stream": False}).headers["cache-status"])


if __name__ == "__main__":
    unittest.main()
