"""Reads captures: every exchange is parsed by the API of its bodies.

The reader of the first exchange's API claims a file; those of others are separate conversations.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Literal

from builder.conversation import Context, Conversation, Event, Ignored, Json, Used
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.api import anthropic, openai_chat, openai_responses
from builder.readers.api.anthropic import MESSAGES, read_body
from builder.readers.api.bedrock import CONVERSE
from builder.readers.api.bodies import is_stream, stream_events
from builder.readers.api.cassettes import LIST_KEYS, interactions, looks_like_cassette
from builder.readers.api.codec import Api, ApiAnswer, History, read_list, row_conversation
from builder.readers.api.dialects import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    request_dialect,
)
from builder.readers.api.exchanges import (
    LITELLM,
    Exchange,
    gateway_records,
    is_litellm,
    open_exchange,
    seen,
)
from builder.readers.api.gemini import GENERATE
from builder.readers.api.histories import Log
from builder.readers.api.openai_chat import CHAT
from builder.readers.api.openai_responses import RESPONSES
from builder.readers.toolkit.comparison import LoggedAnswers, calls, with_request_keys
from builder.readers.toolkit.marks import has_removed, has_shortened
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list
from builder.readers.toolkit.rows import outcome_beside, with_outcome
from builder.readers.toolkit.unknown_keys import ROW_COLUMNS, count_columns
from builder.sources.listing import Listing
from builder.sources.sniff import PEEK_BYTES
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import once
from builder.sources.stream import STREAM_ERRORS, stream_problem

_WIREMOCK_KEYS = ("mappings", "requests")
"""Keys of WireMock's lists: of its stubs, and of its journal."""

_TIMED = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z (?=\{)")
"""The time before each record that CloudWatch exports to S3."""
_PEEK_EXCHANGES = 50
"""Maximum number of exchanges in which recognition looks for a known API."""


def _peeked(source: Source) -> Iterator[Json]:
    """Yields the values of the first `records`, as far as the source's peek contains them."""
    head = source.head
    if looks_like_cassette(head):
        for item in interactions(source.first(PEEK_BYTES), source.max_record_bytes):
            if not isinstance(item, Problem):
                yield item
    elif _TIMED.match(head):
        for line in source.first(PEEK_BYTES).splitlines():
            with suppress(JsonFault):  # other lines of the log; a truncated last line
                yield loads(_TIMED.sub(b"", line, count=1))
    elif source.peek.records:
        inside = _listed_exchanges(source.peek.records[0]) if source.peek.kind == "json" else None
        yield from source.peek.records if inside is None else inside
    elif is_stream(text := head.decode("utf-8", "replace")):
        yield from stream_events(text)


def records(source: Source) -> Iterator[Record | Problem | Ignored]:
    """Yields and counts the source's records: one for each exchange, in any kind of file.

    In the text of a stream each line is a record; lines without data are ignored.
    """
    kind = source.peek.kind
    if looks_like_cassette(source.head):  # first, since its block texts may be JSON
        yield from _cassette(source)
    elif _TIMED.match(source.head):
        yield from _text_lines(source, timed=True)
    elif kind == "text" and is_stream(source.head.decode("utf-8", "replace")):
        yield from _text_lines(source, timed=False)
    elif kind == "json" and (inside := _listed_exchanges(source.document())) is not None:
        yield from (_attached(source, item) for item in source.counted(inside))
    else:
        yield from source.records()


def _attached(source: Source, record: Record) -> Record:
    """Returns an entry of a HAR file with the bodies that Playwright keeps in files beside it."""
    value = as_dict(record.value)
    attached: dict[str, Json] = {}
    for side, key in (("request", "postData"), ("response", "content")):
        body = as_dict(value, side, key)
        name = body.get("_file")
        if isinstance(name, str) and "text" not in body:
            other, data = source.sibling(name), b""
            with suppress(*STREAM_ERRORS):
                data = other.whole()[: source.max_record_bytes] if other is not None else b""
            text = {"text": base64.b64encode(data).decode(), "encoding": "base64"}
            kept = {one: item for one, item in body.items() if one != "_file"}
            attached[side] = {
                **as_dict(value[side]),
                key: {**kept, **text} if text["text"] else kept,
            }
    return replace(record, value={**value, **attached}) if attached else record


def _listed_exchanges(document: Json | Problem) -> list[Json] | None:
    """Returns the exchanges in a JSON cassette, a HAR file or CloudWatch's lists, else None."""
    if not isinstance(document, dict):
        return None
    lists = (
        as_dict(document.get("log")).get("entries"),
        *map(document.get, LIST_KEYS),
        *(document[key] for key in _WIREMOCK_KEYS if _are_pairs(document.get(key))),
        gateway_records(document),
    )
    return next((found for found in lists if isinstance(found, list)), None)


def _are_pairs(value: Json) -> bool:
    items = as_list(value)[:3]
    return bool(items) and all(
        isinstance(as_dict(item).get(key), dict)
        for item in items
        for key in ("request", "response")
    )


def _cassette(source: Source) -> Iterator[Record | Problem]:
    count = 0
    try:
        with source.open() as stream:
            for item in interactions(stream, source.max_record_bytes):
                source.count_records()
                where = f"interaction {count}"
                yield item if isinstance(item, Problem) else source.seen(where, item)
                count += 1
    except STREAM_ERRORS as error:
        source.count_records()
        yield stream_problem(error, f"after interaction {count}")


def _text_lines(source: Source, *, timed: bool) -> Iterator[Record | Problem | Ignored]:
    """Yields the values of lines that begin with a time, or of the fields of a stream."""
    for item in source.lines():
        if isinstance(item, Problem):
            yield item
            continue
        number, line, ended = item
        where = f"line {number}"
        if not timed:
            values = stream_events(line.decode("utf-8", "replace"))
            yield source.seen(where, values[0]) if values else Ignored("stream_field")
            continue
        try:
            yield source.seen(where, loads(_TIMED.sub(b"", line, count=1)))
        except JsonFault as fault:
            yield fault.at(where) if ended else replace(fault.at(where), code="truncated")


_FIRST_LINE = 1 << 20
"""Maximum bytes of a first line that recognition reads."""

Half = Literal["request", "result"]


def _is_store(folder: Listing) -> bool:
    """Returns whether a folder is a job: JSONL files with custom_id, exactly one with requests."""
    names = [name for name in folder.names() if not name.startswith(".")]
    if len(names) < 2 or not all(name.endswith(".jsonl") for name in names):
        return False
    return bool(_halves(folder.first(name, _FIRST_LINE) for name in names))


def members(source: Source) -> Sequence[Source]:
    """Returns the members of a job's folder, the requests first; () for any other folder."""
    names = [member.name for member in source.members]
    if not all("/" not in name and name.endswith(".jsonl") for name in names):
        return ()
    halves = _halves(member.first(_FIRST_LINE) for member in source.members)
    pairs = sorted(zip(halves, source.members, strict=False), key=lambda pair: pair[0] != "request")
    return [member for _, member in pairs]


def _halves(files: Iterable[bytes]) -> list[Half]:
    halves: list[Half] = []
    for head in files:
        if (half := _half(head)) is None:
            return []
        halves.append(half)
    return halves if halves.count("request") == 1 and len(halves) > 1 else []


def _half(head: bytes) -> Half | None:
    try:
        value = as_dict(loads(head.partition(b"\n")[0]))
    except JsonFault:
        return None
    if "custom_id" not in value:
        return None
    if "response" in value or "result" in value:
        return "result"
    return "request" if isinstance(value.get("body", value.get("params")), dict) else None


APIS: dict[str, Api] = {api.name: api for api in (CHAT, MESSAGES, RESPONSES, CONVERSE, GENERATE)}


_COLUMNS = ROW_COLUMNS | {
    "contents", "systemInstruction", "system_instruction", "generationConfig", "safetySettings",
    "toolConfig", "config", "instructions", "output", "text", "include", "stop_sequences",
    "context_management", "mcp_servers", "container", "betas", "output_config", "output_format",
    "inferenceConfig", "additionalModelRequestFields", "guardrailConfig", "promptVariables",
    "requestMetadata", "system_prompt", "system_message", "response",
}  # fmt: skip
"""Columns of rows in the form of a request."""


@dataclass(frozen=True, slots=True)
class _Form:
    """Whole conversations in the form of an API's requests: rows, and lists of messages.

    name      of the API
    summary   of its reader
    messages  describes the messages, for the reason of recognition
    is_row    returns whether a record is a row
    history   parses a row
    is_list   returns whether values are the messages of one conversation; None: lists are not read
    key       of the messages in a row
    read_row  reads a row instead of `history`; None: a row contains only one conversation
    """

    name: str
    summary: str
    messages: str
    is_row: Callable[[Json], bool]
    history: Callable[[dict[str, Json]], History]
    is_list: Callable[[Sequence[Json]], bool] | None = None
    key: str = "messages"
    read_row: Callable[[str, dict[str, Json]], Iterator[Event]] | None = None

    def list_history(self, messages: list[Json]) -> History:
        """Parses a list of messages."""
        return self.history({self.key: messages})


def _is_tuning_row(api: str, key: str, role: str, value: Json) -> bool:
    """Returns whether a record is the body of a request that ends with the model's message."""
    if not isinstance(value, dict) or request_dialect(value) != api:
        return False
    return [one.get("role") for one in as_dicts(value.get(key))[-1:]] == [role]


_FORMS = (
    _Form(
        OPENAI_CHAT,
        "OpenAI chat completions: request/response captures (pair lines, VCR, HAR, Batch, "
        "nock), chunks, answers of Ollama's own API, rows with messages and tools, lists of "
        "messages",
        "chat messages", openai_chat.is_row, CHAT.history, openai_chat.is_list,
        read_row=openai_chat.read_row,
    ),
    _Form(
        ANTHROPIC,
        "Anthropic Messages: request/response captures (pair lines, VCR, HAR, Batch, nock), "
        "streams, rows and lists of messages; known by its blocks (tool_use, tool_result) and "
        "input_schema",
        "messages of blocks", anthropic.is_row, read_body, anthropic.is_list,
    ),
    _Form(
        OPENAI_RESPONSES,
        "OpenAI Responses: request/response captures (pair lines, VCR, HAR, Batch, nock), "
        "streams, histories kept by the server (previous_response_id, conversation), and lists "
        "of items",
        "items", openai_responses.is_row, RESPONSES.history, openai_responses.is_list, key="input",
    ),
    _Form(
        BEDROCK,
        "Amazon Bedrock: Converse captures (pair lines, VCR, HAR, nock), event streams, and "
        "model invocation logs of S3 and CloudWatch; known by blocks without a type, or by "
        "schemaType",
        "messages of Converse", partial(_is_tuning_row, BEDROCK, "messages", "assistant"),
        CONVERSE.history,
    ),
    _Form(
        GEMINI,
        "Gemini API and Vertex AI: captures of generateContent and interactions, streams, Batch "
        "files, dumps of the Python SDK; known by contents with parts, candidates, or typed "
        "steps",
        "contents", partial(_is_tuning_row, GEMINI, "contents", "model"), GENERATE.history,
    ),
)  # fmt: skip


def _form(value: Json) -> _Form | None:
    if isinstance(value, list):
        # A whole list is a conversation, unlike records of which each is a message.
        return _list_form(value) or (_FORMS[0] if openai_chat.is_plain_list(value) else None)
    return next((form for form in _FORMS if form.is_row(value)), None)


def _list_form(values: Sequence[Json]) -> _Form | None:
    return next((form for form in _FORMS if form.is_list and form.is_list(values)), None)


def _read_row(form: _Form, item: Record) -> Iterator[Event]:
    if isinstance(item.value, list):
        history = form.list_history(item.value)
        yield row_conversation(item.where, item.where, history, complete=False)
    elif form.read_row is not None:
        yield from form.read_row(item.where, as_dict(item.value))
    else:
        yield row_conversation(item.where, item.where, form.history(as_dict(item.value)))


class Logs:
    """Distributes the exchanges of one source to a `Log` for each API.

    `own` is the API of exchanges whose API is unknown. `context` is that of the conversations; the
    default is for requests recorded as they were sent.
    """

    def __init__(
        self,
        own: str,
        apis: Mapping[str, Api] = APIS,
        context: Context = Context("proven"),  # noqa: B008 - frozen
    ) -> None:
        self.own = own
        self._apis = apis
        self._logs: dict[str, Log] = {}
        self._answers = LoggedAnswers()
        self._context = context
        self._halves: dict[str, list[Exchange]] = {}  # requests and responses alone, by their ids

    def take(self, exchange: Exchange) -> Iterator[Event]:
        """Reads one exchange, or half of one; yields the events that are now final."""
        if not exchange.ids:
            yield from self._take(exchange)
            return
        # An id of several halves, such as that of a trace, joins none of them.
        waiting = (self._halves.get(one, []) for one in exchange.ids)
        others = (halves[0] for halves in waiting if len(halves) == 1)
        pairs = ((other, _joined(other, exchange)) for other in others)
        other, whole = next((pair for pair in pairs if pair[1] is not None), (None, None))
        if other is None or whole is None:
            for one in exchange.ids:
                self._halves.setdefault(one, []).append(exchange)
            return
        for one in other.ids:
            self._halves[one].remove(other)
        yield Used()
        yield from self._take(whole)

    def _take(self, exchange: Exchange) -> Iterator[Event]:
        name = exchange.api or exchange.body_dialect
        exchange = replace(exchange, log=None, api=name)  # the recorder does not matter
        name = name if name is not None and name in self._apis else self.own
        if name not in self._logs:
            self._logs[name] = Log(self._apis[name], self._answers, self._context)
        yield from self._logs[name].take(exchange)

    def rest(self) -> Iterator[Event]:
        """Yields the events of conversations that are still open at the end of the source."""
        left = {one.where: one for halves in self._halves.values() for one in halves}
        for exchange in left.values():
            yield from self._take(exchange)
        self._halves.clear()
        for log in self._logs.values():
            yield from log.rest()


def _joined(one: Exchange, other: Exchange) -> Exchange | None:
    """Joins a request and a response into one exchange; None if they are not one of each."""
    sent, got = (one, other) if one.request is not None else (other, one)
    if sent.request is None or got.request is not None:
        return None
    return replace(got, where=sent.where, url=sent.url or got.url, request=sent.request, ids=())


def first_values(source: Source) -> Iterator[Json]:
    """Yields the first records; in a Batch job, the first of each file."""
    for part in members(source) or [source]:
        yield from islice(_peeked(part), _PEEK_EXCHANGES)


@once
def first_api(source: Source) -> tuple[str | None, str]:
    """Returns the reader of the first record that is an exchange or a row, and the reason."""
    if (whole := _list_form(source.peek.records)) is not None:
        return whole.name, f"a list of {whole.messages}"
    for value in first_values(source):
        opened = open_exchange(Record("", value))
        logged = isinstance(opened, Exchange) and opened.log is not None
        if not logged and (form := _form(value)) is not None:
            return form.name, f"rows with {form.messages}"
        if not isinstance(value, dict):
            continue
        name = opened.dialect if isinstance(opened, Exchange) else None
        if (
            name in (OPENAI_CHAT, ANTHROPIC)
            and "messages" in value
            and not (openai_chat.is_chat(value) or anthropic.is_body(value))
        ):
            continue  # another format's `messages`
        if name is not None and isinstance(opened, Exchange):
            kind = "events" if opened.events else "responses"
            return name, f"{kind} of {name}" if opened.request is None else f"requests to {name}"
    return None, ""


def _records(source: Source) -> Iterator[Record | Problem | Ignored]:
    """Yields the records of a file or a Batch job; results first, since that needs less memory."""
    if not source.members:
        yield from records(source)
    for member in reversed(members(source)):
        for item in records(member):
            if isinstance(item, Ignored):
                yield item
            else:
                yield replace(item, where=f"{member.name} {item.where}")


def _read_captures(source: Source, own: str) -> Iterator[Event]:
    if (whole := _list_form(source.peek.records)) is not None:
        yield from read_list(source, whole.list_history)
        return
    logs = Logs(own)
    for item in _records(source):
        if isinstance(item, Problem | Ignored):
            yield item
            continue
        if (form := _form(item.value)) is not None:
            row_events = with_outcome(_read_row(form, item), item.value)
            yield from count_columns(row_events, as_dict(item.value), _COLUMNS)
            continue
        opened = open_exchange(item)
        if isinstance(opened, Exchange):
            yield from logs.take(replace(opened, outcome=outcome_beside(item.value)))
        else:
            yield opened
    yield from logs.rest()


def _reader(form: _Form) -> Reader:
    def recognise(source: Source) -> str | None:
        name, reason = first_api(source)
        return reason if name == form.name else None

    def splits(source: Source) -> bool:
        # Rows are independent; requests continue earlier ones.
        return source.peek.kind == "jsonl" and all(
            form.is_row(one) or (isinstance(one, list) and _form(one) is form)
            for one in source.peek.records
        )

    return Reader(
        name=form.name,
        summary=form.summary,
        evidence=("documentation", "files"),
        recognise=recognise,
        generic=True,
        read=partial(_read_captures, own=form.name),
        is_store=_is_store,
        splits=splits,
    )


READERS = tuple(map(_reader, _FORMS))


# -- LiteLLM's records, which its proxy logs as received, not as sent ------------------------------

_CUT = Problem(
    "truncated", "", "LiteLLM truncated a text that was too long for its database", records=0
)


def _recognise(source: Source) -> str | None:
    if not any(map(is_litellm, first_values(source))):
        return None  # first_api takes much longer
    return "records with LiteLLM's call_type" if first_api(source)[0] == LITELLM else None


def _read(source: Source) -> Iterator[Event]:
    """Yields the source's conversations and the events of its other records."""
    apis = {
        name: replace(api, history=partial(_history, api), answers=_answers)
        for name, api in APIS.items()
    }
    logs = Logs(OPENAI_CHAT, apis, Context("rendered"))
    for item in records(source):
        opened = item if isinstance(item, Problem | Ignored) else open_exchange(item)
        if not isinstance(opened, Exchange):
            yield opened
        elif has_removed([*seen(opened.request or {}), *_bodies(opened)]):
            yield _redacted(opened)
        else:
            yield from logs.take(opened)
    yield from logs.rest()


def _history(api: Api, body: dict[str, Json]) -> History:
    history = api.history(body)
    if not has_shortened(seen(body)):
        return history
    return replace(history, problems=(*history.problems, _CUT))


def _answers(exchange: Exchange) -> Sequence[ApiAnswer]:
    """Parses the answers by the form of the response, which is OpenAI's for most APIs."""
    dialect = replace(exchange, request=None, log=None, api=None, url="").dialect
    name = dialect if dialect in APIS else exchange.api
    answers = APIS[name].answers(exchange) if name in APIS else ()
    if not has_shortened(_bodies(exchange)):
        return answers
    return [replace(answer, problems=(*answer.problems, _CUT)) for answer in answers]


def _bodies(exchange: Exchange) -> tuple[Json, ...]:
    return (exchange.response, *(exchange.events or ()))


def _redacted(exchange: Exchange) -> Event:
    """Returns the problem of a redacted record; a rejected conversation if the answer has calls."""
    problem = Problem("redacted", exchange.where, "LiteLLM logged no contents")
    made = next((answer for answer in _answers(exchange) if calls(answer.message)), None)
    if made is None:
        return problem
    return Conversation(
        id=exchange.where,
        record=exchange.where,
        messages=with_request_keys([made.message]),
        model=made.model,
        records=1,
        problems=(replace(problem, records=0),),
    )


READER = Reader(
    name=LITELLM,
    summary=(
        "LiteLLM: StandardLoggingPayload records of its callbacks (S3, GCS, Datadog, JSONL) and "
        "rows of LiteLLM_SpendLogs; known by call_type"
    ),
    evidence=("source",),
    recognise=_recognise,
    read=_read,
)
