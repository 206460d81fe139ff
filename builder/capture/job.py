"""Runs a command whose requests pass through the proxy, or serves until it is interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ClientWebSocketResponse,
    TCPConnector,
    WSMsgType,
    WSServerHandshakeError,
    hdrs,
    web,
)
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from builder.capture.agents import Route, through
from builder.capture.pairs import PairWriter, PassedExchange
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import OptionError, UsageError
from builder.readers.toolkit.narrow import as_dict, as_str

# -- serves HTTP on the loopback, for the proxy and for the scripted provider ----------------------

_HEADER_BYTES = 1 << 18
"""Maximum bytes of a header or of a request line."""

_Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class _Loopback:
    """A running server; `port` is the one that it listens on."""

    def __init__(self, runner: web.ServerRunner, port: int) -> None:
        self.port = port
        self._runner = runner

    async def close(self) -> None:
        """Closes the server and its connections."""
        await self._runner.cleanup()


async def serve(handler: _Handler, port: int = 0) -> _Loopback:
    """Starts a server on 127.0.0.1 (port 0: any free one).

    A handler is cancelled when its client closes the connection. Raises OSError if the port is
    taken.
    """
    server = web.Server(
        handler,
        handler_cancellation=True,
        access_log=None,
        max_line_size=_HEADER_BYTES,
        max_field_size=_HEADER_BYTES,
    )
    runner = web.ServerRunner(server, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
    except OSError:
        await runner.cleanup()
        raise
    return _Loopback(runner, runner.addresses[0][1])


async def body_of(request: web.BaseRequest) -> bytes:
    """Returns the whole body of a request, of any length."""
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return b"".join([piece async for piece in request.content.iter_any()])


# -- makes exchanges of the messages of a WebSocket (the Responses API) ----------------------------

_ENDS = frozenset({"response.completed", "response.failed", "response.incomplete", "error"})


class _SocketPairs:
    """Collects the messages of one connection; `keep` takes each exchange that has ended."""

    def __init__(
        self, url: str, headers: Mapping[str, str], keep: Callable[[PassedExchange], object]
    ) -> None:
        self._url = url
        self._headers = headers
        self._keep = keep
        self._open: PassedExchange | None = None

    def sent(self, text: str) -> None:
        """Takes a message of the agent."""
        try:
            value = as_dict(loads(text))
        except JsonFault:
            return
        if value.pop("type", None) != "response.create":
            return
        self.close()
        body = as_dict(value["response"]) if "response" in value else value
        headers = {**self._headers, "Content-Type": "application/json"}
        self._open = PassedExchange(
            "POST", self._url, headers, dumps({**body, "stream": True}).encode()
        )

    def received(self, text: str) -> None:
        """Takes a message of the provider."""
        exchange = self._open
        if exchange is None:
            return
        if exchange.status is None:
            exchange.status = 200
            exchange.response_headers = {"Content-Type": "text/event-stream"}
        exchange.receive(f"data: {' '.join(text.splitlines())}\n\n".encode())
        try:
            kind = as_str(loads(text), "type")
        except JsonFault:
            return
        if kind in _ENDS:
            self._open = None
            self._keep(exchange)

    def close(self) -> None:
        """Ends the exchange that is open, if there is one."""
        if self._open is not None:
            self._open.fault = "cancelled"
            self._keep(self._open)
            self._open = None


# -- passes requests to providers and streams their answers back, byte for byte --------------------

_HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
"""Headers of one connection only (RFC 9110, section 7.6.1)."""
_OF_SOCKETS = frozenset({
    "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions",
    "sec-websocket-protocol", "sec-websocket-accept",
})  # fmt: skip
_CONNECT_SECONDS = 60
_UNCHANGED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Headers that the client library would add."""

_Keep = Callable[[PassedExchange], object]
"""Takes an exchange that has ended."""


class Proxy:
    """A server on the loopback. Use as an async context manager; `port` is that it listens on."""

    def __init__(self, routes: Sequence[Route], keep: _Keep, port: int = 0) -> None:
        self.port = port
        self._routes = {route.prefix: route for route in routes}
        self._keep = keep
        self._session: ClientSession
        self._server: _Loopback

    async def __aenter__(self) -> Proxy:
        self._session = ClientSession(
            connector=TCPConnector(limit=0),
            timeout=ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            auto_decompress=False,
            skip_auto_headers=_UNCHANGED,
            trust_env=True,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )
        try:
            self._server = await serve(self._handle, self.port)
        except OSError:
            await self._session.close()
            raise
        self.port = self._server.port
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()
        await self._session.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        name, slash, rest = request.raw_path.lstrip("/").partition("/")
        route = self._routes.get(name.partition("?")[0])
        if route is None:
            return web.Response(status=404, text="builder capture: no provider at this path\n")
        url = f"{route.upstream}{slash}{rest}"
        if request.headers.get(hdrs.UPGRADE, "").lower() == "websocket":
            return await self._socket(request, url)
        exchange = PassedExchange(request.method, url, dict(request.headers))
        try:
            exchange.request = await body_of(request)
            return await self._pass(request, exchange)
        except (ConnectionResetError, asyncio.CancelledError):  # the agent closed the connection
            exchange.fault = exchange.fault or "cancelled"
            raise
        finally:
            self._keep(exchange)

    async def _pass(self, request: web.BaseRequest, exchange: PassedExchange) -> web.StreamResponse:
        try:
            answer = await self._session.request(
                request.method,
                URL(exchange.url, encoded=True),
                headers=_passed(request.headers, {"host", "content-length", "expect"}),
                data=exchange.request or None,
                allow_redirects=False,
            )
        except (ClientError, OSError, TimeoutError) as error:
            exchange.fault = "unreachable"
            text = f"builder capture: the provider is unreachable: {type(error).__name__}\n"
            return web.Response(status=502, text=text)
        async with answer:
            exchange.status = answer.status
            exchange.response_headers = dict(answer.headers)
            reply = web.StreamResponse(
                status=answer.status, reason=answer.reason, headers=_passed(answer.headers, set())
            )
            return await self._stream(request, answer, reply, exchange)

    async def _stream(
        self,
        request: web.BaseRequest,
        answer: ClientResponse,
        reply: web.StreamResponse,
        exchange: PassedExchange,
    ) -> web.StreamResponse:
        """Sends the body as it arrives; `write` waits until the agent has taken enough of it."""
        await reply.prepare(request)
        try:
            async for data in answer.content.iter_any():
                exchange.receive(data)
                await reply.write(data)
        except (ClientError, TimeoutError):
            exchange.fault = "dropped"
            if request.transport is not None:
                request.transport.abort()  # the agent sees what it would have seen
            raise ConnectionResetError from None
        await reply.write_eof()
        return reply

    async def _socket(self, request: web.BaseRequest, url: str) -> web.StreamResponse:
        """Passes the messages of a WebSocket in both directions."""
        pairs = _SocketPairs(url, dict(request.headers), self._keep)
        protocols = [
            name.strip() for name in request.headers.get("Sec-WebSocket-Protocol", "").split(",")
        ]
        try:
            upstream = await self._session.ws_connect(
                URL(url, encoded=True),
                headers=_passed(request.headers, {"host", "content-length", *_OF_SOCKETS}),
                protocols=[name for name in protocols if name],
                max_msg_size=0,
                autoping=False,
                autoclose=False,
            )
        except WSServerHandshakeError as error:
            return web.Response(status=error.status, text=error.message)
        except (ClientError, OSError, TimeoutError) as error:
            text = f"builder capture: the provider is unreachable: {type(error).__name__}\n"
            return web.Response(status=502, text=text)
        agent = web.WebSocketResponse(
            protocols=[upstream.protocol] if upstream.protocol else (),
            max_msg_size=0,
            autoping=False,
            autoclose=False,
        )
        try:
            await agent.prepare(request)
            sides = [
                asyncio.create_task(_relay(agent, upstream, pairs.sent)),
                asyncio.create_task(_relay(upstream, agent, pairs.received)),
            ]
            try:
                await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for side in sides:
                    side.cancel()
                await asyncio.gather(*sides, return_exceptions=True)
        finally:
            pairs.close()
            with suppress(ClientError, OSError):
                await upstream.close()
        return agent


_Socket = ClientWebSocketResponse | web.WebSocketResponse


async def _relay(source: _Socket, target: _Socket, note: Callable[[str], object]) -> None:
    """Passes messages until one side closes; `note` takes each text."""
    while True:
        message = await source.receive()
        if message.type is WSMsgType.TEXT:
            note(message.data)
            await target.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await target.send_bytes(message.data)
        elif message.type is WSMsgType.PING:
            await target.ping(message.data)
        elif message.type is WSMsgType.PONG:
            await target.pong(message.data)
        else:
            if message.type is WSMsgType.CLOSE:
                await target.close(
                    code=message.data or 1000, message=(message.extra or "").encode()
                )
            return


def _passed(headers: CIMultiDictProxy[str], without: set[str]) -> CIMultiDict[str]:
    listed = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    dropped = _HOP_BY_HOP | without | listed
    return CIMultiDict((k, v) for k, v in headers.items() if k.lower() not in dropped)


Result = TypeVar("Result")


def capture_command(
    command: Sequence[str],
    folder: Path,
    routes: Sequence[Route],
    *,
    adapt: Callable[[Sequence[str], dict[str, str]], Sequence[str]],
) -> tuple[int, PairWriter]:
    """Runs the command to its end; returns its exit code and what was written.

    `adapt(command, environment)` returns the command with what it needs in addition to the
    environment, which it may change. Raises UsageError if the command does not exist.
    """
    writer = PairWriter(folder)
    try:
        code = run_to_end(_run(command, routes, writer, adapt))
    finally:
        writer.close()
    return code, writer


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine and returns its result, also where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Future[Result]]] = Future()

    async def supervised() -> Result:
        task = asyncio.ensure_future(work)
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(asyncio.run, supervised())
        try:
            return done.result()
        except KeyboardInterrupt:
            loop, task = started.result()
            loop.call_soon_threadsafe(task.cancel)
            raise


async def _run(
    command: Sequence[str],
    routes: Sequence[Route],
    writer: PairWriter,
    adapt: Callable[[Sequence[str], dict[str, str]], Sequence[str]],
) -> int:
    async with Proxy(routes, writer.put) as proxy:
        environment = through(os.environ, routes, proxy.port)
        return await run_child(adapt(command, environment), environment)


async def run_child(
    command: Sequence[str], environment: Mapping[str, str], *, seconds: float | None = None
) -> int:
    """Runs a command that shares this process's terminal; returns its exit code.

    Signals of the terminal reach the command, which decides what they mean. `seconds` limits its
    time. Raises UsageError if it does not exist or cannot be run.
    """
    try:
        child = await asyncio.create_subprocess_exec(*command, env=dict(environment))
    except FileNotFoundError:
        raise UsageError(f"{command[0]!r}: no such program") from None
    except OSError as error:
        raise UsageError(f"{command[0]!r}: {error.strerror or error}") from None
    with _signals_for(child):
        try:
            code = await asyncio.wait_for(child.wait(), seconds)
        except TimeoutError:
            child.kill()
            await child.wait()
            raise
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _signals_for(child: asyncio.subprocess.Process) -> Iterator[None]:
    """Leaves SIGINT to the child, which the terminal sends it to as well; passes others on."""
    loop = asyncio.get_running_loop()
    names = ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP")
    caught = [number for name in names if (number := getattr(signal, name, None)) is not None]

    def receive(number: int) -> None:
        if number not in (signal.SIGINT, getattr(signal, "SIGQUIT", None)):
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(number)

    added = []
    for number in caught:
        # No signal handlers on Windows, nor in a thread that is not the main one.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, receive, number)
            added.append(number)
    try:
        yield
    finally:
        for number in added:
            loop.remove_signal_handler(number)


def capture_serving(
    port: int, folder: Path, routes: Sequence[Route], *, ready: Callable[[int], object]
) -> PairWriter:
    """Serves at a port until it is interrupted; returns what was written.

    `ready(port)` is called once it listens. Raises UsageError if the port is taken.
    """
    writer = PairWriter(folder)
    try:
        run_to_end(_serve(port, routes, writer, ready))
    except OSError as error:
        raise OptionError("port", f" {port}: {error.strerror or error}") from None
    finally:
        writer.close()
    return writer


async def _serve(
    port: int, routes: Sequence[Route], writer: PairWriter, ready: Callable[[int], object]
) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM"):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(getattr(signal, name), stopped.set)
    async with Proxy(routes, writer.put, port) as proxy:
        ready(proxy.port)
        await stopped.wait()
