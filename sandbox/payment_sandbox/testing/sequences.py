"""The sequences in which webhooks can arrive, and tests that run once per sequence."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from payment_sandbox.testing.project import PaymentSandbox

FIXTURE = "payment_webhook_sequence"
MARKERS = ("payment_webhook_sequences", "payment_webhook_orders")


class WebhookSequence(NamedTuple):
    """How a project is set up so that its webhooks come in a sequence."""

    settings: dict[str, Any] = {}
    webhooks: Sequence[dict[str, Any]] = ()
    faults: Sequence[dict[str, Any]] = ()


SEQUENCES: dict[str, WebhookSequence] = {
    # from the simplest to the most complex
    "after the response": WebhookSequence(),
    "before the response": WebhookSequence({"webhook_timing": "before_response"}),
    "twice": WebhookSequence(webhooks=[{"then": {"duplicate": 2}}]),
    "swapped": WebhookSequence(webhooks=[{"then": {"swap": True}}]),
    "twice, before the response": WebhookSequence(
        {"webhook_timing": "before_response"}, [{"then": {"duplicate": 2}}]
    ),
}


def is_marked(item: Any) -> bool:
    """Whether a test runs once per sequence."""
    return any(item.get_closest_marker(name) is not None for name in MARKERS)


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Run a marked test once per sequence."""
    if is_marked(metafunc.definition):
        if FIXTURE not in metafunc.fixturenames:
            metafunc.fixturenames.append(FIXTURE)
        metafunc.parametrize(FIXTURE, list(SEQUENCES), ids=_test_id)


def _test_id(sequence: str) -> str:
    return f"webhooks {sequence}"


def refuse_unparametrized(items: list[pytest.Item]) -> None:
    """Refuse the marker on tests that cannot be parametrized.

    Raises:
        pytest.UsageError: there is such a test.
    """
    for item in items:
        if is_marked(item) and FIXTURE not in getattr(getattr(item, "callspec", None), "params", {}):
            raise pytest.UsageError(
                f"{item.nodeid}: payment_webhook_sequences needs a test function; "
                "methods of a unittest.TestCase cannot be run once per sequence"
            )
        if is_marked(item) and "payment_sandbox" not in getattr(item, "fixturenames", ()):
            raise pytest.UsageError(
                f"{item.nodeid}: payment_webhook_sequences needs the fixture payment_sandbox; "
                "a project that several tests share cannot have a sequence for each"
            )


def arrange(project: "PaymentSandbox", callspec: Any) -> None:
    """Let a project's webhooks arrive in the sequence of its test."""
    sequence = SEQUENCES.get(callspec.params.get(FIXTURE, "")) if callspec is not None else None
    if sequence is not None:
        if sequence.webhooks or sequence.faults:
            project.client.faults(sequence.faults, sequence.webhooks)
        if sequence.settings:
            project.client.change_settings(**sequence.settings)


def summarize(terminalreporter: Any) -> None:
    """For each test that failed in some sequence, name the simplest one."""
    smallest: dict[str, int] = {}
    names = list(SEQUENCES)
    for report in terminalreporter.stats.get("failed", ()):
        test, _, rest = report.nodeid.partition("[")
        for rank, name in enumerate(names):
            if re.search(rf"(?:^|-){re.escape(_test_id(name))}(?:-|$)", rest.rstrip("]")):
                smallest[test] = min(rank, smallest.get(test, rank))
    for test, rank in smallest.items():
        terminalreporter.write_line(f"{test}: the simplest webhook sequence that fails is: {names[rank]}")
