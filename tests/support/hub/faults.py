"""Faults on demand at a step of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

RESET = "reset"  # the connection breaks before the request is handled
CUT = "cut"  # the connection breaks while the body is read
LOST = "lost"  # handled, but the response never arrives
LATE = "late"  # handled, but answered with 500


@dataclass
class Fault:
    """`kind` is one of these or a status; it happens `times` times after `skip` requests.

    `run` is called instead, if given: an event that happens on the Hub in the meantime.
    """

    step: str
    kind: str | int = 500
    times: int = 1
    skip: int = 0
    retry_after: int | None = None
    run: Callable[[], object] | None = None

    def strikes(self, step: str) -> bool:
        if step != self.step or self.times == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True
