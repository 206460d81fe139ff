"""Converts raw agent logs to fine-tuning data that is verified against the chat template.

`from builder import …` gives the public API: the functions of `builder.api` and the types below.
They are imported on first use, so that importing the package itself costs no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # type checkers may see more names than `_ROOMS` has
    from builder.api import *
    from builder.audit.options import *
    from builder.audit.result import *
    from builder.build.inspection import InspectedConversation as InspectedConversation
    from builder.build.inspection import Inspection as Inspection
    from builder.build.inspection import SuggestedMapping as SuggestedMapping
    from builder.capture.pairs import *
    from builder.card.result import *
    from builder.collect.job import Collected as Collected
    from builder.config import *
    from builder.conversation import *
    from builder.export.outcome import *
    from builder.finding import *
    from builder.ledger import *
    from builder.normalize.normalise import Normalised as Normalised
    from builder.normalize.options import *
    from builder.problem import *
    from builder.push.job import PushOptions as PushOptions
    from builder.push.job import PushReport as PushReport
    from builder.readers import Reader as Reader
    from builder.report.advice import *
    from builder.report.compare import DatasetDifference as DatasetDifference
    from builder.sample import *
    from builder.sources.source import *
    from builder.verify.options import *
    from builder.verify.summary import *
    from builder.verify.verifier import Verdict as Verdict
    from builder.view.server import *

_ROOMS = {
    "api": (
        "OnProgress Progress audit_dataset available_formats build_dataset capture_definitions"
        " capture_logs collect_logs diff_datasets export_dataset find_sources flatten"
        " inspect_log convert_traces_to_training_data use_in_datasets"
        " installed_logs merge_datasets normalise push_dataset read recognise recognise_all"
        " report_dataset serve_capture suggest_mapping verify_dataset verify_sample"
        " view_dataset"
    ),
    "audit.options": "AuditOptions",
    "audit.result": "Audit",
    "build.inspection": "InspectedConversation Inspection SuggestedMapping",
    "capture.pairs": "PairWriter SentDefinitions",
    "card.result": "BuildResult",
    "collect.job": "Collected",
    "config": "Config load_config",
    "conversation": (
        "Context Conversation Data Event Ignored Json Media Message Part Reasoning Text ToolCall"
        " ToolResult Unparsed Used"
    ),
    "export.outcome": "Exported",
    "finding": "AuditFinding CheckFinding",
    "ledger": "Ledger LedgerFault",
    "normalize.normalise": "Normalised",
    "normalize.options": "NormalizeOptions",
    "problem": "BuilderError Problem UsageError",
    "push.job": "PushOptions PushReport",
    "readers": "Reader",
    "report.advice": "Advice Judgement",
    "report.compare": "DatasetDifference",
    "view.server": "DatasetView",
    "sample": "Call Dialogue Sample Turn",
    "sources.source": "Record Source",
    "verify.summary": "LineReport Summary",
    "verify.options": "VerifyOptions",
    "verify.verifier": "Verdict",
}
_PLACES = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = sorted(_PLACES)  # noqa: PLE0605 - a list of strings, computed


def __getattr__(name: str) -> Any:
    """Imports a public name from its room on first use."""
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - 20 ms

        from builder.distribution import DISTRIBUTION  # noqa: PLC0415 - see above

        try:
            return version(DISTRIBUTION)
        except PackageNotFoundError:
            return "unknown"
    if name not in _PLACES:
        raise AttributeError(f"module 'builder' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - see above

    value = getattr(import_module(f"builder.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
