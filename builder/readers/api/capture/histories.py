"""Turns API exchanges into conversations, each from the requests that extend one another.

Each request repeats the whole history, so the last request of a conversation and its answer contain
all of it (docs/formats/http-captures.md "Rules"). Requests are compared as the parsed types in
`api`, not as bytes, since a client may serialise them differently, omit thoughts, or assign its own
call ids.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from builder.conversation import Context, Conversation, Event, Ignored, Json, Part
from builder.problem import Problem
from builder.readers.api.capture.api import Api, ApiAnswer, History
from builder.readers.api.capture.chain import RequestChain
from builder.readers.api.capture.dialect import path_for_counting
from builder.readers.api.capture.envelope import Exchange
from builder.readers.api.capture.given_answers import abandoned, answer_message, record_of
from builder.readers.api.capture.response_state import response_problem, why_unanswered
from builder.readers.toolkit.call_keys import looks_random, with_request_keys
from builder.readers.toolkit.comparison import Marks, calls, thoughts, without_billing
from builder.readers.toolkit.logged_answers import LoggedAnswers

MAX_OPEN = 200
"""Maximum number of open conversations; beyond it, the least recently used is finished."""

MAX_REMEMBERED = 10_000
"""Maximum number of calls whose thoughts are remembered for requests that lack them."""


class Log:
    """Turns the exchanges of one API in one source into conversations.

    Call `take` for each in the order of the log, then `rest`. All logs of a source share `logged`.
    """

    def __init__(self, api: Api, logged: LoggedAnswers, context: Context) -> None:
        self.api = api
        self._complete = api.complete() if api.complete is not None else None
        self._histories = Histories(logged, context)
        self._bare: list[Exchange] = []  # pieces of one response without a request

    def rest(self) -> Iterator[Event]:
        """Yields the events of conversations that are still open at the end of the log."""
        yield from self._flush()
        yield from self._histories.rest()

    def take(self, exchange: Exchange) -> Iterator[Event]:
        """Reads one exchange; yields the events that are now final."""
        name = exchange.dialect or (self.api.name if exchange.key else None)
        if self._complete is not None and name in (None, self.api.name):
            exchange = self._complete(exchange)
        if name != self.api.name:
            path = path_for_counting(exchange.url) if exchange.url else "unknown"
            yield Ignored(f"other_api:{name or path}")
            return
        if exchange.request is None:
            if self._bare and not self.api.continues(_body(self._bare[-1]), _body(exchange)):
                yield from self._flush()
            self._bare.append(exchange)
        else:
            yield from self._flush()
            history = _unbilled(self.api.history(exchange.request))
            history = replace(history, outcome=history.outcome or exchange.outcome)
            sent = exchange.sent
            own = len(_unbilled(self.api.history(sent)).messages) if sent is not None else None
            answers = self.api.answers(exchange)
            if len(answers) == 1:  # choices of one response share its id
                message = replace(answers[0].message, response=exchange.response_id)
                answers = (replace(answers[0], message=message),)
            yield from self._histories.take(exchange, history, answers, own=own)

    def _flush(self) -> Iterator[Event]:
        """Yields the events of the response in the collected pieces."""
        if not self._bare:
            return
        first, last, count = self._bare[0], self._bare[-1], len(self._bare)
        if count > 1:
            pieces = [event for piece in self._bare for event in piece.events or (piece.response,)]
            first = replace(first, response=None, events=tuple(pieces))
        self._bare.clear()
        yield from _without_request(first, last, count, self.api.answers(first))


class Histories:
    """Turns parsed requests and answers into conversations.

    Call `take` for each in the order of the log, then `rest`. `logged` collects the answers; an
    assistant turn of a request that is none of them is not a target. Without `logged`, turns are
    not checked. `context` is that of the conversations.
    """

    def __init__(self, logged: LoggedAnswers | None = None, context: Context | None = None) -> None:
        self.marks = Marks()
        self._logged = logged
        self._context = context
        self._open: OrderedDict[str, RequestChain] = OrderedDict()  # by id, last used at the end
        self._index: dict[bytes, list[RequestChain]] = {}  # by the digests of their prefixes
        self._thoughts: OrderedDict[str, tuple[Part, ...]] = OrderedDict()  # by call id

    def rest(self) -> Iterator[Event]:
        """Yields the events of conversations that are still open at the end of the log."""
        for chain in self._open.values():
            yield from self._events(chain)
        self._open.clear()
        self._index.clear()

    def _events(self, chain: RequestChain) -> Iterator[Event]:
        return chain.events(self._thoughts, self._logged, self._context)

    def take(
        self,
        exchange: Exchange,
        history: History,
        answers: Sequence[ApiAnswer],
        *,
        own: int | None = None,
    ) -> Iterator[Event]:
        """Reads one request, which counts as one record; yields the events that are now final.

        `exchange.where` must be unique in the source. Assistant turns of the history from message
        `own` on are answers from this response as well.
        """
        if not history.messages:
            yield from _without_request(exchange, exchange, 1, answers)
            return
        answers = tuple(answers)
        earlier = _own_turns(history, own)
        self._remember([*earlier.values(), *answers])
        marks = self.marks.of(history.messages, history.session)
        for known in self._index.get(marks[-1], ()):
            if (code := known.repeated_by(exchange, history, answers)) is not None:
                yield response_problem(exchange, answers) or Ignored(code)
                new = [answer for answer in answers if code == "prefix" or not answer.usable]
                yield from abandoned(
                    exchange, history, new, known.continued_answer(history, answers)
                )
                return
        chain = self._continued(history, marks)
        if chain is None:
            answered_before = any(
                len(known.marks) == len(marks) and known.has_same_prompts(history)
                for known in self._index.get(marks[-1], ())
            )
            chain = RequestChain(exchange, history, answers, answered_before=answered_before)
            self._open[chain.id] = chain
        else:
            yield from chain.add(exchange, history, answers)
            self._open.move_to_end(chain.id)
        for at, answer in earlier.items():
            chain.responses.setdefault(at, (exchange, answer))
        for mark in marks[len(chain.marks) :]:
            self._index.setdefault(mark, []).append(chain)
        chain.marks += marks[len(chain.marks) :]
        if len(self._open) > MAX_OPEN:
            _, oldest = self._open.popitem(last=False)
            for mark in oldest.marks:
                self._index[mark].remove(oldest)
                if not self._index[mark]:
                    del self._index[mark]
            yield from self._events(oldest)

    def _continued(self, history: History, marks: list[bytes]) -> RequestChain | None:
        """Returns the longest conversation that a request continues, or None.

        Among equally long ones, one with exactly the same system prompts has precedence.
        """
        for end in range(len(marks), 0, -1):
            fits = [
                chain
                for chain in self._index.get(marks[end - 1], ())
                if len(chain.history.messages) == end
                and chain.is_continued_by(history, tools=self._logged is not None)
            ]
            if fits:
                return next((chain for chain in fits if chain.has_same_prompts(history)), fits[0])
        return None

    def _remember(self, answers: Iterable[ApiAnswer]) -> None:
        for answer in answers:
            if self._logged is not None and answer.usable:
                self._logged.add([answer.message])
            if thought := thoughts(answer.message):
                for call in calls(answer.message):
                    if call.id is not None and looks_random(call.id):
                        self._thoughts[call.id] = thought
        while len(self._thoughts) > MAX_REMEMBERED:
            self._thoughts.popitem(last=False)


def _own_turns(history: History, own: int | None) -> dict[int, ApiAnswer]:
    """Returns the assistant turns from message `own` on, by position."""
    if own is None:
        return {}
    return {
        at: ApiAnswer(message)
        for at, message in enumerate(history.messages[own:], own)
        if message.role == "assistant"
    }


def _unbilled(history: History) -> History:
    messages = without_billing(history.messages)
    if messages == history.messages:
        return history
    changes = history.changes + Counter({"billing_line_dropped": 1})
    return replace(history, messages=messages, changes=changes)


def _without_request(
    first: Exchange, last: Exchange, records: int, answers: Sequence[ApiAnswer]
) -> Iterator[Event]:
    """Yields rejected conversations for answers to a request that was not recorded."""
    if not answers:
        yield Problem("no_request", first.where, f"no request, {why_unanswered(first)}", records)
    detail = "the request of this answer was not recorded"
    problem = Problem("no_request", first.where, detail, records=0)
    for number, answer in enumerate(answers):
        yield Conversation(
            id=f"{first.where} answer {number}" if number else first.where,
            record=record_of(first, last),
            messages=with_request_keys([answer_message(answer)]),
            model=answer.model,
            records=0 if number else records,
            problems=(problem,),
            changes=answer.changes,
        )


def _body(exchange: Exchange) -> Json:
    return exchange.events[-1] if exchange.events else exchange.response
