"""What a verification prints."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.kernel.printing import printable
from payment_sandbox.verification.comparing import Compared
from payment_sandbox.verification.probing import Told, Verdict
from payment_sandbox.verification.verifying import Found

ORDER: Final = (Verdict.UNKNOWN, Verdict.AGREES, Verdict.DIFFERS)  # what matters most stands last
WIDTH: Final = len(Verdict.UNKNOWN.value)
LEFT_SHOWN_MAX: Final = 3


def lines(told: Mapping[str, Told], beside: Mapping[str, Told] | None = None) -> Iterator[str]:
    """A line per rule; ``beside`` has the verdicts of another server."""
    texts = rule_texts()
    for verdict in ORDER:
        for each in told.values():
            if each.verdict is verdict:
                yield f"{verdict.value:{WIDTH}}  {each.rule:7}  {texts[each.rule]}"
                if each.how and verdict is not Verdict.AGREES:
                    yield f"{'':{WIDTH}}           {printable(each.how)}"
                other = beside.get(each.rule) if beside is not None else None
                if other is not None and (other.verdict, other.how) != (verdict, each.how):
                    yield f"{'':{WIDTH}}           the other server {_other(other)}"


def _other(told: Told) -> str:
    return f"{told.verdict.value}: {printable(told.how)}" if told.how else told.verdict.value


def counts(found: Found) -> str:
    """How many rules have each verdict."""
    agree, differ, unknown = (found.count(verdict) for verdict in Verdict)
    return f"{agree} rules agree, {differ} differ, {unknown} could not be told"


def left_behind(found: Found) -> str:
    """What could not be taken back, in a sentence."""
    if not found.left:
        return "every order that it made is cancelled again"
    some = ", ".join(found.left[:LEFT_SHOWN_MAX])
    more = f" and {len(found.left) - LEFT_SHOWN_MAX} more" if len(found.left) > LEFT_SHOWN_MAX else ""
    problem = "orders could not be cancelled, because money had moved; where it could be, it was refunded"
    return f"{len(found.left)} {problem}: {some}{more}"


def as_data(compared: Compared) -> dict[str, Any]:
    """A verification as JSON."""
    return {
        "url": compared.url,
        "rules": [_rule(each, compared.ours.told) for each in compared.theirs.told.values()],
        "settings": dict(compared.settings),
        "not_copied": [each.rule for each in compared.not_copied],
        "left": compared.theirs.left,
    }


def _rule(told: Told, beside: Mapping[str, Told]) -> dict[str, Any]:
    other = beside.get(told.rule)
    return {
        "rule": told.rule,
        "text": rule_texts()[told.rule],
        "verdict": told.verdict.value,
        "how": told.how,
        "beside": None if other is None else {"verdict": other.verdict.value, "how": other.how},
    }
