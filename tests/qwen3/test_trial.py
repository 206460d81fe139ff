"""A chat template that would hang this process, or take its memory, is refused within seconds."""

import os
import signal
import sys
import threading

import pytest
from support.templates.targets import TEMPLATE, small_tokenizer_folder

from builder.problem import UsageError
from builder.qwen3 import trial
from builder.qwen3.tokenizer import load

pytest.importorskip("resource", reason="the system limits no memory of a process")

_LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
_TEXT = "{{ 'x' * 10 ** 10 }}"
SLOW = {
    "loops": _LOOPS,
    "power": "{{ 9 ** (10 ** 9) % 2 }}",
    "in thinking mode": f"{{% if enable_thinking %}}{_LOOPS}{{% endif %}}",
    "of many messages": f"{{% if messages | length > 99 %}}{_LOOPS}{{% endif %}}",
}
LARGE = {
    "text": _TEXT,
    "that is never rendered": f"{{% if false %}}{_TEXT}{{% endif %}}",
    "filter": "{{ 'x' | center(10 ** 10) }}",
    "in a generation block": f"{{% generation %}}{_TEXT}{{% endgeneration %}}",
}
HOSTILE = {
    **{name: (text, "in more than 1 s") for name, text in SLOW.items()},
    **{name: (text, "in more than 1024 MiB") for name, text in LARGE.items()},
}


@pytest.fixture(autouse=True)
def _limits(monkeypatch):
    monkeypatch.setattr(trial, "CPU_SECONDS", 1)
    monkeypatch.setattr(trial, "MEMORY_BYTES", 1 << 30)


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_is_refused_in_one_line(name, tmp_path):
    text, expected = HOSTILE[name]
    folder = small_tokenizer_folder(tmp_path / "it", chat_template=TEMPLATE + text)

    with pytest.raises(UsageError) as caught:
        load(folder)

    message = str(caught.value)
    assert expected in message
    assert "\n" not in message


@pytest.mark.slow
def test_a_template_within_the_limits_leaves_the_process_as_it_was(tmp_path):
    import resource

    kinds = (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_CORE)

    def state():
        limits = [resource.getrlimit(kind) for kind in kinds]
        handler = signal.getsignal(signal.SIGXCPU)
        return limits, sys.gettrace(), handler, threading.active_count(), dict(os.environ)

    folder = small_tokenizer_folder(tmp_path / "it", chat_template=TEMPLATE + "{# mine #}")
    before = state()

    assert load(folder).template_name == "unknown"
    assert state() == before
    assert trial.excess(TEMPLATE + "{{ raise_exception('no') }}", {}) is None


def test_a_known_template_starts_no_process(tmp_path, monkeypatch):
    monkeypatch.setattr(trial.subprocess, "run", lambda *_, **__: pytest.fail("a process"))

    assert load(small_tokenizer_folder(tmp_path / "it")).template_name != "unknown"


def test_without_a_process_a_template_is_not_refused(monkeypatch):
    monkeypatch.setattr(sys, "executable", "")

    assert trial.excess("{# never tried #}", {}) is None
