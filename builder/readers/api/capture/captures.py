"""Reads captures: every exchange is parsed by the API of its bodies.

The reader of the first exchange's API claims a file (`first_api`). Exchanges of other APIs in it
become separate conversations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from builder.conversation import Context, Event, Ignored, Json, Used
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.api.anthropic import rows as anthropic_rows
from builder.readers.api.anthropic.bodies import MESSAGES, read_body
from builder.readers.api.bedrock.bodies import CONVERSE, is_converse_row
from builder.readers.api.capture import batch
from builder.readers.api.capture.api import Api, History
from builder.readers.api.capture.dialect import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
)
from builder.readers.api.capture.envelope import Exchange, open_exchange
from builder.readers.api.capture.files import PEEK_EXCHANGES, peeked, records
from builder.readers.api.capture.histories import Log
from builder.readers.api.capture.rows import read_list, row_conversation
from builder.readers.api.gemini.bodies import GENERATE, is_generate_row
from builder.readers.api.openai_chat import rows as chat_rows
from builder.readers.api.openai_chat.bodies import CHAT
from builder.readers.api.openai_responses import rows as responses_rows
from builder.readers.api.openai_responses.bodies import RESPONSES
from builder.readers.toolkit.logged_answers import LoggedAnswers
from builder.readers.toolkit.narrow import as_dict
from builder.readers.toolkit.outcomes import outcome_beside, with_outcome
from builder.readers.toolkit.unknown_keys import ROW_COLUMNS, count_columns
from builder.sources.once import once
from builder.sources.source import Record, Source

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


_FORMS = (
    _Form(
        OPENAI_CHAT,
        "OpenAI chat completions: request/response captures (pair lines, VCR, HAR, Batch, "
        "nock), chunks, answers of Ollama's own API, rows with messages and tools, lists of "
        "messages",
        "chat messages", chat_rows.is_row, CHAT.history, chat_rows.is_list,
        read_row=chat_rows.read_row,
    ),
    _Form(
        ANTHROPIC,
        "Anthropic Messages: request/response captures (pair lines, VCR, HAR, Batch, nock), "
        "streams, rows and lists of messages; known by its blocks (tool_use, tool_result) and "
        "input_schema",
        "messages of blocks", anthropic_rows.is_row, read_body, anthropic_rows.is_list,
    ),
    _Form(
        OPENAI_RESPONSES,
        "OpenAI Responses: request/response captures (pair lines, VCR, HAR, Batch, nock), "
        "streams, histories kept by the server (previous_response_id, conversation), and lists "
        "of items",
        "items", responses_rows.is_row, RESPONSES.history, responses_rows.is_list, key="input",
    ),
    _Form(
        BEDROCK,
        "Amazon Bedrock: Converse captures (pair lines, VCR, HAR, nock), event streams, and "
        "model invocation logs of S3 and CloudWatch; known by blocks without a type, or by "
        "schemaType",
        "messages of Converse", is_converse_row, CONVERSE.history,
    ),
    _Form(
        GEMINI,
        "Gemini API and Vertex AI: captures of generateContent and interactions, streams, Batch "
        "files, dumps of the Python SDK; known by contents with parts, candidates, or typed "
        "steps",
        "contents", is_generate_row, GENERATE.history,
    ),
)  # fmt: skip


def _form(value: Json) -> _Form | None:
    """Returns how to read a record that is a whole conversation or the list of its messages."""
    if isinstance(value, list):
        return _list_form(value)
    return next((form for form in _FORMS if form.is_row(value)), None)


def _list_form(values: Sequence[Json]) -> _Form | None:
    """Returns how to read values that are the messages of one conversation."""
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
        self._halves: dict[str, Exchange] = {}  # lines of a Batch file, by their custom_id

    def take(self, exchange: Exchange) -> Iterator[Event]:
        """Reads one exchange; yields the events that are now final."""
        if exchange.key is None:
            yield from self._take(exchange)
            return
        other = self._halves.pop(exchange.key, None)
        whole = _joined(other, exchange) if other is not None else None
        if whole is not None:
            yield Used()
            yield from self._take(whole)
            return
        if other is not None:
            yield from self._take(other)
        self._halves[exchange.key] = exchange

    def _take(self, exchange: Exchange) -> Iterator[Event]:
        name = exchange.api or exchange.body_dialect
        exchange = replace(exchange, log=None, api=name)  # the recorder does not matter
        name = name if name is not None and name in self._apis else self.own
        if name not in self._logs:
            self._logs[name] = Log(self._apis[name], self._answers, self._context)
        yield from self._logs[name].take(exchange)

    def rest(self) -> Iterator[Event]:
        """Yields the events of conversations that are still open at the end of the source."""
        for exchange in self._halves.values():
            yield from self._take(exchange)
        self._halves.clear()
        for log in self._logs.values():
            yield from log.rest()


def _joined(one: Exchange, other: Exchange) -> Exchange | None:
    """Joins two lines of Batch files into one exchange; None if they do not belong together."""
    sent, got = (one, other) if one.request is not None else (other, one)
    if sent.request is None or got.request is not None:
        return None
    return replace(got, where=sent.where, url=sent.url, request=sent.request)


def first_values(source: Source) -> Iterator[Json]:
    """Yields the first records; in a Batch job, the first of each file."""
    for part in batch.members(source) or [source]:
        yield from islice(peeked(part), PEEK_EXCHANGES)


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
        if name in (OPENAI_CHAT, ANTHROPIC) and "messages" in value and not _is_body(value):
            continue  # another format's `messages`
        if name is not None and isinstance(opened, Exchange):
            return name, _reason(opened)
    return None, ""


def _is_body(value: dict[str, Json]) -> bool:
    return chat_rows.is_chat(value) or anthropic_rows.is_body(value)


def _reason(exchange: Exchange) -> str:
    if exchange.request is not None:
        return f"requests to {exchange.dialect}"
    return f"{'events' if exchange.events else 'responses'} of {exchange.dialect}"


def _records(source: Source) -> Iterator[Record | Problem | Ignored]:
    """Yields the records of a file or a Batch job; results first, since that needs less memory."""
    if not source.members:
        yield from records(source)
    for member in reversed(batch.members(source)):
        for item in records(member):
            if isinstance(item, Ignored):
                yield item
            else:
                yield replace(item, where=f"{member.name} {item.where}")


def read_captures(source: Source, own: str) -> Iterator[Event]:
    """Yields the conversations of a source of exchanges and the events of its other records."""
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
    """Returns the reader of the captures, rows and lists of an API."""

    def recognise(source: Source) -> str | None:
        name, reason = first_api(source)
        return reason if name == form.name else None

    def splits(source: Source) -> bool:
        # Rows are independent; requests continue earlier ones.
        return source.peek.kind == "jsonl" and all(map(form.is_row, source.peek.records))

    return Reader(
        name=form.name,
        summary=form.summary,
        evidence=("documentation", "files"),
        recognise=recognise,
        generic=True,
        read=partial(read_captures, own=form.name),
        is_store=batch.is_store,
        splits=splits,
    )


READERS = tuple(map(_reader, _FORMS))
