"""Lists the environment variables that name a provider's address, and routes requests by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from builder.problem import OptionError, UsageError

UPSTREAMS: Mapping[str, str] = {
    "ANTHROPIC_BASE_URL": "https://api.anthropic.com",
    "OPENAI_BASE_URL": "https://api.openai.com/v1",
    "OPENAI_API_BASE": "https://api.openai.com/v1",
    "GOOGLE_GEMINI_BASE_URL": "https://generativelanguage.googleapis.com",
    "CODE_ASSIST_ENDPOINT": "https://cloudcode-pa.googleapis.com",
    "OPENROUTER_BASE_URL": "https://openrouter.ai/api/v1",
    "GROQ_BASE_URL": "https://api.groq.com",
    "CEREBRAS_BASE_URL": "https://api.cerebras.ai",
    "KIMI_BASE_URL": "https://api.moonshot.ai/v1",
    "DEEPSEEK_BASE_URL": "https://api.deepseek.com",
}
"""{variable: the address of its provider if the variable is not set}."""

_ONLY_IF_SET = ("AZURE_OPENAI_ENDPOINT", "LITELLM_PROXY_API_BASE", "OLLAMA_BASE_URL")
"""Variables of providers without a common address."""


@dataclass(frozen=True, slots=True)
class Route:
    """The address of one provider.

    variable  the environment variable that names it
    upstream  its scheme and host, with user information if the user gave some
    path      the path of its address, "" if there is none
    """

    variable: str
    upstream: str
    path: str

    @property
    def prefix(self) -> str:
        """Returns the first segment of the local path, which names the provider."""
        return self.variable.lower().replace("_", "-")

    def local(self, port: int) -> str:
        """Returns the value of the variable that leads through the proxy at `port`."""
        return f"http://127.0.0.1:{port}/{self.prefix}{self.path}"


def routes(environment: Mapping[str, str], given: Iterable[str] = ()) -> tuple[Route, ...]:
    """Returns the routes of a child with this environment, one for each variable.

    `given` are the user's own, VARIABLE=URL; they have precedence over the environment, whose
    values have precedence over the usual addresses. Raises UsageError for a bad one.
    """
    chosen = dict(UPSTREAMS)
    for name in (*UPSTREAMS, *_ONLY_IF_SET):
        if environment.get(name, "").strip():
            chosen[name] = environment[name].strip()
    for text in given:
        name, equals, url = text.partition("=")
        if not equals or not name.replace("_", "").isalnum():
            raise OptionError("upstream", f" {text!r}: must be VARIABLE=URL")
        chosen[name] = url
    return tuple(_route(name, url) for name, url in chosen.items())


def _route(name: str, url: str) -> Route:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise UsageError(f"{name}: not an http or https address")
    if parts.query or parts.fragment:
        raise UsageError(f"{name}: an address without a query or fragment is needed")
    return Route(name, f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/"))


def through(environment: Mapping[str, str], routes: Iterable[Route], port: int) -> dict[str, str]:
    """Returns the environment of a child whose requests go through the proxy at `port`."""
    changed = {**environment, **{route.variable: route.local(port) for route in routes}}
    for name in ("NO_PROXY", "no_proxy"):  # its own proxy would not find the loopback
        hosts = [host for host in (environment.get(name, ""),) if host]
        changed[name] = ",".join([*hosts, "127.0.0.1", "localhost"])
    return changed
