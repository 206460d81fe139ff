"""Turns API exchanges into conversations, each from the requests that extend one another.

Requests are compared as parsed messages, not as bytes: clients serialise them differently, omit
thoughts, and assign call ids of their own (docs/formats/http-captures.md "Rules").
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Text,
    Unparsed,
    lowest,
)
from builder.problem import Problem
from builder.readers.api.codec import Api, ApiAnswer, History
from builder.readers.api.dialects import path_for_counting
from builder.readers.api.exchanges import Exchange
from builder.readers.toolkit.comparison import (
    LoggedAnswers,
    Marks,
    calls,
    completes,
    cut_off,
    digests,
    is_same_turn,
    is_whole,
    lacks_calls,
    looks_random,
    prefilled,
    thoughts,
    with_request_keys,
    without_billing,
)
from builder.readers.toolkit.narrow import as_dict, as_str


def abandoned(
    exchange: Exchange, history: History, answers: Sequence[ApiAnswer], chosen: ApiAnswer | None
) -> Iterator[Conversation]:
    """Yields rejected conversations for answers that no later request continued from.

    Their calls were made, so they stay in the ledger.
    """
    for number, answer in enumerate(answers):
        if answer is chosen or not answer.has_content:
            continue
        detail = f"no request continues from answer {number} of {len(answers)}"
        messages = [*history.messages, answer.message]
        yield Conversation(
            id=f"{exchange.where} answer {number}",
            record=exchange.where,
            messages=with_request_keys(messages),
            tools=history.tools_offered(messages),
            model=answer.model or history.model,
            problems=(Problem(answer.fault or "not_chosen", exchange.where, detail, records=0),),
            changes=history.changes + answer.changes,
            outcome=history.outcome,
        )


def _answer_message(answer: ApiAnswer) -> Message:
    message = replace(answer.message, model=answer.model)
    return cut_off(message, answer.fault) if answer.fault else message


def _record_of(first: Exchange, last: Exchange) -> str:
    return first.where if first.where == last.where else f"{first.where} to {last.where}"


PENDING = frozenset({"queued", "in_progress", "searching"})
"""States of a response that the client asks for again later (Responses, Interactions)."""


def _response_problem(exchange: Exchange, answers: Sequence[ApiAnswer]) -> Problem | None:
    """Returns the reject of an exchange whose response was recorded but contains no answer.

    None if there is an answer, even a truncated one, if no response was recorded, or if the
    response only states that it will be available later.
    """
    is_answered = exchange.sent is not None or any(answer.has_content for answer in answers)
    if is_answered or not _is_final(exchange):
        return None
    return Problem("no_response", exchange.where, _why_unanswered(exchange))


def _is_final(exchange: Exchange) -> bool:
    """Returns whether a response was recorded, as far as the server had one at that time."""
    if exchange.failed or exchange.text or exchange.is_empty:
        return True
    bodies = (exchange.response, *(exchange.events or ())[-1:])
    states = {as_str(as_dict(body).get("response", body), "status") for body in bodies}
    is_recorded = exchange.response is not None or exchange.events is not None
    return is_recorded and PENDING.isdisjoint(states)


def _why_unanswered(exchange: Exchange) -> str:
    """Returns why an exchange has no answer; quotes nothing of its bodies but an error type."""
    if exchange.failed:
        bodies = (exchange.response, *(exchange.events or ()))
        errors = [as_dict(body, "error") for body in bodies]
        kind = next((as_str(error.get("type")) for error in errors if error), "")
        status = f"status {exchange.status}" if (exchange.status or 0) >= 400 else "an error body"
        return f"{status} {kind[:40]}".rstrip()
    if exchange.elsewhere:
        return f"its body is in another file ({exchange.elsewhere}), which is not read"
    if exchange.response is None and exchange.text:
        return "the response is not JSON"
    if exchange.response is None and exchange.events is None and not exchange.is_empty:
        return "no response was recorded"
    has_body = any((exchange.response, exchange.events))
    return "the response contains no answer" if has_body else "the response is empty"


_PROMPTS = ("system", "developer")


class _RequestChain:
    """A conversation built from the requests read so far.

    `answered_before`: an earlier request with the same messages was answered, and no request
    continued that answer.
    """

    def __init__(
        self,
        exchange: Exchange,
        history: History,
        answers: tuple[ApiAnswer, ...],
        *,
        answered_before: bool,
    ) -> None:
        self.first = exchange
        self.answered_before = answered_before
        self.last = exchange
        self.counted = exchange  # the record that this conversation counts
        self.unanswered = _response_problem(exchange, answers)  # the reject of that record
        self.history = history
        self.answers = _with_models(answers, history)
        self.answered = history  # of the last request that has a usable answer
        self.marks: list[bytes] = []
        self.responses: dict[int, tuple[Exchange, ApiAnswer]] = {}  # by position in the history
        self.changes: Counter[str] = Counter()  # between requests
        self.moved_at = 0  # answers before this position had an earlier date
        self.added_at = 0  # answers before this position had fewer tools

    @property
    def id(self) -> str:
        """Returns the place of the first request."""
        return self.first.where

    def continued_answer(self, history: History, answers: Sequence[ApiAnswer]) -> ApiAnswer | None:
        """Returns the answer to a prefix of this history that the rest of it continues."""
        return _continued(answers, self.history.messages[len(history.messages) :])

    def repeated_by(
        self, exchange: Exchange, history: History, answers: Sequence[ApiAnswer]
    ) -> str | None:
        """Returns `retry` or `prefix` for an exchange that adds nothing to this chain, else None.

        The exchange's messages must be a prefix of this history, or equal to it.
        """
        if not self.has_same_prompts(history):
            return None
        usable = [answer for answer in answers if answer.usable]
        if len(history.messages) < len(self.history.messages):  # logged out of order
            chosen = self.continued_answer(history, answers)
            if chosen is not None:
                (chosen,) = _with_models((chosen,), history)
                self.responses.setdefault(len(history.messages), (exchange, chosen))
            return "prefix" if chosen is not None or not usable else None
        mine = [answer for answer in self.answers if answer.usable]
        same = [digests([answer.message]) for answer in usable]
        repeats = all(digests([answer.message]) in same for answer in mine)
        return "retry" if mine and (not usable or repeats) else None

    def is_continued_by(self, history: History, *, tools: bool) -> bool:
        """Returns whether a history that begins with this one continues one of its answers.

        After errors and unusable answers any messages do. After a usable answer, a history without
        it was rewritten by the client. `tools`: a request that changes or removes tools begins a
        new conversation.
        """
        known, offered = self.history.tools or (), history.tools or ()
        if tools and known != offered and not all(tool in offered for tool in known):
            return False
        rest = history.messages[len(self.history.messages) :]
        if _continued(self.answers, rest) is not None:
            return True
        return self.has_same_prompts(history) and not any(answer.usable for answer in self.answers)

    def has_same_prompts(self, history: History) -> bool:
        """Returns whether system prompts are equal, as far as both histories go."""
        pairs = zip(self.history.messages, history.messages, strict=False)
        return all(one == other for one, other in pairs if one.role in _PROMPTS)

    def add(
        self, exchange: Exchange, history: History, answers: tuple[ApiAnswer, ...]
    ) -> Iterator[Event]:
        """Adds the next request; yields what becomes of its record, and the answers it abandons.

        The conversation counts one record, the first one with a readable response.
        """
        at = len(self.history.messages)
        problem = _response_problem(exchange, answers)
        if problem is not None:
            yield problem
        elif self.unanswered is not None:
            yield self.unanswered
            self.unanswered, self.counted = None, exchange
        else:
            yield Ignored("retry" if len(history.messages) == at else "prefix")
        chosen = _continued(self.answers, history.messages[at:])
        yield from abandoned(self.last, self.history, self.answers, chosen)
        if chosen is not None:
            self.responses[at] = self.last, chosen
            self.answered_before = False
        moved = not self.has_same_prompts(history)
        before = len(self.history.tools or ())
        added = before < len(history.tools or ())
        later = added and before > 0
        self.changes.update(system_date_moved=int(moved), tools_added_later=int(later))
        self.moved_at = at + 1 if moved else self.moved_at
        self.added_at = at + 1 if added else self.added_at
        self.last, self.history = exchange, history
        self.answers = _with_models(answers, history)
        if any(answer.usable for answer in answers):
            self.answered = history

    def events(
        self,
        remembered: Mapping[str, tuple[Part, ...]],
        logged: LoggedAnswers | None,
        context: Context | None,
    ) -> Iterator[Event]:
        """Yields the conversation, and rejected conversations for answers outside of it.

        `remembered` contains thoughts by call id. Turns of the history are compared with
        `logged`, all answers of the capture; None: they are not compared.
        """
        chosen = next((answer for answer in self.answers if answer.usable), None)
        chosen = chosen or next((answer for answer in self.answers if answer.fault), None)
        changes = self.history.changes + self.changes
        continued = self._continued_positions(chosen)
        if self.history.loaded_at and context is not None:
            context = lowest((context, _AS_RENDERED))
        history = list(self._with_thoughts(remembered, continued, changes))
        lacks_tools = max(self.added_at, self.history.loaded_at)
        for at, message in enumerate(history[: max(lacks_tools, self.moved_at)]):
            # Its request had fewer tools or another date.
            if message.role == "assistant" and message.context is None and context is not None:
                own = Context.lacking({"tools"}) if at < lacks_tools else _AS_RENDERED
                history[at] = replace(message, context=lowest((context, own)))
        if logged is not None:
            history = self._with_untrained(history, logged)
        messages = self._with_beginnings(history, chosen, continued, changes)
        if chosen is None and messages[-1].untrained is not None and not calls(messages[-1]):
            messages.pop()  # a prefill whose answer is missing
        turns = [message for message in messages if message.role == "assistant"]
        if chosen is None and all(turn.untrained == REPEAT for turn in turns):
            last = self.counted
            yield self.unanswered or Problem("no_response", last.where, _why_unanswered(last))
            return
        rejected = self.unanswered
        if chosen is not None and self.counted is self.last:
            rejected = None  # the conversation itself ends with the fault
        if rejected is not None:
            yield rejected
        if chosen is not None:
            changes += chosen.changes
        answered = self.history if chosen is not None and chosen.usable else self.answered
        problems = self.history.problems + (chosen.problems if chosen is not None else ())
        if self.answered_before:
            retry = Problem("retry", "", "the same messages were answered before", 0)
            problems = (retry, *problems)
        conversation = Conversation(
            id=self.id,
            record=_record_of(self.first, self.last),
            messages=with_request_keys(messages),
            tools=answered.tools_offered(messages),
            model=(chosen.model if chosen is not None else None) or answered.model,
            records=1 if rejected is None else 0,
            problems=tuple(replace(problem, where=self.last.where) for problem in problems),
            changes=changes,
            complete=logged is not None and chosen is not None and chosen.usable,
            context=context,
            recorded=logged is not None,
            outcome=self.history.outcome,
        )
        yield conversation
        for at, (exchange, answer) in sorted(self.responses.items()):
            # Its turn is context; those at `continued` are completed by the next answer.
            if answer.fault is not None and at not in continued:
                detail = "the recorded answer is not whole, so it is not trained"
                yield Problem(answer.fault, exchange.where, detail, records=0)
        yield from self._rewritten(history, conversation)
        yield from abandoned(self.last, self.history, self.answers, chosen)

    def _rewritten(
        self, history: Sequence[Message], conversation: Conversation
    ) -> Iterator[Conversation | Problem]:
        """Yields a conversation for each answer that the client changed in later requests."""
        for at, (exchange, answer) in sorted(self.responses.items()):
            if history[at].untrained != "edited" or not answer.usable:
                continue
            if lacks_calls(answer.message, history[at:]):
                detail = "a later request has calls of this answer that its record lacks"
                yield Problem("truncated", exchange.where, detail, records=0)
                continue
            before = [
                replace(one, untrained=REPEAT)
                if one.role == "assistant" and one.untrained is None
                else one
                for one in history[:at]
            ]
            yield replace(
                conversation,
                id=f"{exchange.where} answer",
                record=exchange.where,
                messages=with_request_keys([*before, answer.message]),
                model=answer.model or conversation.model,
                records=0,
                complete=True,
            )

    def _continued_positions(self, chosen: ApiAnswer | None) -> frozenset[int]:
        """Returns the positions of answers that the model continues in its next answer.

        A client sends a turn that was paused or reached the limit as the last message of the next
        request, whose response contains the rest.
        """
        rests = {at: answer for at, (_, answer) in self.responses.items()}
        if chosen is not None:
            rests[len(self.history.messages)] = chosen
        return frozenset(
            at
            for at, (_, answer) in self.responses.items()
            if at + 1 in rests
            and rests[at + 1].prefill
            and is_whole(answer.message, self.history.messages[at : at + 1])
        )

    def _with_beginnings(
        self,
        history: Sequence[Message],
        chosen: ApiAnswer | None,
        continued: frozenset[int],
        changes: Counter[str],
    ) -> list[Message]:
        """Returns history and answer; a turn and its beginning are joined into one message.

        A turn whose beginning the client wrote (prefill) is marked `prefilled`.
        """
        rests = {at for at, (_, answer) in self.responses.items() if answer.prefill}
        turns = list(history)
        if chosen is not None:
            turns.append(_answer_message(chosen))
            rests |= {len(history)} if chosen.prefill else set()
        joined: list[Message] = []
        for at, message in enumerate(turns):
            if at not in rests or not joined or joined[-1].role != "assistant":
                joined.append(message)
                continue
            beginning = joined[-1]
            code = message.untrained
            if at - 1 not in continued:
                code = "prefilled" if _has_content(beginning) else code
            elif beginning.untrained is not None:  # the client wrote the beginning's beginning
                code = beginning.untrained
            joined[-1] = replace(prefilled(beginning, message), untrained=code)
            changes["prefill_joined"] += 1
        return joined

    def _with_thoughts(
        self,
        remembered: Mapping[str, tuple[Part, ...]],
        continued: frozenset[int],
        changes: Counter[str],
    ) -> Iterator[Message]:
        """Yields the history; its turns regain the thoughts of their own responses.

        Requests lack them, since providers do not expect them back. The faults of turns at
        `continued` do not count, since the next answer completes them.
        """
        for at, message in enumerate(self.history.messages):
            given = self.responses[at][1] if at in self.responses else None
            if message.role == "assistant" and not thoughts(message):
                ids = (call.id for call in calls(message) if call.id is not None)
                lost = thoughts(given.message) if given is not None else ()
                lost = lost or next((remembered[one] for one in ids if one in remembered), ())
                if lost:
                    changes["reasoning_restored"] += 1
                    message = replace(message, parts=(*lost, *message.parts))  # noqa: PLW2901 - completed
            if given is not None:
                completed = completes(given.message, self.history.messages[at:])
                if completed:
                    changes["answer_completed"] += 1
                message = given.named(message, completed=completed)  # noqa: PLW2901 - completed
            code = message.untrained
            if at in continued:
                code = None
            elif given is not None and given.is_no_target:  # even if the client continued with it
                unread = (part.code for part in given.message.parts if isinstance(part, Unparsed))
                code = given.fault or next(unread, "zero_weight")
            yield message if code == message.untrained else replace(message, untrained=code)

    def _with_untrained(self, history: Sequence[Message], logged: LoggedAnswers) -> list[Message]:
        """Returns the history with a reason for each assistant turn that is not a target.

        A turn is a target if it is the response to an earlier request of this chain. Responses in
        other chains are targets there.
        """
        marked: list[Message] = []
        turn = 0  # where the current run of assistant messages begins
        for at, message in enumerate(history):
            if message.role != "assistant":
                turn = at + 1
            elif message.untrained is None:
                code = self._untrained_code(history, turn, at, logged)
                message = replace(message, untrained=code)  # noqa: PLW2901 - completed
            marked.append(message)
        return marked

    def _untrained_code(
        self, history: Sequence[Message], turn: int, at: int, logged: LoggedAnswers
    ) -> str | None:
        message = history[at]
        if at in self.responses:
            return None if is_whole(self.responses[at][1].message, history[at:]) else "edited"
        if turn in self.responses and is_whole(
            self.responses[turn][1].message, history[turn : at + 1]
        ):
            return None
        if logged.contains(message):
            return REPEAT
        return "edited" if logged.shares_call(message) else "inserted"


def _continued(answers: Sequence[ApiAnswer], rest: Sequence[Message]) -> ApiAnswer | None:
    return next((answer for answer in answers if is_same_turn(answer.message, rest)), None)


def _with_models(answers: tuple[ApiAnswer, ...], history: History) -> tuple[ApiAnswer, ...]:
    return tuple(replace(item, model=item.model or history.model) for item in answers)


def _has_content(message: Message) -> bool:
    return any(not isinstance(part, Text) or part.text.strip() for part in message.parts)


_AS_RENDERED = Context("rendered")
"""Of turns that are shown with a date that their requests did not have."""


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
        name = exchange.dialect or (self.api.name if exchange.ids else None)
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
        self._open: OrderedDict[str, _RequestChain] = OrderedDict()  # by id, last used at the end
        self._index: dict[bytes, list[_RequestChain]] = {}  # by the digests of their prefixes
        self._thoughts: OrderedDict[str, tuple[Part, ...]] = OrderedDict()  # by call id

    def rest(self) -> Iterator[Event]:
        """Yields the events of conversations that are still open at the end of the log."""
        for chain in self._open.values():
            yield from self._events(chain)
        self._open.clear()
        self._index.clear()

    def _events(self, chain: _RequestChain) -> Iterator[Event]:
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
        first = len(history.messages) if own is None else own
        earlier = {
            at: ApiAnswer(message)
            for at, message in enumerate(history.messages[first:], first)
            if message.role == "assistant"
        }
        self._remember([*earlier.values(), *answers])
        marks = self.marks.of(history.messages, history.session)
        for known in self._index.get(marks[-1], ()):
            if (code := known.repeated_by(exchange, history, answers)) is not None:
                yield _response_problem(exchange, answers) or Ignored(code)
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
            chain = _RequestChain(exchange, history, answers, answered_before=answered_before)
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

    def _continued(self, history: History, marks: list[bytes]) -> _RequestChain | None:
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
        yield Problem("no_request", first.where, f"no request, {_why_unanswered(first)}", records)
    detail = "the request of this answer was not recorded"
    if first.elsewhere:
        detail = f"its body is in another file ({first.elsewhere}), which is not read"
    problem = Problem("no_request", first.where, detail, records=0)
    for number, answer in enumerate(answers):
        yield Conversation(
            id=f"{first.where} answer {number}" if number else first.where,
            record=_record_of(first, last),
            messages=with_request_keys([_answer_message(answer)]),
            model=answer.model,
            records=0 if number else records,
            problems=(problem,),
            changes=answer.changes,
        )


def _body(exchange: Exchange) -> Json:
    return exchange.events[-1] if exchange.events else exchange.response
