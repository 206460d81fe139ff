"""Builds the conversations of an Inspect AI sample from its model events.

Source: docs/formats/inspect-ai.md. A model event contains the original request and answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import REPEAT, Json, Message
from builder.readers.runs.inspect_ai.messages import Texts, digests, read_message
from builder.readers.toolkit import as_dict, as_list, as_str, name_or_none

MAX_REFERENCES = 100_000
"""Maximum number of messages to which one model event may refer."""


@dataclass(slots=True)
class Chain:
    """A conversation so far: its messages, and the tools of its requests.

    answers  digests of the answers in its own model events
    """

    messages: list[Message]
    model: str | None
    tools: dict[str, Json] = field(default_factory=dict)
    graded: bool = False
    changes: Counter[str] = field(default_factory=Counter)
    answers: dict[bytes, str | None] = field(default_factory=dict)


class Chains:
    """Reads the model events of a sample into `chains`: `take` each, then `finish`."""

    def __init__(self, texts: Texts, sample: dict[str, Json]) -> None:
        self.texts = texts
        self.chains: list[Chain] = []
        self.events = 0
        # The messages to which events refer by position; `message_pool` is the older key.
        data = as_dict(sample.get("events_data"))
        self._pool = as_list(data.get("messages")) or as_list(sample.get("message_pool"))
        self._pooled: dict[int, list[Message]] = {}
        self._ends: dict[bytes, Chain] = {}
        self._seen: set[bytes] = set()

    def take(self, event: dict[str, Json], *, graded: bool) -> None:
        """Adds a model event to the chain that its request repeats, or begins a chain.

        Additional tools join the chain; any other change of the tools begins a new one.
        """
        output = as_dict(event.get("output"))
        choices = as_list(output.get("choices"))
        if not choices:
            return  # an error, after which the request is repeated
        self.events += 1
        choice = as_dict(choices[0])
        messages = self._request(event)
        before = len(messages)
        messages += read_message(
            choice.get("message"), self.texts, as_str(choice.get("stop_reason"))
        )
        model = name_or_none(output.get("model")) or name_or_none(event.get("model"))
        marks = digests(messages)
        end = marks[-1]
        if end in self._seen:
            return
        asked = reversed(marks[: before + 1])
        chain = next((self._ends[mark] for mark in asked if mark in self._ends), None)
        offered = as_list(self.texts.value(event.get("tools")))
        tools = {as_str(tool, "name"): tool for tool in offered}
        grows = chain is not None and chain.tools.items() <= tools.items()
        if chain is None or chain.graded != graded or not grows:
            chain = Chain([], None, graded=graded)
            self.chains.append(chain)
        else:
            self._ends = {mark: one for mark, one in self._ends.items() if one is not chain}
            if len(tools) > len(chain.tools):
                chain.changes["tools_added_later"] += len(tools) - len(chain.tools)
        chain.messages = messages
        chain.model = model
        chain.tools = tools
        for message in messages[before:]:
            chain.answers[_digest(message)] = model
        self._ends[end] = chain
        self._seen.update(marks)

    def _request(self, event: dict[str, Json]) -> list[Message]:
        items = as_list(event.get("input"))
        messages = [message for item in items for message in read_message(item, self.texts)]
        for reference in as_list(event.get("input_refs")):
            ends = [end for end in as_list(reference) if isinstance(end, int)]
            start, stop = ends if len(ends) == 2 else (0, 0)
            for at in range(max(start, 0), min(stop, len(self._pool))):
                if len(messages) >= MAX_REFERENCES:
                    self.texts.lost.append("too many references")
                    return messages
                if at not in self._pooled:
                    self._pooled[at] = read_message(self._pool[at], self.texts)
                messages += self._pooled[at]
        return messages

    def finish(self, final: list[Message]) -> None:
        """Adds the sample's own messages: the end of a chain, or the only messages."""
        marks = digests(final)
        chain = next((self._ends[mark] for mark in reversed(marks) if mark in self._ends), None)
        if chain is not None:
            chain.messages = [*chain.messages, *final[marks.index(digests(chain.messages)[-1]) :]]
        elif not self.chains and final:
            self.chains.append(Chain(final, None))

    def marked(self, chain: Chain) -> Iterator[Message]:
        """Yields the messages of a chain; marks assistant turns that are not targets.

        An answer from an event of another chain is a repeat; an answer from no event was inserted
        into the request.
        """
        elsewhere = {digest for one in self.chains if one is not chain for digest in one.answers}
        for message in chain.messages:
            if message.role != "assistant" or not self.events or message.untrained is not None:
                yield message
                continue
            digest = _digest(message)
            if digest in chain.answers:
                yield replace(message, model=chain.answers[digest])
            else:
                yield replace(message, untrained=REPEAT if digest in elsewhere else "inserted")


def _digest(message: Message) -> bytes:
    return digests([message])[-1]
