"""Long histories are told short: tries that failed alike, and exchanges that come again and again."""

from datetime import UTC, datetime, timedelta

from payment_sandbox.operations.folding import fold
from payment_sandbox.operations.history import TimelineEntry

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def step(
    number: int, sender: str, receiver: str, kind: str, label: str, minutes: int = 0, cause: str | None = None
) -> TimelineEntry:
    """A step, so many minutes after the beginning; that of a webhook fails."""
    at = BEGIN + timedelta(minutes=minutes)
    is_try = kind.startswith("webhook")
    return TimelineEntry(f"step-{number}", at, at, sender, receiver, kind, label, None, cause, "o", is_try)


def tries(webhooks: str, numbers: range, answer: str = "500") -> list[TimelineEntry]:
    """Each webhook is tried in turn, every two minutes."""
    made = []
    for number in numbers:
        for webhook in webhooks:
            sent = step(
                0, "service", "shop", "webhook", f"webhook, attempt {number}: completed", 2 * (number - 1)
            )
            name = f"{webhook}/{number}"
            made.append(sent._replace(id=name))
            got = step(0, "shop", "service", "webhook-response", answer, 2 * (number - 1), name)
            made.append(got._replace(id=f"{name}/response"))
    return made


def labels(timeline_entries: list[TimelineEntry]) -> list[str]:
    """What is told."""
    return [each.label for each in fold(timeline_entries)]


def test_two_webhooks_that_fail_in_turn() -> None:
    """The first tries stay; all others are one row."""
    assert labels(tries("ab", range(1, 11))) == [
        *["webhook, attempt 1: completed", "500"] * 2,
        "attempts 2 to 10 of both, every 2 min, until 12:18: all 500",
    ]
    assert labels(tries("a", range(1, 11)))[-1] == "attempts 2 to 10, every 2 min, until 12:18: all 500"
    assert "of 3 webhooks" in labels(tries("abc", range(1, 6)))[-1]


def test_tries_that_went_otherwise_stay() -> None:
    """A few are no crowd; and what failed in another way is told for itself."""
    few = tries("ab", range(1, 4))
    assert fold(few) == few
    mixed = [*tries("a", range(1, 2), "404"), *tries("a", range(2, 7))]
    assert labels(mixed)[:2] == ["webhook, attempt 1: completed", "404"]
    assert labels(mixed)[-1] == "attempts 2 to 6, every 2 min, until 12:10: all 500"


def test_exchanges_that_come_again_and_again() -> None:
    """More than two equal ones are told once, and counted."""
    block = [
        ("shop", "service", "request", "reads the order"),
        ("service", "shop", "response", "200 · completed"),
    ]
    steps = [step(number, *block[number % 2]) for number in range(8)]
    assert labels(steps) == ["reads the order", "200 · completed", "3 more like these, until 12:00:00"]
    assert fold(steps[:4]) == steps[:4]
