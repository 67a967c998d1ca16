"""Many connections at once, byte by byte: for tests that count, cut and leave. Standard library only."""
import asyncio
import json
import os
import re


class Reply:
    def __init__(self, status, headers, body, broken):
        self.status = status    # 0: the connection ended before there was a head
        self.headers = headers
        self.body = body        # without the framing of chunks
        self.broken = broken    # the connection ended before the body did

    @property
    def is_stream(self):
        return self.headers.get("content-type", "").startswith("text/event-stream")


class Connection:
    """One connection, opened again when it has ended."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None

    async def open(self):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)

    def close(self):
        if self.writer is not None:
            self.writer.transport.abort()
            self.writer = None

    async def send(self, path, body, headers=None):
        await self.open()
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
                 f"Content-Length: {len(data)}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        await self.writer.drain()

    async def receive(self, leave_after=None):
        """`leave_after`: close the connection once so many bytes of the body have come."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            self.close()
            return Reply(0, {}, b"", True)
        headers = {}
        for line in head[1:]:
            if line:
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
        body, broken = bytearray(), False
        try:
            if headers.get("transfer-encoding") == "chunked":
                while True:
                    size = int(await self.reader.readuntil(b"\r\n"), 16)
                    piece = await self.reader.readexactly(size + 2)
                    if size == 0:
                        break
                    body += piece[:-2]
                    if leave_after is not None and len(body) >= leave_after:
                        self.close()
                        break
            elif "content-length" in headers:
                body += await self.reader.readexactly(int(headers["content-length"]))
            else:
                body += await self.reader.read()
                self.close()
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            body += getattr(error, "partial", b"")
            broken = True
        if broken or headers.get("connection", "").lower() == "close":
            self.close()
        return Reply(int(head[0].split()[1]), headers, bytes(body), broken)

    async def post(self, path, body, headers=None):
        await self.send(path, body, headers)
        return await self.receive()


async def spread(port, concurrency, jobs, work):
    """await work(connection, job) for every job, over so many connections that stay open."""
    waiting = iter(jobs)

    async def one():
        connection = Connection(port)
        for job in waiting:
            await work(connection, job)
        connection.close()
    await asyncio.gather(*[one() for _ in range(concurrency)])


def resident_bytes(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) * 1024


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))
