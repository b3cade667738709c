"""Long texts of one repeated part, in paths, headers, queries and bodies, cost other projects no waiting."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from payment_sandbox.serving.realtime import monotonic_seconds
from tests.attack import Report
from tests.attack.probe import probing
from tests.attack.server_process import Project, run_server

PARTS: Final = ("\\", "\\n", "4 ", "4-", "cvc", "cvc=", "%20", "[", "basic ", "9")
PATH_LENGTH: Final = 7_000
BODY_LENGTH: Final = 117 * 1024
SECONDS_MAX: Final = 1.0

Send = Callable[[Project, str], Any]
PLACES: Final[Mapping[str, tuple[int, Send]]] = {
    "a path": (PATH_LENGTH, lambda project, text: project.call("GET", f"/v1/orders/{text}/")),
    "a query": (PATH_LENGTH, lambda project, text: project.call("GET", "/v1/orders/", params={"a": text})),
    "a setting": (
        BODY_LENGTH,
        lambda project, text: project.call("PATCH", "/control/project/", json={"a": text}),
    ),
    "an order": (
        BODY_LENGTH,
        lambda project, text: project.call(
            "POST", "/v1/orders/", json={"currency": "EUR", "amount": 1, "description": text}
        ),
    ),
}


def attack(report: Report) -> None:
    """Send each text in each place, and read the journal afterwards."""
    slowest = 0.0
    with (
        run_server() as server,
        server.project(clock="frozen") as project,
        probing(server, report, "long texts"),
    ):
        for length, send in PLACES.values():
            for part in PARTS:
                started = monotonic_seconds()
                send(project, part * (length // len(part)))
                slowest = max(slowest, monotonic_seconds() - started)
        project.expect("GET", "/control/journal/")
    if report.size.strict:
        report.limit("slowest request with a long text", slowest, SECONDS_MAX, "s")
