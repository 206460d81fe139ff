"""Reads the configuration of a build from YAML.

Each room declares its options once, in its own dataclass (`builder.options`). `Config` nests these
dataclasses; the YAML reader, the manifest and the command line derive keys, types, choices and
defaults from them.
"""

from __future__ import annotations

from builder.config.load import load_config, load_mapping, presets_in, read_resolved
from builder.config.sections import (
    AuditSection,
    Config,
    InputSection,
    LimitsSection,
    VerifySection,
    override,
)

__all__ = [
    "AuditSection",
    "Config",
    "InputSection",
    "LimitsSection",
    "VerifySection",
    "load_config",
    "load_mapping",
    "override",
    "presets_in",
    "read_resolved",
]
