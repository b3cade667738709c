"""Long histories are folded: equal failed attempts, and repeated exchanges."""

from datetime import UTC, datetime, timedelta

from payment_sandbox.judge.history import TimelineEntry, fold

STATUSES = {"a": "processing", "b": "completed"}
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def step(
    number: int, sender: str, receiver: str, kind: str, label: str, minutes: int = 0, cause: str | None = None
) -> TimelineEntry:
    """Return a step this many minutes after the start; webhooks have failed."""
    at = START + timedelta(minutes=minutes)
    is_attempt = kind.startswith("webhook")
    return TimelineEntry(
        f"step-{number}", at, at, sender, receiver, kind, label, None, cause, "o", is_attempt
    )


def attempts(webhooks: str, numbers: range, answer: str = "500") -> list[TimelineEntry]:
    """Return attempts of each webhook in turn, two minutes apart."""
    entries = []
    for number in numbers:
        for webhook in webhooks:
            label = f"webhook, attempt {number}: {STATUSES[webhook]}"
            sent = step(0, "service", "shop", "webhook", label, 2 * (number - 1))
            name = f"{webhook}/{number}"
            entries.append(sent._replace(id=name, attempt=number))
            response = step(0, "shop", "service", "webhook-response", answer, 2 * (number - 1), name)
            entries.append(response._replace(id=f"{name}/response"))
    return entries


def labels(timeline_entries: list[TimelineEntry]) -> list[str]:
    """Return the labels of the folded history."""
    return [each.label for each in fold(timeline_entries)]


def test_two_webhooks_that_fail_in_turn() -> None:
    """The first attempts stay; the other ones are one row."""
    note = "attempts 2 to 10 like these, until 12:18:00"
    assert labels(attempts("ab", range(1, 11))) == [
        *["webhook, attempt 1: processing", "500", "webhook, attempt 1: completed", "500"],
        note,
    ]
    assert labels(attempts("b", range(1, 11))) == ["webhook, attempt 1: completed", "500", note]


def test_webhooks_with_one_number_are_no_retries() -> None:
    """The first webhooks of several orders, and resends by hand, are folded without a range of attempts."""
    for number in (0, 1, 2):
        same = [each for _ in range(4) for each in attempts("b", range(number, number + 1))]
        assert labels(same)[-1].startswith("3 more like these, until")


def test_repeated_exchanges_are_folded() -> None:
    """More than two equal exchanges become one, with their number."""
    block = [
        ("shop", "service", "request", "reads the order"),
        ("service", "shop", "response", "200 · completed"),
    ]
    steps = [step(number, *block[number % 2]) for number in range(8)]
    assert labels(steps) == ["reads the order", "200 · completed", "3 more like these, until 12:00:00"]
    assert list(fold(steps[:4])) == steps[:4]
