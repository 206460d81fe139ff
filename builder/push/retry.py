"""Retries after faults of the Hub and of the network."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from builder.credentials import hide, reason
from builder.problem import BuilderError, UsageError

ATTEMPTS = 5
WAITS = (1.0, 4.0, 16.0, 60.0)
"""Seconds before the second, third, … attempt, if the Hub does not ask for another delay."""

_LONGEST_WAIT = 300.0
"""Seconds. If the Hub asks for a longer delay, the push ends; the same command resumes it."""

_RETRIED = (408, 409, 412, 425, 429)
_LOCAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOENT)
_FULL = "No space left on device"  # from the storage library, which has no status codes
_T = TypeVar("_T")


class PushFault(BuilderError):
    """Ends a push early, with a message of one line. The Hub is left as it is."""


@dataclass(slots=True)
class Retries:
    """How a push reports and waits before a retry; uploads attempted, and seconds waited."""

    report: Callable[[str], object]
    sleep: Callable[[float], None]
    attempts: int = 0
    waits: list[float] = field(default_factory=list)


def with_retries(
    act: Callable[[], _T], retries: Retries, *, what: str, counted: bool = False
) -> _T:
    """Returns the result of `act`; retries it after faults of the Hub and of the network.

    Raises UsageError for what only the user can fix, PushFault if it keeps failing.
    """
    for attempt in range(1, ATTEMPTS + 1):
        retries.attempts += counted
        try:
            return act()
        except (PushFault, UsageError):
            raise
        except Exception as error:
            message, asked = _judge(error, what)
            if attempt == ATTEMPTS:
                raise PushFault(f"{message} ({ATTEMPTS} attempts)") from None
            wait = WAITS[attempt - 1] if asked is None else asked
            if wait > _LONGEST_WAIT:
                raise PushFault(f"{message}; the Hub asks to wait {wait:g} seconds") from None
            retries.report(f"{message}; attempt {attempt + 1} of {ATTEMPTS} in {wait:g} s")
            retries.waits.append(wait)
            retries.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _judge(error: Exception, what: str) -> tuple[str, float | None]:
    """Returns (a message of one line, the seconds that the Hub asks to wait) for a retry.

    Raises UsageError or PushFault for what a retry cannot fix, and the error itself if it is a bug.
    """
    response = next((item for item in map(_response, _causes(error)) if item is not None), None)
    if (isinstance(error, OSError) and error.errno in _LOCAL) or _FULL in str(error):
        raise PushFault(f"{what}: {reason(error)}") from None
    if response is None:
        if type(error).__name__ == "OfflineModeIsEnabled":
            raise UsageError(f"{what}: HF_HUB_OFFLINE is set") from None
        if not is_network_fault(error):
            if isinstance(error, ValueError):
                raise UsageError(f"{what}: {reason(error)}") from None
            raise error
        return f"{what}: {reason(error)}", None
    status = int(response.status_code)
    place = f"{response.request.method} {response.request.url.path}"
    answer = hide(" ".join(str(response.headers.get("X-Error-Message") or "").split()))[:200]
    message = f"{what}: HTTP {status} at {place}" + (f" ({answer})" if answer else "")
    if status == 401:
        raise UsageError(f"{message}: the token is not accepted; `hf auth login`, or HF_TOKEN")
    if status == 403:
        raise UsageError(f"{message}: the token may not write there")
    if status not in _RETRIED and status < 500:
        raise PushFault(message)
    return message, _asked_wait(response)


def _asked_wait(response: Any) -> float | None:
    """Returns the seconds in `Retry-After`, or in `t` of an exhausted `RateLimit`."""
    after = str(response.headers.get("Retry-After") or "").strip()
    if not after.isdecimal():
        limit = str(response.headers.get("RateLimit") or "")
        wait = re.search(r";\s*r\s*=\s*0\s*;\s*t\s*=\s*(\d+)", limit)
        after = wait[1] if wait and response.status_code == 429 else ""
    return float(after) if after else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    item: BaseException | None = error
    while item is not None and id(item) not in seen:
        seen.add(id(item))
        yield item
        item = item.__cause__ or item.__context__


def _response(error: BaseException) -> Any:
    response = getattr(error, "response", None)
    return response if hasattr(response, "status_code") else None


def is_network_fault(error: BaseException) -> bool:
    """Returns whether the connection, a response or the storage library caused the error."""
    modules = {type(item).__module__.partition(".")[0] for item in _causes(error)}
    if modules & {"httpx", "httpx2", "httpcore", "httpcore2", "requests", "hf_xet"}:
        return True
    kinds = (OSError, RuntimeError, json.JSONDecodeError)
    return any(isinstance(item, kinds) for item in _causes(error))
