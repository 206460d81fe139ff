"""Implements the public API: the functions of `from builder import …` (docs/library.md).

They take and return plain values, print nothing and never end the process. The command line is
built on them. Heavy modules are imported by the functions that need them.
"""

from builder.api.datasets import audit_dataset as audit_dataset
from builder.api.datasets import diff_datasets as diff_datasets
from builder.api.datasets import export_dataset as export_dataset
from builder.api.datasets import push_dataset as push_dataset
from builder.api.datasets import report_dataset as report_dataset
from builder.api.datasets import verify_dataset as verify_dataset
from builder.api.datasets import verify_sample as verify_sample
from builder.api.datasets import view_dataset as view_dataset
from builder.api.formats import available_formats as available_formats
from builder.api.formats import inspect_log as inspect_log
from builder.api.formats import installed_logs as installed_logs
from builder.api.formats import recognise_all as recognise_all
from builder.api.formats import suggest_mapping as suggest_mapping
from builder.api.kept import capture_definitions as capture_definitions
from builder.api.kept import capture_logs as capture_logs
from builder.api.kept import collect_logs as collect_logs
from builder.api.kept import serve_capture as serve_capture
from builder.api.logs import EngineName as EngineName
from builder.api.logs import build_dataset as build_dataset
from builder.api.logs import find_sources as find_sources
from builder.api.logs import flatten as flatten
from builder.api.logs import merge_datasets as merge_datasets
from builder.api.logs import normalise as normalise
from builder.api.logs import read as read
from builder.api.logs import recognise as recognise
from builder.api.progress import OnMessage as OnMessage
from builder.api.progress import OnProgress as OnProgress
from builder.api.progress import Progress as Progress
from builder.api.traces import convert_traces_to_training_data as convert_traces_to_training_data
from builder.api.traces import use_in_datasets as use_in_datasets
