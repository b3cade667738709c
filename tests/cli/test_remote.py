"""Commands for a running server."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from payment_sandbox.cli.main import main
from tests.support.commands import started
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(
    watched: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    """Run a command against a project, in this process."""
    monkeypatch.setenv("SANDBOX_URL", watched.url)
    monkeypatch.setenv("SANDBOX_API_KEY", watched.key)
    on_interrupt = signal.getsignal(signal.SIGINT)

    def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["payment-sandbox", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), *capsys.readouterr())

    yield run_command
    signal.signal(signal.SIGINT, on_interrupt)


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


def test_a_credit_names_its_transaction(run: Run, watched: Sandbox) -> None:
    """The transfer that was given up receives the money, although the order is paid."""
    watched.settings(mode="live")
    order = watched.place()
    for method in ("bank-transfer", "credit-card"):
        run("act", order["id"], "customer", "choose", "--payment-method", method)
    transfer, paying = (attempt["id"] for attempt in watched.pay(order)["transactions"])
    credit = ("act", order["id"], "bank", "credit", "--transaction-id")
    assert run(*credit, transfer).stdout == f"order {order['id']} is completed\n"
    assert watched.read(order, "amount_details")["amount_details"]["received"] == 2 * order["amount"]
    refused = run(*credit, paying)
    assert (refused.returncode != 0, "credit is not possible" in refused.stderr) == (True, True)


def test_a_program_gets_json(run: Run, watched: Sandbox) -> None:
    """With ``--json``, the server's response is printed."""
    assert json.loads(run("health", "--json").stdout)["status"] == "ok"
    assert json.loads(run("clock", "--rate", "60", "--json").stdout)["rate"] == 60
    assert json.loads(run("clock", "--freeze", "--json").stdout)["mode"] == "frozen"


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


def test_a_code_is_scanned(run: Run, watched: Sandbox) -> None:
    """The scan creates an order of the amount that the payer enters."""
    code = {"amount": 100, "amount_changeable": True, "amount_min": 50, "amount_max": 900}
    made = watched.post("/v1/bankqr/", {**code, "description": "Coffee"}).json()
    printed = run("scan", made["id"], "--amount", "500").stdout
    (order,) = watched.get("/control/orders/").json()["items"]
    assert (printed, order["amount"]) == (f"order {order['id']} is processing\n", 500)


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
    with started("watch", SANDBOX_URL=watched.url, SANDBOX_API_KEY=watched.key) as watching:
        assert watching.stdout is not None
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


def test_an_order_without_webhooks_has_nothing_to_resend(run: Run, watched: Sandbox) -> None:
    """The error names the order and the setting that it lacks."""
    refused = run("redeliver", "last")
    assert "there are no orders yet" in refused.stderr
    order = watched.place(card())
    refused = run("redeliver", "last")
    assert refused.returncode == 2
    assert f"order {order['id']} has no webhooks; is a webhook_url set?" in refused.stderr
    watched.settings(webhook_url=None)
    watched.acted(order, "customer visit")
    refused = run("redeliver", order["id"])
    assert refused.returncode == 2
    assert "were not sent, because no address was set" in refused.stderr
    assert "redeliver --to URL" in refused.stderr


def test_the_help_shows_whole_sentences(run: Run) -> None:
    """No line of the list of commands is cut off."""
    listed = run("--help").stdout.partition("Commands:")[2]
    assert "..." not in listed
    sentence = "Forward the project's webhooks to a shop that the server cannot reach, until Ctrl-C."
    assert sentence in " ".join(listed.split())


def test_all_mistakes_of_a_scenario_file_are_listed(run: Run, tmp_path: Path) -> None:
    """Mistakes have line and column, as in ``check``."""
    file = tmp_path / "x.yaml"
    file.write_text(
        "name: x\nrulez: []\nrules:\n  - then: {customer: payz}\n  - then: {customer: pays, after: soon}\n"
    )
    result = run("scenario", str(file))
    assert result.returncode == 2
    places = [line.split(" ")[1:3] for line in result.stderr.splitlines()]
    assert places == [
        [f"{file}:2:1:", "rulez"],
        [f"{file}:4:12:", "rules[0].then.customer"],
        [f"{file}:5:28:", "rules[1].then.after"],
    ]
