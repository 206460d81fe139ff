"""Writes exchanges as lines that the readers of captures read, without credentials.

Headers and parameters that are not known to be harmless go, and their values wherever they recur.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from builder.brief import brief
from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads
from builder.readers.api.bodies import decompressed
from builder.readers.api.exchanges import response_id
from builder.readers.toolkit.narrow import as_list

_MAX_BODY = 256 << 20
"""Maximum bytes of a body that is kept; larger ones are passed through and not written."""

_KEPT_HEADERS = frozenset({
    "accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta",
    "openai-processing-ms", "request-id", "retry-after", "user-agent", "x-request-id",
    "x-should-retry", "x-stainless-retry-count",
})  # fmt: skip
_KEPT_PARAMETERS = frozenset({"alt", "api-version", "beta", "stream", "pageSize"})
_PUBLIC_HEADERS = frozenset({
    "accept-charset", "accept-encoding", "accept-language", "connection", "content-encoding",
    "content-length", "date", "host", "origin", "referer", "sec-fetch-mode", "server",
    "transfer-encoding", "upgrade", "vary", "via",
})  # fmt: skip
"""Headers that are not kept and whose values are no secrets: they are ordinary words."""
_CREDENTIAL = re.compile(
    r"(?i)auth|api[-_]?key|token|secret|cookie|session|signature|password|credential|^key$|^sig$"
)
_SHORTEST = 8
"""Minimum characters of a secret; shorter values would remove ordinary text."""
_AGENT = re.compile(r"([A-Za-z][\w.-]*?)/v?(\d[\w.+-]*)")
_REMOVED = "[credential]"

AGENTS: Mapping[str, str] = {
    "claude-cli": "claude-code",
    "claude-code": "claude-code",
    "codex_exec": "codex",
    "codex_cli_rs": "codex",
    "codex-tui": "codex",
    "codex": "codex",
    "geminicli": "gemini-cli",
    "geminicli-tui": "gemini-cli",
    "gemini": "gemini-cli",
    "gemini-cli": "gemini-cli",
    "qwencode": "qwen-code",
    "qwen": "qwen-code",
    "qwen-code": "qwen-code",
    "claude": "claude-code",
    "opencode": "opencode",
    "pi": "pi",
    "kimi": "kimi-cli",
    "kimicli": "kimi-cli",
    "goose": "goose",
    "cline": "cline",
    "mistral-vibe": "mistral-vibe",
    "vibe": "mistral-vibe",
}
"""{an agent's name for itself, in lower case: the name of the reader of its logs}."""


@dataclass(slots=True)
class PassedExchange:
    """One exchange as it passed through the proxy.

    request, response  the bodies as sent; for a WebSocket, JSON texts, one message a line
    fault  why the response is incomplete: `cancelled` by the agent, `dropped` by the provider,
           `unreachable`; "" if it is complete
    """

    method: str
    url: str
    request_headers: Mapping[str, str]
    request: bytes = b""
    status: int | None = None
    response_headers: Mapping[str, str] = field(default_factory=dict)
    response: bytearray = field(default_factory=bytearray)
    fault: str = ""
    is_too_large: bool = False

    def receive(self, data: bytes) -> None:
        """Adds bytes of the response."""
        if len(self.response) + len(data) > _MAX_BODY:
            self.is_too_large = True
            self.response.clear()
        elif not self.is_too_large:
            self.response += data


def agent_of(user_agent: str) -> tuple[str, str] | None:
    """Returns the name and version of the agent that a `user-agent` names, or None."""
    for match in _AGENT.finditer(user_agent):
        name = match[1].lower()
        if name in AGENTS:
            return AGENTS[name], match[2]
    return None


def _line_of(exchange: PassedExchange) -> bytes:
    headers = _lowered(exchange.request_headers)
    agent = agent_of(headers.get("user-agent", ""))
    answer = _lowered(exchange.response_headers)
    value: dict[str, Json] = {}
    if agent is not None:
        value["agent"] = {"name": agent[0], "version": agent[1]}
    value["request"] = {
        "method": exchange.method,
        "url": _public_url(exchange.url),
        "headers": _public(headers),
        "body": _body(exchange.request, headers),
    }
    if exchange.status is not None:
        body = _body(bytes(exchange.response), answer)
        value["response"] = {
            "status": exchange.status,
            "id": _response_id(body),
            "headers": _public(answer),
            "body": body,
        }
    if exchange.fault:
        value["fault"] = exchange.fault
    if exchange.status is None:
        value["error"] = {"type": exchange.fault, "message": "no response"}
    secrets = sorted(
        {*_secrets(exchange.url, headers, answer)}, key=lambda text: (-len(text), text)
    )
    return dumps(_without(value, secrets)).encode("utf-8", "surrogatepass") + b"\n"


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _public(headers: Mapping[str, str]) -> dict[str, Json]:
    return {name: value for name, value in headers.items() if name in _KEPT_HEADERS}


def _public_url(url: str) -> str:
    """Returns the URL without user information and without unknown parameters."""
    parts = urlsplit(url)
    pairs = [(k, v) for k, v in parse_qsl(parts.query) if k in _KEPT_PARAMETERS]
    return urlunsplit(
        (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, urlencode(pairs), "")
    )


def _secrets(url: str, *headers: Mapping[str, str]) -> Iterator[str]:
    """Yields the values that no file may contain, in each form in which a body may repeat them."""
    parts = urlsplit(url)
    values = [v for k, v in parse_qsl(parts.query) if k not in _KEPT_PARAMETERS]
    if "@" in parts.netloc:
        values += parts.netloc.rpartition("@")[0].split(":")
    for each in headers:
        for name, value in each.items():
            if name in _KEPT_HEADERS or name in _PUBLIC_HEADERS or not _CREDENTIAL.search(name):
                continue
            values.append(value)
            values += value.split()[1:]
            values += [item.partition("=")[2].split(";")[0] for item in value.split("; ")]
            if value.lower().startswith("basic "):
                with suppress(ValueError):
                    text = base64.b64decode(value[6:]).decode("utf-8", "replace")
                    values += [text, *text.split(":", 1)]
    for value in values:
        for form in (value, unquote(value), quote(value, safe="")):
            if len(form.strip()) >= _SHORTEST:
                yield form.strip()


def _without(value: Json, secrets: Iterable[str]) -> Json:
    """Returns the value with the secrets replaced in every text and key."""
    if not secrets:
        return value
    pattern = re.compile("|".join(map(re.escape, secrets)))

    def clean(item: Json) -> Json:
        if isinstance(item, str):
            return pattern.sub(_REMOVED, item)
        if isinstance(item, list):
            return [clean(one) for one in item]
        if isinstance(item, dict):
            return {pattern.sub(_REMOVED, key): clean(one) for key, one in item.items()}
        return item

    return clean(value)


def _body(data: bytes, headers: Mapping[str, str]) -> Json:
    """Returns a body as JSON, as text, or, if it can be neither, as {"base64_string"}."""
    coding = headers.get("content-encoding", "").split(",")[-1].strip().lower()
    try:
        plain = decompressed(data, coding)
        text = plain.decode("utf-8")
    except (JsonFault, UnicodeDecodeError):  # cut, or no text: a reader says why
        if data.startswith(b"\x00"):
            return {"base64_string": base64.b64encode(data).decode()}
        return _cut_text(data, coding) or {"base64_string": base64.b64encode(data).decode()}
    if text[:1] in ("{", "["):
        try:
            return loads(plain)
        except JsonFault:
            return text
    return text


def _cut_text(data: bytes, coding: str) -> str | None:
    """Returns the text of a compressed body that ended early; None if there is none."""
    import zlib  # noqa: PLC0415 - only for such bodies

    if coding not in ("gzip", "deflate"):
        return None
    try:
        text = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, _MAX_BODY)
    except zlib.error:
        return None
    return text.decode("utf-8", "ignore") or None


def _response_id(body: Json) -> str | None:
    """Returns the provider's id of a response, also of a streamed one."""
    if isinstance(body, str):
        match = re.search(r"^(?:data: ?)?(\{.*\})\s*$", body[: 1 << 16], re.MULTILINE)
        try:
            body = loads(match[1]) if match else None
        except JsonFault:
            return None
    first = body[0] if isinstance(body, list) and body else body
    return response_id(first)


class PairWriter:
    """Writes exchanges to a new file of a folder, in a thread of its own.

    A folder or file that cannot be written never raises: `lost` counts the exchanges that are not
    written, and `fault` has the reason. The file appears with the first exchange.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path: Path | None = None
        self.written = 0
        self.lost = 0
        self.fault = ""
        self._queue: queue.SimpleQueue[PassedExchange | None] = queue.SimpleQueue()
        self._file: int | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        """Returns the file and the main counts."""
        path = None if self.path is None else str(self.path)
        return brief(self, path=path, written=self.written, lost=self.lost)

    def put(self, exchange: PassedExchange) -> None:
        """Queues an exchange; returns at once."""
        self._queue.put(exchange)

    def close(self) -> None:
        """Returns after everything that was queued is written or lost."""
        self._queue.put(None)
        self._thread.join()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _run(self) -> None:
        while (exchange := self._queue.get()) is not None:
            try:
                if exchange.is_too_large:
                    raise ValueError(f"a response of more than {_MAX_BODY >> 20} MB")
                self._append(_line_of(exchange))
                self.written += 1
            except Exception as error:
                self.lost += 1
                reason = error.strerror if isinstance(error, OSError) else None
                self.fault = reason or f"{type(error).__name__}: {error}"

    def _append(self, line: bytes) -> None:
        """Appends a whole line, or nothing. Raises OSError."""
        if self._file is None:
            self._file = self._new_file()
        start = os.lseek(self._file, 0, os.SEEK_END)
        done = 0
        try:
            while done < len(line):
                done += os.write(self._file, line[done:])
        except OSError:
            os.ftruncate(self._file, start)
            raise

    def _new_file(self) -> int:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        number = 1
        while True:
            path = self.folder / f"capture-{number:04d}.jsonl"
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                number += 1
                continue
            self.path = path
            return descriptor


@dataclass(frozen=True, slots=True)
class SentDefinitions:
    """What an agent sent: the contents of a definitions file (docs/capture.md).

    headless  whether it ran without its terminal interface; None: it sends the same with it
    folder    its working directory
    """

    agent: str
    version: str
    system: str
    tools: tuple[Json, ...]
    headless: bool | None = None
    folder: str = ""

    def __repr__(self) -> str:
        """Returns the agent and the sizes of its prompt and list of tools in one line."""
        parts = f"system of {len(self.system):,} characters", f"{self.count} tools"
        return brief(self, *parts, agent=self.agent, version=self.version)

    @property
    def count(self) -> int:
        """Returns the number of tools; Gemini's API has them in groups."""
        groups = (as_list(tool, "functionDeclarations") for tool in self.tools)
        return sum(len(group) or 1 for group in groups)

    def to_json(self) -> bytes:
        """Encodes the file."""
        value: dict[str, Json] = {
            "agent": self.agent,
            "version": self.version,
            "headless": self.headless,
            "folder": self.folder,
            "system": self.system,
            "tools": list(self.tools),
        }
        text = json.dumps(value, ensure_ascii=False, indent=1)
        return text.encode("utf-8", "surrogatepass") + b"\n"
