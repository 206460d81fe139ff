"""Reads the configuration of a build from YAML.

`Config` nests the dataclasses in which rooms declare their options (`builder.options`).
"""

from __future__ import annotations

from builder.config.load import load_config, load_mapping, presets_in, read_resolved
from builder.config.sections import AuditSection, Config, InputSection, VerifySection, override

__all__ = [
    "AuditSection",
    "Config",
    "InputSection",
    "VerifySection",
    "load_config",
    "load_mapping",
    "override",
    "presets_in",
    "read_resolved",
]
