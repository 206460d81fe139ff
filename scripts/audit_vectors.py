"""Measures recall of the secret rules on texts drawn from the patterns of other scanners.

    python scripts/audit_vectors.py [--each N] [--misses]

Needs the extra `scanners`. For each rule of detect-secrets and of kingfisher (which includes those
of betterleaks), texts are drawn from the rule's own pattern; only texts in which the scanner itself
finds the secret count. Some patterns accept any name of a setting and any separator (`adafruit` and
up to 20 characters). There, `_api_key`, `_token` or `_secret` and `=`, `: ` or ` = "` are inserted,
since other names do not indicate a secret. Rules for values that are not secret (ids, host names,
addresses) are excluded by name.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from builder.secrets.secrets import find_secrets

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.sensitive.regexes import samples

_OPEN = r"(?:[ \t\w.-]{0,20})"
_NAMED = ("_api_key", "_token", "_secret")
_SIGN = re.compile(r"""\[\\s'"\]\{0,3\}(\)?)\(\?:=\|>.*?\[\\x60'"\\s=\]\{0,5\}""")
_SIGNED = ("=", ": ", """ = \"""")
_NO_SECRET = re.compile(
    r"-(?:id|url|host|name|domain|username|address|email)(?:\.\d)?$|client-id|public|pub-key|"
    r"packagistorg\w+-repository|account-|access-id|sidekiq-sensitive-url|-appid|^private_key"
)
"""Names of rules that match values that are not secret on their own."""

Vector = tuple[str, str, str]
"""(rule, text, secret)."""


def detect_secrets_vectors(each: int) -> Iterator[Vector]:
    """Yields texts for the patterns of detect-secrets that the plugin finds."""
    from detect_secrets import plugins  # noqa: PLC0415 - optional
    from detect_secrets.plugins.base import RegexBasedDetector  # noqa: PLC0415

    for module in iter_modules(plugins.__path__):
        loaded = import_module(f"{plugins.__name__}.{module.name}")
        for item in vars(loaded).values():
            is_plugin = isinstance(item, type) and issubclass(item, RegexBasedDetector)
            if not is_plugin or item is RegexBasedDetector or item.__module__ != loaded.__name__:
                continue
            if module.name in ("ip_public", "private_key"):
                continue  # addresses are personal data; the first line of a key is not a secret
            plugin = item()
            for number, pattern in enumerate(plugin.denylist):
                for text, _ in samples(pattern.pattern, each):
                    for secret in sorted(plugin.analyze_string(text))[:1]:
                        yield f"detect-secrets.{module.name}.{number}", text, secret


def kingfisher_vectors(each: int) -> Iterator[Vector]:
    """Yields texts for the rules of kingfisher in which its scanner finds the secret."""
    from kingfisher_sdk._native import Rules, Scanner  # noqa: PLC0415 - optional

    rules = Rules([], builtins=True, confidence="low", cache=False)
    scanner = Scanner(rules, base64=False, dedup=False, redact=False, min_entropy=None)
    for row in rules.metadata():
        name = row["id"]
        pattern = rules.detail(name)["pattern"]
        if _NO_SECRET.search(name):
            continue
        for number in range(each):
            filled = pattern.replace(_OPEN, _NAMED[number % len(_NAMED)])
            filled = _SIGN.sub(rf"\1{_SIGNED[number // 2 % len(_SIGNED)]}", filled)
            for text, _ in samples(filled, 1, seed=number):
                for finding in scanner.scan_bytes(f"{text}\n".encode()):
                    if finding.rule_id == name:
                        yield name, text, finding.secret
                        break


def covered(text: str, secret: str) -> bool:
    """Returns whether the rules would remove the secret.

    A pattern may also match the address or the name around a value, so half of the match suffices.
    """
    start = text.find(secret)
    hits = find_secrets(f"{text}\n")
    inside = sum(max(0, min(hit.end, start + len(secret)) - max(hit.start, start)) for hit in hits)
    return start >= 0 and inside * 2 >= len(secret)


SCANNERS: dict[str, Callable[[int], Iterator[Vector]]] = {
    "detect-secrets": detect_secrets_vectors,
    "kingfisher": kingfisher_vectors,
}


def measure(scanner: str, each: int) -> tuple[Counter[str], Counter[str]]:
    """Returns ({rule: vectors}, {rule: vectors missed}) of a scanner."""
    total: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for rule, text, secret in SCANNERS[scanner](each):
        total[rule] += 1
        missed[rule] += not covered(text, secret)
    return total, +missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=6, help="texts for each rule")
    parser.add_argument("--misses", action="store_true", help="name the rules that are missed")
    options = parser.parse_args()
    for scanner in SCANNERS:
        total, missed = measure(scanner, options.each)
        found = total.total() - missed.total()
        rules = f"all of {sum(rule not in missed for rule in total)} of {len(total)} rules"
        print(f"{scanner}: {found} of {total.total()} secrets, {rules}")
        if options.misses:
            for rule, count in sorted(missed.items()):
                print(f"  {count} of {total[rule]}  {rule}")


if __name__ == "__main__":
    main()
