"""Long histories are folded: equal failed attempts, and repeated exchanges."""

from datetime import UTC, datetime, timedelta

from payment_sandbox.operations.history import TimelineEntry, fold

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
            sent = step(
                0, "service", "shop", "webhook", f"webhook, attempt {number}: completed", 2 * (number - 1)
            )
            name = f"{webhook}/{number}"
            entries.append(sent._replace(id=name))
            response = step(0, "shop", "service", "webhook-response", answer, 2 * (number - 1), name)
            entries.append(response._replace(id=f"{name}/response"))
    return entries


def labels(timeline_entries: list[TimelineEntry]) -> list[str]:
    """Return the labels of the folded history."""
    return [each.label for each in fold(timeline_entries)]


def test_two_webhooks_that_fail_in_turn() -> None:
    """The first attempts stay; the other ones are one row."""
    assert labels(attempts("ab", range(1, 11))) == [
        *["webhook, attempt 1: completed", "500"] * 2,
        "attempts 2 to 10 of both, every 2 min, until 12:18: all 500",
    ]
    assert labels(attempts("a", range(1, 11)))[-1] == "attempts 2 to 10, every 2 min, until 12:18: all 500"
    assert "of 3 webhooks" in labels(attempts("abc", range(1, 6)))[-1]


def test_few_or_differing_attempts_are_not_folded() -> None:
    """Few attempts and attempts with other results are not folded."""
    few = attempts("ab", range(1, 4))
    assert fold(few) == few
    mixed = [*attempts("a", range(1, 2), "404"), *attempts("a", range(2, 7))]
    assert labels(mixed)[:2] == ["webhook, attempt 1: completed", "404"]
    assert labels(mixed)[-1] == "attempts 2 to 6, every 2 min, until 12:10: all 500"


def test_repeated_exchanges_are_folded() -> None:
    """More than two equal exchanges become one, with their number."""
    block = [
        ("shop", "service", "request", "reads the order"),
        ("service", "shop", "response", "200 · completed"),
    ]
    steps = [step(number, *block[number % 2]) for number in range(8)]
    assert labels(steps) == ["reads the order", "200 · completed", "3 more like these, until 12:00:00"]
    assert fold(steps[:4]) == steps[:4]
