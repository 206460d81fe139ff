"""Retries after faults of the Hub and of the network."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from builder.credentials import hide
from builder.problem import BuilderError, UsageError

ATTEMPTS = 5
WAITS = (1.0, 4.0, 16.0, 60.0)
"""Seconds before the second, third, … attempt, if the Hub does not ask for another delay."""

LONGEST_WAIT = 300.0
"""Seconds. If the Hub asks for a longer delay, the push ends; the same command resumes it."""

_AGAIN = (408, 409, 412, 425, 429)
_LOCAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOENT)
_FULL = "No space left on device"  # from the storage library, which has no status codes
_T = TypeVar("_T")


class PushFault(BuilderError):
    """A push ends early, with a message of one line. The Hub is left as it is."""


@dataclass(slots=True)
class Course:
    """The course of a push: attempts at the upload, seconds waited, and where messages go."""

    report: Callable[[str], None]
    sleep: Callable[[float], None]
    attempts: int = 0
    waits: list[float] = field(default_factory=list)


def persist(act: Callable[[], _T], course: Course, *, what: str, counted: bool = False) -> _T:
    """Returns the result of `act`, with retries for faults of the Hub and of the network.

    Raises UsageError (only the user can fix it), PushFault (it keeps failing).
    """
    for attempt in range(1, ATTEMPTS + 1):
        course.attempts += counted
        try:
            return act()
        except (PushFault, UsageError):
            raise
        except Exception as error:
            reason, wait = _judge(error, what)
            wait = WAITS[attempt - 1] if wait is None and attempt < ATTEMPTS else wait or 0.0
            if attempt == ATTEMPTS:
                raise PushFault(f"{reason} ({ATTEMPTS} attempts)") from None
            if wait > LONGEST_WAIT:
                raise PushFault(f"{reason}; the Hub asks to wait {wait:g} seconds") from None
            course.report(f"{reason}; attempt {attempt + 1} of {ATTEMPTS} in {wait:g} s")
            course.waits.append(wait)
            course.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _judge(error: Exception, what: str) -> tuple[str, float | None]:
    """Returns (the reason in one line, seconds that the Hub asks to wait) for a retry.

    Raises UsageError for what a retry cannot fix, and any exception that is a bug.
    """
    response = next((item for item in map(_response, _causes(error)) if item is not None), None)
    if (isinstance(error, OSError) and error.errno in _LOCAL) or _FULL in str(error):
        raise PushFault(f"{what}: {_line(str(error))}") from None
    if response is None:
        if type(error).__name__ == "OfflineModeIsEnabled":
            raise UsageError(f"{what}: HF_HUB_OFFLINE is set") from None
        if not of_the_network(error):
            if isinstance(error, ValueError):
                raise UsageError(f"{what}: {_line(str(error))}") from None
            raise error
        return f"{what}: {_line(str(error)) or type(error).__name__}", None
    status = int(response.status_code)
    place = f"{response.request.method} {response.request.url.path}"
    answer = _line(str(response.headers.get("X-Error-Message") or ""))
    reason = f"{what}: HTTP {status} at {place}" + (f" ({answer})" if answer else "")
    if status == 401:
        raise UsageError(f"{reason}: the token is not accepted; `hf auth login`, or HF_TOKEN")
    if status == 403:
        raise UsageError(f"{reason}: the token may not write there")
    if status not in _AGAIN and status < 500:
        raise PushFault(reason)
    return reason, _asked_wait(response)


def _asked_wait(response: Any) -> float | None:
    """Returns the seconds in `Retry-After`, or in `t` of an exhausted `RateLimit`."""
    after = str(response.headers.get("Retry-After") or "").strip()
    if not after.isdecimal():
        limit = str(response.headers.get("RateLimit") or "")
        found = re.search(r";\s*r\s*=\s*0\s*;\s*t\s*=\s*(\d+)", limit)
        after = found[1] if found and response.status_code == 429 else ""
    return float(after) if after else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and its causes."""
    seen: set[int] = set()
    item: BaseException | None = error
    while item is not None and id(item) not in seen:
        seen.add(id(item))
        yield item
        item = item.__cause__ or item.__context__


def _response(error: BaseException) -> Any:
    response = getattr(error, "response", None)
    return response if hasattr(response, "status_code") else None


def of_the_network(error: BaseException) -> bool:
    """Returns whether it is a fault of the network: connection, response, storage library."""
    modules = {type(item).__module__.partition(".")[0] for item in _causes(error)}
    if modules & {"httpx", "httpx2", "httpcore", "httpcore2", "requests", "hf_xet"}:
        return True
    kinds = (OSError, RuntimeError, json.JSONDecodeError)
    return any(isinstance(item, kinds) for item in _causes(error))


def _line(text: str) -> str:
    """Returns a message in one line, without tokens and signed addresses."""
    return hide(" ".join(text.split()))[:200]
