"""Tools that read the API description: what schemathesis sends and expects, and what linters miss."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from payment_sandbox.ui.docs.library import read_source
from tests.compat.packages import python_with, version_in
from tests.howto.languages import install_from_npm
from tests.support.blocks import blocks
from tests.support.commands import run_program
from tests.support.projects import openapi_description
from tests.support.servers import make_server
from tests.support.tools import require

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]
REJECTED: Final = "RejectedPositiveData"
EXPECTED: Final = {
    ("POST /v1/bankqr/", REJECTED): "a time must be in the future",
    ("POST /v1/orders/", REJECTED): "a method must be the project's, by its name or an alias",
    ("POST /v1/orders/{order_id}/refunds/", REJECTED): "a line must be one of the order's",
    ("PUT /v1/orders/{order_id}/", REJECTED): "in this version of OpenAPI, the format of a date is a remark",
    ("GET /control/actions/", REJECTED): "`before` must be in the list",
    ("GET /control/journal/", REJECTED): "`before` must be in the list",
    ("GET /control/orders/", REJECTED): "`before` must be an order's",
    ("GET /control/webhooks/", REJECTED): "`before` must be in the list",
    ("GET /control/wait/", REJECTED): "a status needs an order",
    ("PATCH /control/clock/", REJECTED): "the clock only moves forward",
    ("PATCH /control/project/", REJECTED): "the keys of `errors` are ids of rules or types of errors",
    ("POST /control/clock/advance/", REJECTED): "exactly one of three keys is needed",
    ("POST /control/orders/{order_id}/act/", REJECTED): "each actor has actions of its own",
    ("POST /control/bankqr/{qr_id}/scan/", REJECTED): "an issuer must be the project's",
    ("POST /control/projects/", REJECTED): "the texts of `clock` and `scenario` have a grammar of their own",
    ("PUT /control/faults/", REJECTED): "an order must be the project's",
    ("PUT /control/scenario/", REJECTED): "a fault has one effect, of which some go together",
    ("POST /control/projects/", "AcceptedNegativeData"): "null stands for an empty body (A05)",
    ("OPTIONS /control/webhooks/deliver/", "AllowHeaderMismatch"): "a webhook may have the id `deliver`",
    ("Stateful tests", "UseAfterFree"): "DELETE cancels an order, which can still be read",
}
"""The operations, with the check that fails, and why the description does not say it."""
CLI: Final = "from schemathesis.cli import schemathesis; schemathesis()"
MAY_REFUSE: Final = "negative_data_rejection,positive_data_acceptance"
"""Checks of the first two phases: with the state of an order, any call may be refused with 409 or 412."""
LEFT_OUT: Final = (
    "--exclude-path-regex /control/(stop|events|listener) --exclude-operation-id control_delete_project"
)
"""Calls that end the server, wait, or delete the project that the others use."""
PHASES: Final = ("examples,coverage", "stateful")
LINTERS: Final = {
    "Spectral": (
        "@stoplight/spectral-cli",
        "6",
        ".spectral.yaml",
        "spectral lint --fail-severity warn openapi.json",
    ),
    "Redocly": ("@redocly/cli", "2", "redocly.yaml", "redocly lint openapi.json"),
}


def failures(report: Any) -> set[tuple[str, str]]:
    """Return the operations in a report with the check that failed."""
    return {(name, each["type"]) for each in report["failures"] for name in each["operations"]}


@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.parametrize("face", ["v1", "control"])
def test_schemathesis(face: str, phases: str, tmp_path: Path, record_property: Callable[..., None]) -> None:
    """Every answer is one that the description names, apart from what it cannot say."""
    python = python_with("schemathesis", ["schemathesis"])
    report = tmp_path / "report.json"
    record_property(
        "tool",
        ("description", f"schemathesis, /{face}/, {phases}", version_in(python, "schemathesis"), "conforms"),
    )
    with make_server() as server:
        address = f"{server.url}/openapi.json --include-path-regex ^/{face}/ {LEFT_OUT}"
        checks = f"--exclude-checks {MAY_REFUSE}" if phases == "stateful" else ""
        limits = f"--phases {phases} --max-examples 10 --max-time 120 --seed 1 --generation-database none"
        command = f"run {address} {limits} {checks} --auth sandbox-key: --report-json-path {report}"
        result = run_program([python, "-c", CLI, *command.split()], tmp_path, 560)
    assert report.exists(), result.stdout[-3000:] + result.stderr[-3000:]
    unexpected = failures(json.loads(report.read_text())) - set(EXPECTED)
    assert not unexpected, f"{sorted(unexpected)}\n{result.stdout[-20_000:]}"


@pytest.mark.parametrize("name", LINTERS)
def test_a_linter(name: str, tmp_path: Path, record_property: Callable[..., None]) -> None:
    """With the configuration on the page, a linter finds nothing."""
    require("nodejs", "npm")
    package, version, file, command = LINTERS[name]
    install_from_npm(tmp_path, {package: version})
    (tmp_path / file).write_text(
        next(block.text for block in blocks(read_source("works-with")) if block.file == file)
    )
    (tmp_path / "openapi.json").write_text(openapi_description())
    installed = json.loads((tmp_path / "node_modules" / package / "package.json").read_text())["version"]
    record_property("tool", ("description", name, installed, "nothing found"))
    result = run_program([f"node_modules/.bin/{command.split()[0]}", *command.split()[1:]], tmp_path, 200)
    assert result.returncode == 0, result.stdout[-3000:]
    assert "warning" not in result.stdout, result.stdout[-3000:]
