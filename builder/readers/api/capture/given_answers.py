"""Makes messages and conversations of single answers of a capture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from builder.conversation import Conversation, Message
from builder.problem import Problem
from builder.readers.api.capture.api import ApiAnswer, History
from builder.readers.api.capture.envelope import Exchange
from builder.readers.toolkit.call_keys import with_request_keys
from builder.readers.toolkit.comparison import cut_off


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


def answer_message(answer: ApiAnswer) -> Message:
    """Returns the answer's message; its text is `Unparsed` if the answer has a fault."""
    message = replace(answer.message, model=answer.model)
    return cut_off(message, answer.fault) if answer.fault else message


def record_of(first: Exchange, last: Exchange) -> str:
    """Returns `Conversation.record` for the exchanges from the first to the last."""
    return first.where if first.where == last.where else f"{first.where} to {last.where}"
