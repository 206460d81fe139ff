"""Checks the names of gates: audits and codes whose findings fail a command or a test."""

from __future__ import annotations

from collections.abc import Collection

from builder.audit.options import AuditOptions
from builder.audit.run import CODES
from builder.finding import AuditFinding, GateAction
from builder.problem import UsageError, nearest


def check_gates(gates: Collection[str], options: AuditOptions, option: str) -> None:
    """Raises UsageError, which names `option`, for a gate that is unknown or could not fail.

    A code that is nearly the name of an audit (`secret`, of `secrets`) must be written with it.
    """
    audit_of = {code: name for name, codes in CODES.items() for code in codes}
    audit_of |= {f"{name}.{code}": name for code, name in audit_of.items()}
    known = {*CODES, *(code for code in audit_of if f"{code}s" not in CODES)}
    for gate in sorted(gates):
        if f"{gate}s" in CODES:
            raise UsageError(
                f"{option} {gate!r}: is one code of the audit '{gate}s': name the audit, or"
                f" '{gate}s.{gate}' for that code alone"
            )
        if gate not in known:
            raise UsageError(f"{option} {gate!r}: no such audit or code{nearest(gate, known)}")
        if not runs(audit_of.get(gate, gate), options):
            missing = "the audit does not run without --contamination SET"
            raise UsageError(f"{option} {gate!r}: {missing}")
        if "near_" in gate and options.near_duplicates == "off":
            raise UsageError(f"{option} {gate!r}: audit.near_duplicates is off")


def runs(audit: str, options: AuditOptions) -> bool:
    """Returns whether an audit runs: that of contamination needs evaluation sets."""
    return audit != "contamination" or bool(options.contamination)


def fires(finding: AuditFinding, gates: Collection[str]) -> bool:
    """Returns whether a finding fails a gate: one of its code, or of its audit if unresolved."""
    if finding.code in gates or f"{finding.audit}.{finding.code}" in gates:
        return True
    return finding.audit in gates and finding.gate is GateAction.report
