"""Makes exchanges of the messages of a WebSocket (the Responses API).

A message `response.create` is a request; the events after it, up to the end of the response, are
its answer. The requests of a connection name the response that they continue, as over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from builder.capture.pairs import PassedExchange
from builder.jsonio import JsonFault, dumps, loads
from builder.readers.toolkit.narrow import as_dict, as_str

_ENDS = frozenset({"response.completed", "response.failed", "response.incomplete", "error"})


class SocketPairs:
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
