"""Serves HTTP on the loopback, for the proxy and for the scripted provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

HEADER_BYTES = 1 << 18
"""Maximum bytes of a header or of a request line."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Loopback:
    """A running server; `port` is the one that it listens on."""

    def __init__(self, runner: web.ServerRunner, port: int) -> None:
        self.port = port
        self._runner = runner

    async def close(self) -> None:
        """Closes the server and its connections."""
        await self._runner.cleanup()


async def serve(handler: Handler, port: int = 0) -> Loopback:
    """Starts a server on 127.0.0.1 (port 0: any free one).

    A handler is cancelled when its client closes the connection. Raises OSError if the port is
    taken.
    """
    server = web.Server(
        handler,
        handler_cancellation=True,
        access_log=None,
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
    )
    runner = web.ServerRunner(server, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
    except OSError:
        await runner.cleanup()
        raise
    return Loopback(runner, runner.addresses[0][1])


async def body_of(request: web.BaseRequest) -> bytes:
    """Returns the whole body of a request, of any length."""
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return b"".join([piece async for piece in request.content.iter_any()])
