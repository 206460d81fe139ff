"""Finds the samples at which a loader fails as a whole, by loading parts of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

PROBES = 200
"""Maximum number of loads in the search."""

T = TypeVar("T")


@dataclass(slots=True)
class _Search(Generic[T]):
    loads: Callable[[Sequence[T]], bool]
    left: int = PROBES

    def is_good(self, samples: Sequence[T]) -> bool:
        self.left -= 1
        return self.loads(samples)

    def culprits(self, samples: Sequence[T]) -> list[T]:
        """Returns samples without which the loader may not fail; it fails with all of them."""
        if len(samples) == 1 or self.left <= 0:
            return list(samples)
        half = len(samples) // 2
        first, second = samples[:half], samples[half:]
        bad = [part for part in (first, second) if not self.is_good(part)]
        if bad:
            return [one for part in bad for one in self.culprits(part)]
        good, failing = 0, len(second)  # only samples of both halves together make it fail
        while failing - good > 1 and self.left > 0:
            middle = (good + failing) // 2
            if self.is_good([*first, *second[:middle]]):
                good = middle
            else:
                failing = middle
        return list(second[good:failing])


def culprits(samples: Sequence[T], loads_them: Callable[[Sequence[T]], bool]) -> list[T]:
    """Returns the samples with which the loader fails, by loading parts of the dataset.

    Samples are identified by ids or numbers; `loads_them` says whether the loader gives back a
    dataset of only these. After `PROBES` loads, returns all samples of the parts that could not be
    narrowed further.
    """
    return _Search(loads_them).culprits(samples)
