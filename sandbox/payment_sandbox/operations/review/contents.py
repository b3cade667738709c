"""Mistakes in what requests say: keys that nobody reads, and sums that do not add up."""

from collections import defaultdict
from collections.abc import Iterator

from payment_sandbox.operations.review.evidence import Finding, Reviewed, line_of
from payment_sandbox.projects.journal import JournalEntry


def ignored(reviewed: Reviewed) -> Iterator[Finding]:
    """Requests have keys that the service does not know, so it drops them."""
    found: dict[tuple[str, str | None], list[JournalEntry]] = defaultdict(list)
    for entry in reviewed.requests:
        for unknown in entry.unknown:
            found[unknown].append(entry)
    for (path, nearest), entries in found.items():
        meant = f"; did you mean {nearest!r}?" if nearest is not None else ""
        yield Finding(
            "SET-12",
            f"the key {path!r} is not known, so it was ignored{meant}",
            f"Send {nearest!r} instead." if nearest is not None else "Leave it out, or put it into extra.",
            entries[0].order_id if len(entries) == 1 else None,
            tuple(map(line_of, entries)),
        )


def warned(reviewed: Reviewed) -> Iterator[Finding]:
    """Requests were accepted with a warning."""
    for entry in reviewed.requests:
        for warning in entry.warnings:
            yield Finding(
                "SET-31",
                f"a request was accepted with a warning: {warning}",
                "Send amounts that agree: other services of this family refuse what this one warns of.",
                entry.order_id,
                (line_of(entry),),
            )
