"""Measures the latency that the proxy of `builder capture` adds to the first byte of an answer.

Usage: bench_capture.py [STREAMS]. A provider in a process of its own answers STREAMS (200) requests
at once, each with a stream; they are sent directly, then through a proxy in a process of its own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from aiohttp import ClientSession, TCPConnector, web

from builder.capture.agents import routes
from builder.capture.job import Proxy, body_of, serve
from builder.capture.pairs import PairWriter

_EVENT = b'data: {"type": "ping", "text": "' + b"x" * 200 + b'"}\n\n'
_EVENTS = 40
_ROUNDS = 5


async def _stream(request: web.BaseRequest) -> web.StreamResponse:
    await body_of(request)
    reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await reply.prepare(request)
    for _ in range(_EVENTS):
        await reply.write(_EVENT)
        await asyncio.sleep(0.02)
    await reply.write_eof()
    return reply


async def _provide(there: Connection) -> None:
    server = await serve(_stream)
    there.send(server.port)
    await asyncio.sleep(3600)


async def _capture(there: Connection, provider: int, folder: str) -> None:
    writer = PairWriter(Path(folder))
    found = routes({}, [f"X_URL=http://127.0.0.1:{provider}"])
    async with Proxy(found, writer.put) as proxy:
        there.send(proxy.port)
        await asyncio.sleep(3600)


def _start(main: object, *arguments: object) -> tuple[multiprocessing.Process, int]:
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_run, args=(main, there, *arguments), daemon=True)
    process.start()
    return process, here.recv()


def _run(main: object, *arguments: object) -> None:
    assert callable(main)
    asyncio.run(main(*arguments))


async def _measure(url: str, streams: int) -> list[float]:
    """Returns the seconds to the first byte of each stream."""
    async with ClientSession(connector=TCPConnector(limit=0)) as session:

        async def ask() -> float:
            start = time.perf_counter()
            async with session.post(url, data=b'{"stream": true}') as reply:
                await reply.content.readany()
                first = time.perf_counter() - start
                await reply.read()
            return first

        return sorted(await asyncio.gather(*(ask() for _ in range(streams))))


def main() -> None:
    streams = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        one, provider = _start(_provide)
        other, proxy = _start(_capture, provider, folder)
        for number in (1, streams):
            direct: list[float] = []
            captured: list[float] = []
            for _ in range(_ROUNDS):
                direct += asyncio.run(_measure(f"http://127.0.0.1:{provider}/v1", number))
                captured += asyncio.run(_measure(f"http://127.0.0.1:{proxy}/x-url/v1", number))
            added = statistics.median(captured) - statistics.median(direct)
            print(
                f"{number} streams at once: first byte {statistics.median(direct) * 1e3:.1f} ms,"
                f" captured {statistics.median(captured) * 1e3:.1f} ms (median),"
                f" added {added * 1e3:.1f} ms; slowest {max(direct) * 1e3:.1f} ms,"
                f" captured {max(captured) * 1e3:.1f} ms"
            )
        for process in (one, other):
            process.terminate()
            process.join()


if __name__ == "__main__":
    main()
