"""Reports the progress of jobs to their callers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from builder.build.results import ResultSummary
    from builder.build.task import Task


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a job: `done` of `total` units of a phase; `total` None: not known.

    phase    read (units: inputs or chunks of them), write, verify, audit, report (units: samples)
    bytes    those of the inputs read so far, of `total_bytes`
    samples  those made so far; `rejects` counts what could not be used
    """

    phase: str
    done: int
    total: int | None = None
    bytes: int = 0
    total_bytes: int = 0
    samples: int = 0
    rejects: int = 0


OnProgress = Callable[[Progress], object]
OnMessage = Callable[[str], object]


def ignore(_: object) -> None:
    """Ignores progress and messages: the default."""


class ReadingProgress:
    """Turns finished tasks of a build into progress."""

    def __init__(self, on_progress: OnProgress) -> None:
        self.on_progress = on_progress
        self.state = Progress("read", 0)
        self.sizes: dict[int, int] = {}

    def begin(self, tasks: Sequence[Task]) -> Callable[[Task, ResultSummary], None]:
        """Begins; returns the callback for finished tasks."""
        from builder.sources.listing import stored_bytes

        self.sizes = {id(task): stored_bytes(task.source) for task in tasks}
        total = sum(self.sizes.values())
        self.state = replace(self.state, total=len(tasks), total_bytes=total)
        self.on_progress(self.state)
        return self.step

    def step(self, task: Task, summary: ResultSummary) -> None:
        """Reports a finished task."""
        state = self.state
        self.state = replace(
            state,
            done=state.done + 1,
            bytes=state.bytes + self.sizes[id(task)],
            samples=state.samples + summary.samples,
            rejects=state.rejects + summary.rejects,
        )
        self.on_progress(self.state)


def phases_of(on_progress: OnProgress) -> Callable[[str, int | None], Callable[[int], object]]:
    """Returns a function that begins a phase, and returns one for samples done."""

    def phase(name: str, total: int | None = None) -> Callable[[int], object]:
        state = Progress(name, 0, total)
        on_progress(state)

        def step(done: int) -> None:
            nonlocal state
            state = replace(state, done=state.done + done)
            on_progress(state)

        return step

    return phase
