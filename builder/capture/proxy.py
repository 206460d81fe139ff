"""Passes requests to providers and streams their answers back, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

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

from builder.capture.pairs import PassedExchange
from builder.capture.providers import Route
from builder.capture.serving import HEADER_BYTES, Loopback, body_of, serve
from builder.capture.sockets import SocketPairs

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

Keep = Callable[[PassedExchange], object]
"""Takes an exchange that has ended."""


class Proxy:
    """A server on the loopback. Use as an async context manager; `port` is that it listens on."""

    def __init__(self, routes: Sequence[Route], keep: Keep, port: int = 0) -> None:
        self.port = port
        self._routes = {route.prefix: route for route in routes}
        self._keep = keep
        self._session: ClientSession
        self._server: Loopback

    async def __aenter__(self) -> Proxy:
        self._session = ClientSession(
            connector=TCPConnector(limit=0),
            timeout=ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            auto_decompress=False,
            skip_auto_headers=_UNCHANGED,
            trust_env=True,
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
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
                status=answer.status,
                reason=answer.reason,
                headers=_passed(answer.headers, set()),
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
        pairs = SocketPairs(url, dict(request.headers), self._keep)
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
    """Returns the headers that are passed on, repeated ones included."""
    listed = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    dropped = _HOP_BY_HOP | without | listed
    return CIMultiDict((k, v) for k, v in headers.items() if k.lower() not in dropped)
