"""What every answer shows by itself, whichever probe or shop asked for it."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from payment_sandbox.verification.answer import Answer
from payment_sandbox.verification.checks import (
    BARE,
    INTEGER,
    LIST,
    MOMENT,
    TEXT,
    Check,
    Checks,
    holds,
    kind,
    one_of,
)

ORDER_STATUSES: Final = ("new", "processing", "completed", "cancelled", "accepted", "error", "expired")
STATUSES: Final = (*ORDER_STATUSES, "pending")
ORDER_PATH: Final = re.compile(r"/v1/orders(/[^/?]+)?/?(\?.*)?")
ERRORS: Final = range(400, 600)
NOT_MODIFIED: Final = 304


def passive(answers: Sequence[Answer]) -> Checks:
    """The checks of all answers; each difference is told once, with the first call that shows it."""
    seen: set[tuple[str, str]] = set()
    for answer in answers:
        for check in _of(answer):
            told = check.rule, check.how.partition(" is ")[0]
            if told not in seen:
                seen.add(told)
                yield check if check.holds else check._replace(how=f"{answer.call}: {check.how}")


def _of(answer: Answer) -> Iterator[Check]:
    if answer.status == NOT_MODIFIED or not answer.path.startswith("/v1/"):
        return
    mimetype = answer.headers.get("Content-Type", "").partition(";")[0]
    yield holds("END-01", mimetype == "application/json", f"the answer is {mimetype or 'untyped'}")
    if answer.status in ERRORS:
        for place in ("error.type", "error.value"):
            yield kind("SET-03", answer, place, TEXT)
        yield holds("SET-03", answer.at("error.status") == answer.status, "error.status is another status")
    elif answer.is_success:
        is_error = isinstance(answer.data, dict) and "error" in answer.data
        yield holds(
            "SET-06", not is_error and answer.data is not None, f"{answer.told} with an error or null"
        )
        if is_order(answer):
            yield from _of_order(answer)


def is_order(answer: Answer) -> bool:
    """Whether the answer is an order, which is not a refund."""
    path = ORDER_PATH.fullmatch(answer.path)
    return path is not None and isinstance(answer.data, dict) and "refund_of_order_id" not in answer.data


def _of_order(answer: Answer) -> Iterator[Check]:
    yield one_of("SET-35", answer, "status", ORDER_STATUSES)
    etag = answer.headers.get("ETag", "")
    yield holds("SET-32", etag.startswith('"'), f"the ETag of an order is {etag or 'missing'}")
    yield kind("ORD-05", answer, "amount", INTEGER)
    for name in ("created", "modified"):
        yield kind("ORD-19", answer, name, MOMENT)
    if "order_url" in answer.data:
        yield kind("ORD-24", answer, "order_url", BARE)
    attempts = answer.at("transactions")
    for index in range(len(attempts) if LIST.fits(attempts) else 0):
        yield from _of_transaction(answer, f"transactions[{index}].", attempts[index])


def _of_transaction(answer: Answer, below: str, attempt: Any) -> Iterator[Check]:
    yield one_of("STA-18", answer, f"{below}status", STATUSES)
    for name in ("created", "modified"):
        yield kind("TX-06", answer, f"{below}{name}", MOMENT)
    if isinstance(attempt, dict) and "payment_url" in attempt:
        yield kind("TX-12", answer, f"{below}payment_url", BARE)
