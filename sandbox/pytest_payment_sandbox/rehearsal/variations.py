"""The table of variations: what goes otherwise at one step, in the order of a rehearsal."""

from functools import partial
from typing import Final

from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.scenarios import risks
from payment_sandbox.scenarios.effects import (
    Delay,
    Drop,
    Duplicate,
    ErrorStatus,
    Fault,
    Reset,
    Together,
    WebhooksFirst,
)
from payment_sandbox.testing.shops.submitting import Submission
from pytest_payment_sandbox.rehearsal import scenes
from pytest_payment_sandbox.rehearsal.scenes import Scene
from pytest_payment_sandbox.rehearsal.steps import (
    ONCE,
    PAID,
    SAME,
    UNCHANGED,
    ActionDetails,
    Change,
    Variation,
)

UNPAID, TWICE, LATE, DEBT = risks.UNPAID_GOODS, risks.DUPLICATION, risks.UNSHIPPED, risks.DEBT
DOUBLE, UNDONE, NO_CAPTURE = risks.DOUBLE_PAYMENT, risks.UNDONE_PAYMENT, risks.NO_CAPTURE
OUTAGE: Final = Fault(ErrorStatus(503))
CONFLICT: Final = Fault(ErrorStatus(409))
LOST: Final = Fault(Reset(), is_after=True)
FAILED: Final = frozenset({"HOOK-09"})  # a handler must report what it could not do
CLICKED: Final = frozenset({"ORD-07", "CTL-23"})  # the customer, not the shop, sent the form again
FAIL: Final = Action(CUSTOMER, "fail", "Do not honour")
RETURN: Final = scenes.return_first
CANCEL: Final = Action(CUSTOMER, "cancel")


def _pays(about: ActionDetails) -> bool:
    return about.action.name == "customer pay"


def _sends(about: ActionDetails) -> bool:
    return about.action.name == "bank credit"


def _pays_or_sends(about: ActionDetails) -> bool:
    return _pays(about) or _sends(about)


_webhook = partial(Variation, ("webhook",))
_failing = partial(_webhook, excused=FAILED)
_call = partial(Variation, ("create", "change"), excused=FAILED)
_read = partial(Variation, ("read",), excused=FAILED)
_change = partial(Variation, ("change",), excused=FAILED)
_press = partial(Variation, ("press",), excused=CLICKED)
_payment = partial(Variation, ("action",), applies=_pays)
_money_in = partial(Variation, ("action",), applies=_pays_or_sends)
_transfer = partial(Variation, ("action",), applies=_sends)
_returning = partial(Variation, ("action",), applies=lambda about: _pays(about) and about.has_return)
_beside = partial(Variation, ("action",), applies=lambda about: _pays_or_sends(about) and about.has_earlier)
_giving_up = partial(
    Variation, ("action",), applies=lambda about: about.action.name in ("customer fail", "customer cancel")
)
_restart = partial(Variation, ("action", "time"), needs_restart=True)
_screening = partial(Variation, ("attempt",), applies=lambda about: "screening" in about.outcome_keys)
_refund = partial(Variation, ("attempt",), applies=lambda about: about.is_refund)
_charge = partial(
    Variation, ("attempt",), applies=lambda about: not about.is_refund and "processor" in about.outcome_keys
)

VARIATIONS: Final = (
    _webhook("twice", "{step} arrived twice", TWICE, Duplicate(2), SAME, holds=True),
    _failing("together", "{step} arrived twice at the same moment", TWICE, Together(2), SAME, holds=True),
    _webhook("lost", "{step} was lost", LATE, Drop(), SAME),
    _webhook("late", "{step} arrived an hour late", LATE, Delay("PT1H"), SAME),
    _failing("lost-and-unread", "{step} was lost, and the next read failed with 503", LATE, Drop(), SAME),
    _call("answer-lost", "{step} was carried out, but its response was lost", DOUBLE, LOST, ONCE),
    _call("unavailable", "{step} failed with 503, without any effect", DOUBLE, OUTAGE, ONCE),
    _call("refused", "{step} was refused with 409, without any effect", NO_CAPTURE, CONFLICT, ONCE),
    _call("early", "the webhooks of {step} arrived before its response", LATE, Fault(WebhooksFirst()), SAME),
    _read("unavailable-twice", "{step} and the next read failed with 503", LATE, OUTAGE, SAME),
    _change(
        "captured",
        "the merchant captured by hand before {step}",
        TWICE,
        partial(scenes.act_by_hand, "capture"),
        applies=lambda call: call.method == "DELETE" or "/captures/" in call.path or "/voids/" in call.path,
    ),
    _change(
        "voided",
        "the merchant voided by hand before {step}",
        NO_CAPTURE,
        partial(scenes.act_by_hand, "void"),
        applies=lambda call: "/captures/" in call.path,
    ),
    _press("twice", "{step} was submitted twice", TWICE, lambda run, body: Submission(body, body), ONCE),
    _press(
        "again-later",
        "{step} was submitted again before the next payment",
        UNPAID,
        lambda run, body: Submission(body, body, postpone=run.before_action.append),
    ),
    _press(
        "another-pays",
        "another customer submitted {step} first, and paid",
        risks.MIXED_UP_CUSTOMERS,
        lambda run, body: Submission(body, body, after_other=run.note_other_customer()),
    ),
    _press(
        "one-less",
        "{step} was submitted with a number reduced by one",
        DEBT,
        lambda run, body: Submission(scenes.with_one_less(body)),
        applies=scenes.has_parts,
    ),
    _press(
        "in-parts",
        "{step} was submitted in two parts",
        TWICE,
        lambda run, body: Submission(scenes.with_one_less(body), scenes.with_only_one(body)),
        ONCE,
        applies=scenes.has_parts,
    ),
    _payment("fails", "{step} failed", UNPAID, lambda scene: scene.do(FAIL)),
    _payment("opens-page", "the customer opened the payment page, and left", UNPAID, scenes.open_page),
    _returning("returns-first", "the customer returned before the webhook of {step}", UNPAID, RETURN, SAME),
    _returning("returns-unpaid", "the customer returned without having paid", UNPAID, Scene.returns),
    _payment(
        "fails-then-pays",
        "{step} failed at first, and succeeded on the second attempt",
        LATE,
        scenes.fail_then_pay,
        PAID,
        applies=lambda about: _pays(about) and about.is_hosted,
    ),
    _money_in("too-late", "{step} came after the expiry", LATE, scenes.pay_too_late, PAID),
    _money_in("last-moment", "{step} came a second before the expiry", LATE, scenes.pay_at_last_moment, PAID),
    _transfer("short", "{step} was one cent short", UNPAID, lambda scene: scene.send(-1)),
    _transfer("surplus", "{step} was one euro too high", DEBT, lambda scene: scene.send(100)),
    _giving_up("pays-later", "the customer paid after the next step, not {step}", LATE, scenes.pay_later),
    _beside(
        "other-tab",
        "the customer paid on the page of an earlier attempt instead of {step}",
        LATE,
        lambda scene: scene.act_on_earlier("pay", 1),
    ),
    _beside(
        "pays-both",
        "the customer also paid on the page of an earlier attempt after {step}",
        DOUBLE,
        lambda scene: (scene.do(), scene.act_on_earlier("pay")),
    ),
    _payment("cancels", "the customer cancelled", UNPAID, lambda scene: scene.do(CANCEL)),
    _beside(
        "cancels-later",
        "the customer cancelled an earlier attempt after {step}",
        UNDONE,
        lambda scene: (scene.do(), scene.act_on_earlier("cancel")),
    ),
    _money_in("walks-away", "{step} never came", UNPAID, lambda scene: None),
    _payment(
        "lapses",
        "the authorization expired after {step}",
        risks.LAPSE,
        scenes.lapse,
        applies=lambda about: _pays(about) and about.has_authorization,
    ),
    _restart("restarted", "the shop was restarted after {step}", LATE, scenes.restart, SAME),
    _screening("declined", "the screening of {step} declined", UNPAID, {"screening": "declined"}),
    _refund("fails-later", "{step} failed after two days", DEBT, {"processor": "fails", "after": "P2D"}),
    _refund("settles-later", "{step} took two days", DEBT, {"processor": "settles", "after": "P2D"}, SAME),
    _charge("charge-declined", "{step} was declined", UNPAID, {"processor": "fails", "after": "PT1M"}),
    _charge("charge-later", "{step} took a day", LATE, {"processor": "settles", "after": "P1D"}, ONCE),
)


def parse_change(text: str) -> Change | None:
    """Parse ``webhook:2:twice``; None for ``unchanged``.

    Raises:
        ValueError: the kind of step or the variation is unknown.
    """
    if text.strip() == UNCHANGED:
        return None
    kind, _, rest = text.strip().partition(":")
    number, _, name = rest.partition(":")
    known = {row.name: row for row in VARIATIONS if kind in row.kinds}
    if not name and number in known:
        raise ValueError(f"{text!r} has no number: use {kind}:1:{number} for the first {kind}")
    if name not in known or not number.isdecimal():
        names = f" with one of {', '.join(sorted(known))}" if number.isdecimal() and known else ""
        example = "such as webhook:2:twice"
        raise ValueError(f"{text!r} is not a variation: expected kind:number:name{names}, {example}")
    return Change(f"{kind}:{number}", known[name])
