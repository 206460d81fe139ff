"""LiteLLM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from builder.conversation import Context, Conversation, Event, Ignored, Json
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.api.captures import APIS, Logs, first_api, first_values, records
from builder.readers.api.codec import Api, ApiAnswer, History
from builder.readers.api.dialects import OPENAI_CHAT
from builder.readers.api.exchanges import (
    LITELLM,
    Exchange,
    is_litellm,
    open_exchange,
    seen,
)
from builder.readers.toolkit.comparison import calls, with_request_keys
from builder.readers.toolkit.marks import has_removed, has_shortened
from builder.sources.source import Source

NAME = LITELLM

_CUT = Problem(
    "truncated", "", "LiteLLM truncated a text that was too long for its database", records=0
)


def _recognise(source: Source) -> str | None:
    if not any(map(is_litellm, first_values(source))):
        return None  # first_api takes much longer
    return "records with LiteLLM's call_type" if first_api(source)[0] == NAME else None


def read(source: Source) -> Iterator[Event]:
    """Yields the source's conversations and the events of its other records."""
    apis = {
        name: replace(api, history=partial(_history, api), answers=_answers)
        for name, api in APIS.items()
    }
    logs = Logs(
        OPENAI_CHAT, apis, Context("rendered")
    )  # the proxy logs requests as received, not as sent
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
    name=NAME,
    summary=(
        "LiteLLM: StandardLoggingPayload records of its callbacks (S3, GCS, Datadog, JSONL) and "
        "rows of LiteLLM_SpendLogs; known by call_type"
    ),
    evidence=("source",),
    recognise=_recognise,
    read=read,
)
