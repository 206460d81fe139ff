"""Builds a conversation of a capture from a chain of requests, each repeating the previous one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Event,
    Ignored,
    Message,
    Part,
    Text,
    Unparsed,
    lowest,
)
from builder.problem import Problem
from builder.readers.api.capture.api import ApiAnswer, History
from builder.readers.api.capture.envelope import Exchange
from builder.readers.api.capture.given_answers import abandoned, answer_message, record_of
from builder.readers.api.capture.response_state import response_problem, why_unanswered
from builder.readers.toolkit.call_keys import with_request_keys
from builder.readers.toolkit.comparison import (
    calls,
    digests,
    is_same_turn,
    is_whole,
    prefilled,
    thoughts,
)
from builder.readers.toolkit.logged_answers import LoggedAnswers

_PROMPTS = ("system", "developer")


class RequestChain:
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
        self.unanswered = response_problem(exchange, answers)  # the reject of that record
        self.history = history
        self.answers = _with_models(answers, history)
        self.answered = history  # of the last request that has a usable answer
        self.marks: list[bytes] = []
        self.responses: dict[int, tuple[Exchange, ApiAnswer]] = {}  # by position in the history
        self.changes: Counter[str] = Counter()  # between requests
        self.changed_at = 0  # answers before this position had fewer tools or an earlier date

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
        if tools and not _only_adds(self.history, history):
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
        problem = response_problem(exchange, answers)
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
        added = 0 < len(self.history.tools or ()) < len(history.tools or ())
        self.changes.update(system_date_moved=int(moved), tools_added_later=int(added))
        if moved or added:
            self.changed_at = at + 1
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
        lower = lowest((context, _AS_RENDERED)) if context is not None else None
        if self.history.loads:
            context = lower
        history = [
            replace(message, context=lower)
            if at < self.changed_at and message.role == "assistant" and message.context is None
            else message
            for at, message in enumerate(self._with_thoughts(remembered, continued, changes))
        ]
        if logged is not None:
            history = self._with_untrained(history, logged)
        messages = self._with_beginnings(history, chosen, continued, changes)
        if chosen is None and messages[-1].untrained is not None and not calls(messages[-1]):
            messages.pop()  # a prefill whose answer is missing
        turns = [message for message in messages if message.role == "assistant"]
        if chosen is None and all(turn.untrained == REPEAT for turn in turns):
            last = self.counted
            yield self.unanswered or Problem("no_response", last.where, why_unanswered(last))
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
            record=record_of(self.first, self.last),
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
        yield from self._cut_off(continued)
        yield from self._rewritten(history, conversation)
        yield from abandoned(self.last, self.history, self.answers, chosen)

    def _cut_off(self, continued: frozenset[int]) -> Iterator[Problem]:
        """Yields a problem for each cut answer that the client continued from.

        Its turn is context; those at `continued` are completed by the next answer.
        """
        for at, (exchange, answer) in sorted(self.responses.items()):
            if answer.fault is not None and at not in continued:
                detail = "the recorded answer is not whole, so it is not trained"
                yield Problem(answer.fault, exchange.where, detail, records=0)

    def _rewritten(
        self, history: Sequence[Message], conversation: Conversation
    ) -> Iterator[Conversation]:
        """Yields a conversation for each answer that the client changed in later requests."""
        for at, (exchange, answer) in sorted(self.responses.items()):
            if history[at].untrained != "edited" or not answer.usable:
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
            turns.append(answer_message(chosen))
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
                message = given.named(message)  # noqa: PLW2901 - completed
            code = message.untrained
            if at in continued:
                code = None
            elif given is not None and given.is_no_target:  # even if the client continued with it
                code = _fault_code(given)
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
        """Returns why the assistant message at `at` is not a target; its run begins at `turn`."""
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
    """Returns the first answer that messages begin with."""
    return next((answer for answer in answers if is_same_turn(answer.message, rest)), None)


def _with_models(answers: tuple[ApiAnswer, ...], history: History) -> tuple[ApiAnswer, ...]:
    """Returns answers to a request; those that name no model are by the model that it names."""
    return tuple(replace(item, model=item.model or history.model) for item in answers)


def _has_content(message: Message) -> bool:
    """Returns whether a message contains more than white space."""
    return any(not isinstance(part, Text) or part.text.strip() for part in message.parts)


def _fault_code(answer: ApiAnswer) -> str:
    """Returns the code of an answer that is not a target."""
    unread = (part.code for part in answer.message.parts if isinstance(part, Unparsed))
    return answer.fault or next(unread, "zero_weight")


_AS_RENDERED = Context("rendered")
"""Of turns that are shown with tools or a date that their requests had in another place."""


def _only_adds(before: History, after: History) -> bool:
    """Returns whether a request offers all the tools that an earlier one offered."""
    if before.tools is None or before.tools == after.tools:
        return True
    offered_now = after.tools or ()
    return all(tool in offered_now for tool in before.tools)
