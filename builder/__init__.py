"""Converts raw agent logs to fine-tuning data that is verified against the chat template.

`from builder import …` gives the public API: the functions of `builder.api` and the types below.
They are imported on first use, so that importing the package itself costs no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from builder.api import OnProgress as OnProgress
    from builder.api import Progress as Progress
    from builder.api import audit_dataset as audit_dataset
    from builder.api import available_formats as available_formats
    from builder.api import build_dataset as build_dataset
    from builder.api import capture_definitions as capture_definitions
    from builder.api import capture_logs as capture_logs
    from builder.api import collect_logs as collect_logs
    from builder.api import convert_traces_to_training_data as convert_traces_to_training_data
    from builder.api import diff_datasets as diff_datasets
    from builder.api import export_dataset as export_dataset
    from builder.api import find_sources as find_sources
    from builder.api import flatten as flatten
    from builder.api import inspect_log as inspect_log
    from builder.api import installed_logs as installed_logs
    from builder.api import merge_datasets as merge_datasets
    from builder.api import normalise as normalise
    from builder.api import push_dataset as push_dataset
    from builder.api import read as read
    from builder.api import recognise as recognise
    from builder.api import recognise_all as recognise_all
    from builder.api import report_dataset as report_dataset
    from builder.api import serve_capture as serve_capture
    from builder.api import suggest_mapping as suggest_mapping
    from builder.api import use_in_datasets as use_in_datasets
    from builder.api import verify_dataset as verify_dataset
    from builder.api import verify_sample as verify_sample
    from builder.api import view_dataset as view_dataset
    from builder.audit.options import AuditOptions as AuditOptions
    from builder.audit.result import Audit as Audit
    from builder.build.inspection import InspectedConversation as InspectedConversation
    from builder.build.inspection import Inspection as Inspection
    from builder.build.inspection import SuggestedMapping as SuggestedMapping
    from builder.capture.pairs import PairWriter as PairWriter
    from builder.capture.pairs import SentDefinitions as SentDefinitions
    from builder.card.result import BuildResult as BuildResult
    from builder.collect.job import Collected as Collected
    from builder.config import Config as Config
    from builder.config import load_config as load_config
    from builder.conversation import Context as Context
    from builder.conversation import Conversation as Conversation
    from builder.conversation import Data as Data
    from builder.conversation import Event as Event
    from builder.conversation import Ignored as Ignored
    from builder.conversation import Json as Json
    from builder.conversation import Media as Media
    from builder.conversation import Message as Message
    from builder.conversation import Part as Part
    from builder.conversation import Reasoning as Reasoning
    from builder.conversation import Text as Text
    from builder.conversation import ToolCall as ToolCall
    from builder.conversation import ToolResult as ToolResult
    from builder.conversation import Unparsed as Unparsed
    from builder.conversation import Used as Used
    from builder.export.outcome import Exported as Exported
    from builder.finding import AuditFinding as AuditFinding
    from builder.finding import CheckFinding as CheckFinding
    from builder.ledger import Ledger as Ledger
    from builder.ledger import LedgerFault as LedgerFault
    from builder.normalize.normalise import Normalised as Normalised
    from builder.normalize.options import NormalizeOptions as NormalizeOptions
    from builder.problem import BuilderError as BuilderError
    from builder.problem import Problem as Problem
    from builder.problem import UsageError as UsageError
    from builder.push.job import PushOptions as PushOptions
    from builder.push.job import PushReport as PushReport
    from builder.readers import Reader as Reader
    from builder.report.advice import Advice as Advice
    from builder.report.advice import Judgement as Judgement
    from builder.report.compare import DatasetDifference as DatasetDifference
    from builder.sample import Call as Call
    from builder.sample import Dialogue as Dialogue
    from builder.sample import Sample as Sample
    from builder.sample import Turn as Turn
    from builder.sources.source import Record as Record
    from builder.sources.source import Source as Source
    from builder.verify.options import VerifyOptions as VerifyOptions
    from builder.verify.summary import LineReport as LineReport
    from builder.verify.summary import Summary as Summary
    from builder.verify.verifier import Verdict as Verdict
    from builder.view.server import DatasetView as DatasetView

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
