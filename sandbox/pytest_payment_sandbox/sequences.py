"""Runs tests once per sequence in which webhooks can arrive."""

import re
from typing import TYPE_CHECKING, Any

import pytest

from payment_sandbox.loading import lazy

if TYPE_CHECKING:
    from payment_sandbox.scenarios import variations
    from payment_sandbox.scenarios.variation import VariationOffer
    from payment_sandbox.testing.project import PaymentSandbox
else:
    variations = lazy("payment_sandbox.scenarios.variations")

SEQUENCE_FIXTURE = "payment_webhook_sequence"
RULE_KINDS = ("faults", "webhooks")
SEQUENCE_MARKER = "payment_webhook_sequences"


def _load_sequences() -> "dict[str, tuple[VariationOffer, ...]]":
    return variations.sequences()


def is_marked(item: Any) -> bool:
    """Whether a test runs once per sequence."""
    return item.get_closest_marker(SEQUENCE_MARKER) is not None


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Run a marked test once per sequence."""
    if is_marked(metafunc.definition):
        if SEQUENCE_FIXTURE not in metafunc.fixturenames:
            metafunc.fixturenames.append(SEQUENCE_FIXTURE)
        metafunc.parametrize(SEQUENCE_FIXTURE, list(_load_sequences()), ids=_test_id)


def _test_id(sequence: str) -> str:
    return f"webhooks {sequence}"


def refuse_unparametrized(items: list[pytest.Item]) -> None:
    """Reject the marker on tests that cannot be parametrized.

    Raises:
        pytest.UsageError: a marked test cannot be parametrized.
    """
    for item in items:
        if is_marked(item) and SEQUENCE_FIXTURE not in getattr(getattr(item, "callspec", None), "params", {}):
            raise pytest.UsageError(
                f"{item.nodeid}: payment_webhook_sequences needs a test function; "
                "methods of a unittest.TestCase cannot be run once per sequence"
            )
        if is_marked(item) and "payment_sandbox" not in getattr(item, "fixturenames", ()):
            raise pytest.UsageError(
                f"{item.nodeid}: payment_webhook_sequences needs the fixture payment_sandbox; "
                "a project shared by several tests cannot have a sequence for each test"
            )


def configure_project(project: "PaymentSandbox", callspec: Any) -> None:
    """Configure a project so that its webhooks arrive in the sequence selected for its test."""
    name = callspec.params.get(SEQUENCE_FIXTURE) if callspec is not None else None
    offers = _load_sequences()[name] if name is not None else ()
    rules = {kind: [rule for offer in offers for rule in offer.rules.get(kind, ())] for kind in RULE_KINDS}
    if any(rules.values()):
        project.client.faults(**rules)
    settings = {key: value for offer in offers for key, value in offer.settings.items()}
    if settings:
        project.client.change_settings(**settings)


def summarize(terminalreporter: Any) -> None:
    """Print the simplest failing sequence of each failed test."""
    smallest: dict[str, int] = {}
    failed = [each for each in terminalreporter.stats.get("failed", ()) if _test_id("") in each.nodeid]
    names = list(_load_sequences()) if failed else []
    for report in failed:
        test, _, rest = report.nodeid.partition("[")
        for rank, name in enumerate(names):
            if re.search(rf"(?:^|-){re.escape(_test_id(name))}(?:-|$)", rest.rstrip("]")):
                smallest[test] = min(rank, smallest.get(test, rank))
    for test, rank in smallest.items():
        terminalreporter.write_line(f"{test}: the simplest failing webhook sequence is: {names[rank]}")
