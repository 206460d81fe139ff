"""Reads the configuration of a build: one section for each room's options, in YAML.

Each room declares its options once, in its own dataclass (`builder.options`). `Config` nests these
unchanged; the YAML reader, the manifest and the command line derive keys, types, choices and
defaults from them.
"""

from __future__ import annotations

from builder.config.load import load_config, read_resolved
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
    "override",
    "read_resolved",
]
