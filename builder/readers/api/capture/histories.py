"""From API exchanges to conversations: requests whose messages extend one another are one.

Each request repeats the whole history, so the last request of a conversation and its answer hold
all of it (http-captures.md "Rules"). What an API's bodies mean is the business of its reader, which
says it in the words of `_api`. What those say is compared, not bytes, since a client may
re-serialise, leave out thoughts, or give calls ids of its own.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from builder.conversation import Conversation, Event, Ignored, Json, Message, Part
from builder.problem import Problem
from builder.readers.api.capture.api import Api, ApiAnswer, History
from builder.readers.api.capture.dialect import shown_path
from builder.readers.api.capture.envelope import Exchange
from builder.readers.toolkit.call_keys import looks_random, with_request_keys
from builder.readers.toolkit.comparison import (
    Marks,
    calls,
    cut_off,
    digests,
    is_same_turn,
    prefilled,
    thoughts,
    without_billing,
)
from builder.readers.toolkit.narrow import as_dict, as_str

MAX_OPEN = 200
"""Conversations that may still go on. Beyond, the one untouched for longest is given out."""

MAX_REMEMBERED = 10_000
"""Calls whose thoughts are remembered for later requests that lack them."""


class Log:
    """The exchanges of one source on their way to conversations.

    `take` each in the order of the log, then `rest`: both give events.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        self._complete = api.complete() if api.complete is not None else None
        self._histories = Histories()
        self._bare: list[Exchange] = []  # pieces of one response without a request

    def rest(self) -> Iterator[Event]:
        """The events of what is still open at the end of the log."""
        yield from self._flush()
        yield from self._histories.rest()

    def take(self, exchange: Exchange) -> Iterator[Event]:
        """One more exchange: the events that it settles."""
        name = exchange.dialect or (self.api.name if exchange.key else None)
        if self._complete is not None and name in (None, self.api.name):
            exchange = self._complete(exchange)
        if name != self.api.name:
            path = shown_path(exchange.url) if exchange.url else "unknown"
            yield Ignored(f"other_api:{name or path}")
            return
        if exchange.request is None:
            if self._bare and not self.api.continues(_body(self._bare[-1]), _body(exchange)):
                yield from self._flush()
            self._bare.append(exchange)
        else:
            yield from self._flush()
            history = _unbilled(self.api.history(exchange.request))
            yield from self._histories.take(exchange, history, self.api.answers(exchange))

    def _flush(self) -> Iterator[Event]:
        """The response whose pieces were collected."""
        if not self._bare:
            return
        first, last, count = self._bare[0], self._bare[-1], len(self._bare)
        if count > 1:
            pieces = [event for piece in self._bare for event in piece.events or (piece.response,)]
            first = replace(first, response=None, events=tuple(pieces))
        self._bare.clear()
        yield from _without_request(first, last, count, self.api.answers(first))


class Histories:
    """Requests and their answers, already read, on their way to conversations.

    `take` each in the order of the log, then `rest`: both give events.
    """

    def __init__(self) -> None:
        self.marks = Marks()
        self._open: OrderedDict[str, _Chain] = OrderedDict()  # by id, the last touched at the end
        self._index: dict[bytes, list[_Chain]] = {}  # by the digests of their beginnings
        self._thoughts: OrderedDict[str, tuple[Part, ...]] = OrderedDict()  # by call id

    def rest(self) -> Iterator[Event]:
        """The events of what is still open at the end of the log."""
        for chain in self._open.values():
            yield from chain.events(self._thoughts)
        self._open.clear()
        self._index.clear()

    def take(
        self, exchange: Exchange, history: History, answers: Sequence[ApiAnswer]
    ) -> Iterator[Event]:
        """One more request, which counts as one record: the events that it settles.

        Of the exchange `where` names the request; no other may have the same.
        """
        if not history.messages:
            yield from _without_request(exchange, exchange, 1, answers)
            return
        answers = tuple(answers)
        self._remember(answers)
        marks = self.marks.of(history.messages, history.session)
        for known in self._index.get(marks[-1], ()):
            if (code := known.repeated_by(history, answers)) is not None:
                yield Ignored(code)
                new = [answer for answer in answers if code == "prefix" or not answer.usable]
                yield from _left(exchange, history, new, known.holds(history, answers))
                return
        chain = self._continued(history, marks)
        if chain is None:
            again = any(len(known.marks) == len(marks) for known in self._index.get(marks[-1], ()))
            chain = _Chain(exchange, history, answers, again=again)
            self._open[chain.id] = chain
        else:
            same = len(marks) == len(chain.history.messages)
            yield Ignored("retry" if same else "prefix")
            yield from chain.go_on(exchange, history, answers)
            self._open.move_to_end(chain.id)
        for mark in marks[len(chain.marks) :]:
            self._index.setdefault(mark, []).append(chain)
        chain.marks += marks[len(chain.marks) :]
        if len(self._open) > MAX_OPEN:
            _, oldest = self._open.popitem(last=False)
            for mark in oldest.marks:
                self._index[mark].remove(oldest)
                if not self._index[mark]:
                    del self._index[mark]
            yield from oldest.events(self._thoughts)

    def _continued(self, history: History, marks: list[bytes]) -> _Chain | None:
        """The conversation that a request goes on with: the longest of those that fit."""
        for end in range(len(marks), 0, -1):
            for chain in self._index.get(marks[end - 1], ()):
                if len(chain.history.messages) == end and chain.is_continued_by(history):
                    return chain
        return None

    def _remember(self, answers: Iterable[ApiAnswer]) -> None:
        for answer in answers:
            if thought := thoughts(answer.message):
                for call in calls(answer.message):
                    if call.id is not None and looks_random(call.id):
                        self._thoughts[call.id] = thought
        while len(self._thoughts) > MAX_REMEMBERED:
            self._thoughts.popitem(last=False)


class _Chain:
    """A conversation as far as its requests have come."""

    def __init__(
        self, exchange: Exchange, history: History, answers: tuple[ApiAnswer, ...], *, again: bool
    ) -> None:
        self.first = exchange
        self.again = again  # the same messages were answered before, and nothing went on from here
        self.last = exchange
        self.history = history
        self.answers = answers
        self.answered = history  # by the last request that has a usable answer
        self.marks: list[bytes] = []
        self.given: dict[int, ApiAnswer] = {}  # answers that the history went on with, by position

    @property
    def id(self) -> str:
        return self.first.where

    def holds(self, history: History, answers: Sequence[ApiAnswer]) -> ApiAnswer | None:
        """Which of the answers to a beginning of this history it went on with."""
        rest = self.history.messages[len(history.messages) :]
        return next((answer for answer in answers if is_same_turn(answer.message, rest)), None)

    def repeated_by(self, history: History, answers: Sequence[ApiAnswer]) -> str | None:
        """The code of an exchange that says nothing new: `retry` or `prefix`; None if it does.

        Its messages are a beginning of this history, or all of it.
        """
        usable = [answer for answer in answers if answer.usable]
        if len(history.messages) < len(self.history.messages):  # an earlier one, logged late
            chosen = self.holds(history, answers)
            if chosen is not None:
                self.given.setdefault(len(history.messages), chosen)
            return "prefix" if chosen is not None or not usable else None
        mine = [answer for answer in self.answers if answer.usable]
        same = [digests([answer.message]) for answer in usable]
        again = all(digests([answer.message]) in same for answer in mine)
        return "retry" if mine and (not usable or again) else None

    def is_continued_by(self, history: History) -> bool:
        """Whether messages that begin with this history go on after one of its answers.

        After an error, or an answer that is no target, any messages do. Where they go on with
        something that the model did not answer, the client rewrote the history.
        """
        rest = history.messages[len(self.history.messages) :]
        if any(is_same_turn(answer.message, rest) for answer in self.answers):
            return True
        return not any(answer.usable for answer in self.answers)

    def go_on(
        self, exchange: Exchange, history: History, answers: tuple[ApiAnswer, ...]
    ) -> Iterator[Event]:
        """Take the next request; the events are those of answers that it left behind."""
        at = len(self.history.messages)
        rest = history.messages[at:]
        fits = (answer for answer in self.answers if is_same_turn(answer.message, rest))
        chosen = next(fits, None)
        yield from _left(self.last, self.history, self.answers, chosen)
        if chosen is not None:
            self.given[at] = chosen
            self.again = False
        self.last, self.history, self.answers = exchange, history, answers
        if any(answer.usable for answer in answers):
            self.answered = history

    def events(self, remembered: dict[str, tuple[Part, ...]]) -> Iterator[Event]:
        """The conversation, and those of the answers that it does not hold."""
        chosen = next((answer for answer in self.answers if answer.usable), None)
        chosen = chosen or next((answer for answer in self.answers if answer.fault), None)
        changes = Counter(self.history.changes)
        messages = list(self._with_thoughts(remembered, changes))
        if chosen is not None and chosen.prefill:
            messages[-1] = prefilled(messages[-1], _written(chosen))
            changes["prefill_joined"] += 1
        elif chosen is not None:
            messages.append(_written(chosen))
        elif messages[-1].untrained is not None and not calls(messages[-1]):
            messages.pop()  # the client's beginning of an answer that did not come
        if not any(message.role == "assistant" for message in messages):
            yield Problem("no_response", self.last.where, _why_none(self.last))
            return
        if chosen is not None:
            changes += chosen.changes
        said = self.history if chosen is not None and chosen.usable else self.answered
        problems = self.history.problems + (chosen.problems if chosen is not None else ())
        if self.again:
            problems = (
                Problem("retry", "", "the same messages were answered before", 0),
                *problems,
            )
        yield Conversation(
            id=self.id,
            record=_record(self.first, self.last),
            messages=with_request_keys(messages),
            tools=_tools(said, messages),
            model=(chosen.model if chosen is not None else None) or said.model,
            records=1,
            problems=tuple(replace(problem, where=self.last.where) for problem in problems),
            changes=changes,
            outcome=self.history.outcome,
        )
        yield from _left(self.last, self.history, self.answers, chosen)

    def _with_thoughts(
        self, remembered: dict[str, tuple[Part, ...]], changes: Counter[str]
    ) -> Iterator[Message]:
        """The history, its turns with the thoughts that their own responses held.

        Requests lack them, since providers do not want them back.
        """
        for at, message in enumerate(self.history.messages):
            given = self.given.get(at)
            if message.role == "assistant" and not thoughts(message):
                ids = (call.id for call in calls(message) if call.id is not None)
                found = thoughts(given.message) if given is not None else ()
                found = found or next((remembered[one] for one in ids if one in remembered), ())
                if found:
                    changes["reasoning_restored"] += 1
                    message = replace(message, parts=(*found, *message.parts))  # noqa: PLW2901 - completed
            if given is not None and given.is_no_target:  # though it was gone on with
                message = replace(message, untrained="weight")  # noqa: PLW2901 - completed
            yield message


def _unbilled(history: History) -> History:
    messages = without_billing(history.messages)
    if messages == history.messages:
        return history
    changes = history.changes + Counter({"billing_line_dropped": 1})
    return replace(history, messages=messages, changes=changes)


def _without_request(
    first: Exchange, last: Exchange, records: int, answers: Sequence[ApiAnswer]
) -> Iterator[Event]:
    """Answers to a request that was not recorded."""
    if not answers:
        yield Problem("no_request", first.where, f"no request, {_why_none(first)}", records)
    detail = "the request of this answer was not recorded"
    problem = Problem("no_request", first.where, detail, records=0)
    for number, answer in enumerate(answers):
        yield Conversation(
            id=_numbered(first.where, number),
            record=_record(first, last),
            messages=with_request_keys([_written(answer)]),
            model=answer.model,
            records=0 if number else records,
            problems=(problem,),
            changes=answer.changes,
        )


def _left(
    exchange: Exchange, history: History, answers: Sequence[ApiAnswer], chosen: ApiAnswer | None
) -> Iterator[Conversation]:
    """Conversations for the answers that no later request went on with: their calls were made."""
    for number, answer in enumerate(answers):
        if answer is chosen or not answer.counts:
            continue
        detail = f"answer {number} of {len(answers)} was not gone on with"
        messages = [*history.messages, answer.message]
        yield Conversation(
            id=f"{exchange.where} answer {number}",
            record=exchange.where,
            messages=with_request_keys(messages),
            tools=_tools(history, messages),
            model=answer.model or history.model,
            problems=(Problem(answer.fault or "not_chosen", exchange.where, detail, records=0),),
            changes=history.changes + answer.changes,
            outcome=history.outcome,
        )


def _tools(history: History, messages: Sequence[Message]) -> tuple[Json, ...] | None:
    """The request's tools. Where none are recorded there were none, unless tools were called."""
    if history.tools is None and not any(calls(message) for message in messages):
        return ()
    return history.tools


def _written(answer: ApiAnswer) -> Message:
    """The answer's message; one that is no target ends with what says so."""
    return cut_off(answer.message, answer.fault) if answer.fault else answer.message


def _body(exchange: Exchange) -> Json:
    return exchange.events[-1] if exchange.events else exchange.response


def _numbered(where: str, number: int) -> str:
    return f"{where} answer {number}" if number else where


def _record(first: Exchange, last: Exchange) -> str:
    return first.where if first.where == last.where else f"{first.where} to {last.where}"


def _why_none(exchange: Exchange) -> str:
    """Why an exchange has no answer, in words that hold nothing of its bodies but a code."""
    if exchange.failed:
        bodies = (exchange.response, *(exchange.events or ()))
        errors = [as_dict(as_dict(body).get("error")) for body in bodies]
        kind = next((as_str(error.get("type")) for error in errors if error), "")
        status = f"status {exchange.status}" if exchange.status else "an error body"
        return f"{status} {kind[:40]}".rstrip()
    if exchange.response is None and exchange.text:
        return "the response is no JSON"
    if exchange.response is None and exchange.events is None:
        return "no response was recorded"
    return "the response says nothing"
