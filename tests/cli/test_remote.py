"""Commands for a running server."""

import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.forks import Fork
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(watched: Sandbox, run_here: Run) -> Run:
    """Run a command against a project, in this process."""
    variables = {"SANDBOX_URL": watched.url, "SANDBOX_API_KEY": watched.key}
    return lambda *arguments: run_here(*arguments, **variables)


def test_an_order_can_be_run_from_the_command_line(run: Run, watched: Sandbox, shop: Shop) -> None:
    """Act, advance the clock, list the webhooks and reset."""
    order = watched.place(card(capture_mode="delayed"))
    assert (
        run("act", order["id"], "customer", "pay", "--card", "challenge").stdout
        == f"order {order['id']} is completed\n"
    )
    advanced = run("clock", "--by", "PT30M").stdout
    assert f"delayed capture of {order['id']}" in advanced
    assert "It is now 2026-03-01T12:30:00.000000+00:00." in advanced
    assert run("clock").stdout == "2026-03-01T12:30:00.000000+00:00 (frozen)\n"
    listed = run("webhooks", "--order-id", order["id"], "--state", "delivered").stdout
    assert listed.count("delivered") == 2
    assert "  200\n" in listed
    assert watched.project["project_id"] in run("projects").stdout
    assert "has been reset" in run("reset").stdout
    assert run("webhooks").stdout == "no webhooks\n"


def test_a_project_returns_to_a_snapshot(run: Run, watched: Sandbox, tmp_path: Path) -> None:
    """A snapshot is printed as JSON, and restored from a file; a file that is none is refused."""
    file = tmp_path / "state.json"
    order = watched.place(card(), description="two\nlines")
    file.write_text(run("snapshot").stdout)
    watched.pay(order)
    assert run("restore", str(file)).stdout == f"project {watched.project['project_id']} is restored\n"
    assert (watched.read(order)["status"], watched.read(order)["description"]) == ("new", "two\nlines")
    for text, problem in (("{", "state.json is not JSON: "), ("{}", "400: "), ("[" * 100_000, "is not JSON")):
        file.write_text(text)
        refused = run("restore", str(file))
        assert (refused.returncode, problem in refused.stderr) == (2, True), refused.stderr


def test_the_review_of_all_projects_names_their_tests(run: Run, watched: Sandbox) -> None:
    """Each finding names the section to read, and with ``--all-projects`` its test."""
    watched.patch("/control/project/", {"name": "a basket is paid once"})
    for _ in range(2):
        watched.create(card(), merchant_order_id="shop-1")
    own, every = run("review"), run("review", "--all-projects")
    assert own.returncode == every.returncode == 1
    section = "docs mistakes#after-a-lost-response"
    assert (
        f"See payment-sandbox {section} or {watched.url}/docs/mistakes/#after-a-lost-response\n" in own.stdout
    )
    assert "Test: " not in own.stdout
    (mistake,) = (
        text for text in f"\n{every.stdout}".split("\nORD-07: ")[1:] if "a basket is paid once" in text
    )
    assert "'shop-1'" in mistake.splitlines()[0]
    assert "\n  Test: a basket is paid once\n" in mistake


def test_scenarios_can_be_listed_and_switched(run: Run, tmp_path: Path) -> None:
    """A scenario is given by name or as a file."""
    assert run("scenario").stdout.startswith("default:")
    assert "webhook-twice" in run("scenario", "--list").stdout
    assert run("scenario", "webhook-twice").stdout.startswith("webhook-twice: Every webhook")
    own = tmp_path / "own.yaml"
    own.write_text("name: own\nrules:\n  - then: {customer: pays}\n")
    assert run("scenario", str(own)).stdout == "own: no description\n"


def test_all_that_happens_can_be_watched(watched: Sandbox) -> None:
    """``watch`` prints a line for each event."""
    with closing(Fork("watch", SANDBOX_URL=watched.url, SANDBOX_API_KEY=watched.key)) as watching:
        project = watched.project_in_process
        while not project.events.watchers:
            assert watching.poll() is None
        order = watched.place(card())
        watched.acted(order, "customer visit")
        watched.settle()
        lines: list[str] = []
        while not lines or not lines[-1].startswith("clock"):
            lines.append(watching.stdout.readline())
            assert lines[-1], "the command has ended"
    printed = "".join(lines)
    assert f"status   order {order['id']}  new -> processing\n" in printed
    assert f"action   customer visit  order {order['id']}\n" in printed
    assert "request  POST /v1/orders/  201\n" in printed
    assert "request-" not in printed, "the ids of requests are internals"
    assert any(line.startswith("webhook") and "answered 200" in line for line in lines)
