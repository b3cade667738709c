"""Puts the ready scenarios and the table of proofs into the wheel.

The table is generated from the marks of the tests for each build; the repository does not hold it.
"""

from pathlib import Path
from runpy import run_path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FIDELITY = "payment_sandbox/fidelity"
SCENARIOS = "payment_sandbox/scenarios/ready"


class ProofsHook(BuildHookInterface):
    """Adds files while the wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the table to a temporary folder, and include it and the scenarios in the wheel."""
        if version == "editable":
            return  # a checkout reads the marks themselves
        root = Path(self.root)
        proofs = run_path(str(root / "tests" / "proofs.py"))
        table = Path(mkdtemp()) / "proofs.tsv"
        table.write_text(proofs["table"](proofs["read_proofs"](root / "tests")), encoding="utf-8")
        build_data["force_include"][str(table)] = f"{FIDELITY}/proofs.tsv"
        build_data["force_include"][str(root / "scenarios")] = SCENARIOS
