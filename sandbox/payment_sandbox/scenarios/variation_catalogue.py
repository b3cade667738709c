"""The catalogue of variations: each deviation from the expected course, its effect, and its risk for a shop.

Rehearsals play a variation at one step of a test. Offers play it for a project, as a dashboard switch or as a
scenario. The documentation lists all variations. To add a variation, add an entry.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from payment_sandbox.orders.actions import CUSTOMER, PROCESSOR, SCREENING, Action
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.scenarios.effects import (
    AfterPayment,
    Delay,
    Drop,
    ErrorStatus,
    Fault,
    OneByOne,
    RateLimit,
    Reset,
    Silence,
    Stale,
    Swap,
    Timeout,
    Together,
    WebhooksFirst,
)
from payment_sandbox.scenarios.model import Subject
from payment_sandbox.scenarios.risks import (
    BLOCKED_SHOP,
    DEBT,
    DOUBLE_PAYMENT,
    DUPLICATION,
    LAPSE,
    MIXED_UP_CUSTOMERS,
    NO_CAPTURE,
    RATE_LIMITED_SHOP,
    UNDONE_PAYMENT,
    UNPAID_GOODS,
    UNSHIPPED,
)
from payment_sandbox.scenarios.variation import (
    ACTION,
    ATTEMPT,
    CALLS,
    CHANGE,
    CREATE,
    JOB,
    PRESS,
    READ,
    TIME,
    WEBHOOK,
    Act,
    ChangedNumber,
    Document,
    OfferedIn,
    OtherChoice,
    OtherCustomer,
    PriorEvent,
    Repeat,
    ReplacementScene,
    Trait,
    Variation,
    VariationOffer,
)


def _is_screened(attempt: Subject, result: str) -> bool:
    return "screening" in attempt.outcome_keys and result in attempt.screenings


UNPAID_STATUSES: Final = (OrderStatus.CANCELLED, OrderStatus.EXPIRED, OrderStatus.ERROR)
EARLY_WEBHOOK_SETTINGS: Final[Document] = {"webhook_timing": "before_response"}
NEXT_ORDER: Final[Document] = {"method": "POST", "path": "/v1/orders/", "nth": 1}
PROCESSING: Final[Document] = {"status": "processing"}
COMPLETED: Final[Document] = {"status": "completed"}
WEBHOOKS_FIRST: Final = Fault(WebhooksFirst())
OUTAGE: Final = Fault(ErrorStatus(503))
CONFLICT_FAULT: Final = Fault(ErrorStatus(409))
LOST_RESPONSE: Final = Fault(Reset(), is_after=True)
LOST_WITH_503: Final = Fault(ErrorStatus(503), is_after=True)
SLOW_SCREENING: Final[Document] = {"screening": "needs-time", "after": "P1D"}

AT_ONCE, AT_REST, SUSPECT, THREADS, *_ = Trait
SWITCH, SCENARIO = OfferedIn

DO: Final = Act("perform the action, or advance the clock")
RETURN: Final = Act("return to the shop", Trait.RETURN)
RETURN_IN_TABS: Final = Act("return to the shop in two tabs at once", Trait.RETURN | Trait.THREADS)
CHOOSE_AGAIN: Final = Act("choose the same method again", condition=lambda step: step.is_hosted)
EXPIRE: Final = Act("wait until the order has expired")
WAIT_TO_LAST_MOMENT: Final = Act("wait until a second before the order's expiry")
PAY_EARLIER: Final = Act("pay earlier attempts", condition=lambda step: step.has_earlier_attempts)
CANCEL_EARLIER: Final = Act("cancel earlier attempts", condition=lambda step: step.has_earlier_attempts)
EXPIRE_EARLIER: Final = Act(
    "wait until an earlier attempt has expired", condition=lambda step: step.has_earlier_attempts
)
SEND_LESS: Final = Act("send a cent less")
SEND_MORE: Final = Act("send a euro more")
TRANSFER_TOO: Final = Act(
    "choose a transfer, pay otherwise, and let the transfer arrive",
    condition=lambda step: step.transfer is not None,
)
LAPSE_AUTHORIZATION: Final = Act(
    "wait until the authorization has expired", condition=lambda step: step.has_authorization
)
RESTART_SHOP: Final = Act("restart the shop", Trait.RESTART)
OPEN_PAGE: Final = Action(CUSTOMER, "visit")


def _scene(*acts: Act | Action | str) -> ReplacementScene:
    return ReplacementScene(acts)


WALKS_AWAY: Final = _scene()
LAPSES: Final = _scene(DO, LAPSE_AUTHORIZATION)
MANUAL_CAPTURE: Final = PriorEvent("the merchant captures by hand")
MANUAL_PART_CAPTURE: Final = PriorEvent("the merchant captures half by hand")
CUSTOMER_PAYMENT: Final = PriorEvent("the customer pays")
MANUAL_VOID: Final = PriorEvent("the merchant voids by hand")
AUTHORIZATION_EXPIRY: Final = PriorEvent("the authorization expires")
ORDER_CHANGE: Final = PriorEvent("the order gets a new version")

_webhook = partial(Variation, kinds=(WEBHOOK,))
_call = partial(Variation, kinds=(CREATE, CHANGE))
_change = partial(Variation, kinds=(CHANGE,), condition=lambda call: "/v1/orders/" in call.path)
_capture = partial(Variation, kinds=(CHANGE,), condition=lambda call: "/captures/" in call.path)
_settlement_call = partial(
    Variation,
    kinds=(CHANGE,),
    condition=lambda call: call.method == "DELETE" or "/captures/" in call.path or "/voids/" in call.path,
)
_cancellation = partial(Variation, kinds=(CHANGE,), condition=lambda call: call.method == "DELETE")
_read = partial(Variation, kinds=(READ,))
_order_read = partial(_read, condition=lambda call: "/orders/" in call.path)
_form = partial(Variation, kinds=(PRESS,))
_number = partial(_form, condition=lambda form: form.has_number)
_amount = partial(_form, condition=lambda form: form.has_amount)
_choice = partial(_form, condition=lambda form: form.has_choice)
_count = partial(_form, condition=lambda form: form.has_parts)
_job = partial(Variation, kinds=(JOB,))
_time = partial(Variation, kinds=(TIME,))
_action = partial(Variation, kinds=(ACTION,))
_customer = partial(_action, condition=lambda acts: acts.action.name == "customer pay")
_payment = partial(_action, condition=lambda acts: acts.action.name in ("customer pay", "bank credit"))
_bank = partial(_action, condition=lambda acts: acts.action.name == "bank credit")
_direct_payment = partial(
    _action, condition=lambda acts: acts.action.name == "customer pay" and not acts.has_authorization
)
_abandonment = partial(
    _action, condition=lambda acts: acts.action.name in ("customer fail", "customer cancel")
)
_settlement = partial(_action, condition=lambda acts: acts.action.name == "processor settle")
_approval = partial(_action, condition=lambda acts: acts.action.name == "screening approve")
_attempt = partial(Variation, kinds=(ATTEMPT,))
_screening = partial(_attempt, condition=lambda attempt: "screening" in attempt.outcome_keys)
_long_screening = partial(_attempt, condition=lambda attempt: _is_screened(attempt, "needs-time"))
_failing_screening = partial(_attempt, condition=lambda attempt: _is_screened(attempt, "error"))
_refund = partial(_attempt, condition=lambda attempt: attempt.is_refund)
_charge = partial(_attempt, condition=lambda each: not each.is_refund and "processor" in each.outcome_keys)

VARIATIONS: tuple[Variation, ...] = (
    # Webhooks; in each group the most common first
    _webhook("twice", "{step} arrived twice", OneByOne(2), DUPLICATION, AT_ONCE | SUSPECT).with_offers(
        VariationOffer(
            "webhook-twice",
            "Every webhook arrives twice",
            SWITCH | SCENARIO,
        )
    ),
    _webhook(
        "together",
        "{step} arrived twice at the same moment",
        Together(2),
        DUPLICATION,
        AT_ONCE | SUSPECT | THREADS,
    ),
    _webhook("lost", "{step} was lost", Drop(), UNSHIPPED, AT_REST | SUSPECT).with_offers(
        VariationOffer(
            "webhook-lost",
            "No webhook ever arrives, without any error",
            SCENARIO,
        )
    ),
    _webhook(
        "swapped", "{step} arrived after the next one", Swap(), UNDONE_PAYMENT, AT_REST | SUSPECT
    ).with_offers(
        VariationOffer(
            "webhooks-swapped", "The processing webhook arrives after the next one", SCENARIO, PROCESSING
        ),
    ),
    _webhook("late", "{step} arrived an hour late", Delay("PT1H"), UNSHIPPED, AT_REST | SUSPECT).with_offers(
        VariationOffer(
            "webhook-late", "Every webhook arrives 10 minutes late", SWITCH, effect=Delay("PT10M")
        ),
        VariationOffer("webhook-late", "The webhook for a payment arrives an hour late", SCENARIO, COMPLETED),
    ),
    _webhook(
        "after-payment",
        "{step} arrived after the next payment",
        AfterPayment("P1D"),
        UNDONE_PAYMENT,
        AT_REST | SUSPECT,
        lambda delivery: delivery.status in UNPAID_STATUSES,
    ),
    _call(
        "early",
        "the webhooks of {step} arrived before its response",
        WEBHOOKS_FIRST,
        UNSHIPPED,
        AT_REST,
    ).with_offers(
        VariationOffer(
            "webhook-before-response",
            "Webhooks arrive before the response",
            SCENARIO,
            settings=EARLY_WEBHOOK_SETTINGS,
        )
    ),
    Variation(
        "unreachable",
        "no attempt arrived",
        Timeout(),
        UNSHIPPED,
    ).with_offers(VariationOffer("unreachable", "Your shop is unreachable", SWITCH)),
    # Calls by the shop
    _read("unavailable", "{step} failed once with 503", OUTAGE, UNSHIPPED, AT_REST | SUSPECT).with_offers(
        VariationOffer("unavailable", "The next call gets a 503", SWITCH, {"nth": 1})
    ),
    _order_read("overtaken", "{step} got a stale response", Fault(Stale()), UNDONE_PAYMENT, AT_REST),
    _call("unavailable", "{step} failed with 503, without any effect", OUTAGE, DOUBLE_PAYMENT, SUSPECT),
    _call(
        "answer-lost",
        "{step} was carried out, but its response was lost",
        LOST_RESPONSE,
        DOUBLE_PAYMENT,
        SUSPECT,
    ).with_offers(
        VariationOffer(
            "lost-answer", "The response to the next new order is lost", SWITCH, NEXT_ORDER, LOST_WITH_503
        ),
        VariationOffer(
            "lost-create-response",
            "The first order is created but the response is lost",
            SCENARIO,
            NEXT_ORDER,
        ),
    ),
    _call("refused", "{step} was refused with 409, without any effect", CONFLICT_FAULT, NO_CAPTURE),
    _settlement_call("captured", "the merchant captured by hand before {step}", MANUAL_CAPTURE, DUPLICATION),
    _settlement_call(
        "half-captured", "the merchant captured half by hand before {step}", MANUAL_PART_CAPTURE, UNPAID_GOODS
    ),
    _cancellation("paid", "the customer paid just before {step}", CUSTOMER_PAYMENT, UNSHIPPED),
    _capture("voided", "the merchant voided by hand before {step}", MANUAL_VOID, NO_CAPTURE),
    _capture("expired", "the authorization expired just before {step}", AUTHORIZATION_EXPIRY, NO_CAPTURE),
    _change("changed", "the order changed before {step}", ORDER_CHANGE, NO_CAPTURE),
    Variation(
        "limited", "{step} was refused with 429", Fault(RateLimit(1, "PT1S")), RATE_LIMITED_SHOP, kinds=CALLS
    ),
    Variation("silent", "{step} got no response", Fault(Silence()), BLOCKED_SHOP, kinds=CALLS),
    Variation("slow", "every response took 1.5 s", Fault(latency=1.5), BLOCKED_SHOP).with_offers(
        VariationOffer("slow", "Every response takes 1.5 s", SWITCH)
    ),
    # The shop's own forms
    _form("twice", "{step} was submitted twice", Repeat(at_once=False), DUPLICATION, SUSPECT),
    _form(
        "together",
        "{step} was submitted twice at the same moment",
        Repeat(at_once=True),
        DUPLICATION,
        SUSPECT | THREADS,
    ),
    _form(
        "again-later",
        "{step} was submitted again before the next payment",
        Repeat(at_once=False, is_late=True),
        UNPAID_GOODS,
        SUSPECT,
    ),
    _count(
        "in-parts", "{step} was submitted in two parts", Repeat(at_once=False, in_parts=True), DUPLICATION
    ),
    _count(
        "parts-together",
        "{step} was submitted in two parts at the same moment",
        Repeat(at_once=True, in_parts=True),
        DUPLICATION,
        THREADS,
    ),
    _form(
        "another-pays",
        "another customer submitted {step} first, and paid",
        OtherCustomer(pays=True),
        MIXED_UP_CUSTOMERS,
    ),
    _form(
        "another-unpaid",
        "another customer submitted {step} first, and did not pay",
        OtherCustomer(pays=False),
        MIXED_UP_CUSTOMERS,
    ),
    _number("one-less", "{step} was submitted with a number reduced by one", ChangedNumber(-1), DEBT),
    _number(
        "one-more", "{step} was submitted with a number increased by one", ChangedNumber(1), UNPAID_GOODS
    ),
    _amount(
        "cent-less",
        "{step} was submitted with an amount reduced by a cent",
        ChangedNumber(-1, is_amount=True),
        DEBT,
    ),
    _amount(
        "cent-more",
        "{step} was submitted with an amount increased by a cent",
        ChangedNumber(1, is_amount=True),
        UNPAID_GOODS,
    ),
    _choice("another-choice", "{step} was submitted with another choice", OtherChoice(), UNPAID_GOODS),
    # The shop's jobs
    _job("twice", "{step} ran twice", Repeat(at_once=False), DUPLICATION, SUSPECT),
    Variation(
        "together",
        "{step} ran in two processes at the same moment",
        Repeat(at_once=True),
        DUPLICATION,
        SUSPECT | THREADS,
        lambda run: run.changes_orders,
        kinds=(JOB,),
    ),
    # Time
    _time("day-more", "a day more passed after {step}", _scene(DO, "P1D"), LAPSE),
    _time("year-more", "400 days more passed after {step}", _scene(DO, "P400D"), DEBT),
    _time("lapses", "the authorization expired after {step}", LAPSES, LAPSE),
    _time("restarted", "the shop was restarted after {step}", _scene(DO, RESTART_SHOP), UNSHIPPED, AT_REST),
    # Customers
    _customer(
        "returns-first",
        "the customer returned to the shop before the webhook of {step}",
        _scene(DO, RETURN),
        UNPAID_GOODS,
        AT_REST | SUSPECT,
    ),
    _customer(
        "two-tabs",
        "the customer returned in two tabs at the same moment, before the webhook of {step}",
        _scene(DO, RETURN_IN_TABS),
        DUPLICATION,
        AT_REST,
    ),
    _customer(
        "opens-page",
        "the customer opened the payment page, and left",
        _scene(OPEN_PAGE, RETURN),
        UNPAID_GOODS,
        SUSPECT,
    ),
    _customer("returns-unpaid", "the customer returned without having paid", _scene(RETURN), UNPAID_GOODS),
    _customer("fails", "{step} failed", Action(CUSTOMER, "fail", "Do not honour"), UNPAID_GOODS),
    _customer("cancels", "the customer cancelled", Action(CUSTOMER, "cancel"), UNPAID_GOODS),
    _customer(
        "fails-then-pays",
        "{step} failed at first, and succeeded on the second attempt",
        _scene(Action(CUSTOMER, "fail"), CHOOSE_AGAIN, DO),
        UNSHIPPED,
    ),
    _customer(
        "cancels-then-pays",
        "the customer cancelled, came back and paid",
        _scene(Action(CUSTOMER, "cancel"), CHOOSE_AGAIN, DO),
        UNSHIPPED,
    ),
    _customer("walks-away", "the customer walked away", WALKS_AWAY, UNPAID_GOODS),
    _customer("pays-too-late", "{step} came after the expiry", _scene(EXPIRE, DO), UNSHIPPED),
    _payment(
        "last-moment",
        "{step} came a second before the expiry",
        _scene(WAIT_TO_LAST_MOMENT, DO),
        UNSHIPPED,
        SUSPECT,
    ),
    _customer(
        "late-on-page",
        "the customer opened the payment page, and {step} came a second before the expiry",
        _scene(OPEN_PAGE, WAIT_TO_LAST_MOMENT, DO),
        UNSHIPPED,
    ),
    _abandonment("pays-instead", "the customer paid instead of {step}", Action(CUSTOMER, "pay"), UNSHIPPED),
    _customer(
        "twice",
        "the customer pressed the button twice for {step}",
        _scene(DO, DO),
        DUPLICATION,
        AT_ONCE | SUSPECT,
    ),
    # Money and time
    _bank("short", "{step} was one cent short", _scene(SEND_LESS), UNPAID_GOODS),
    _bank("surplus", "{step} was one euro too high", _scene(SEND_MORE), DEBT),
    _bank("after-expiry", "{step} arrived after the expiry", _scene(EXPIRE, DO), UNSHIPPED),
    _bank("credited-twice", "{step} arrived twice", _scene(DO, DO), DEBT, SUSPECT),
    _bank("never", "{step} never arrived", WALKS_AWAY, UNPAID_GOODS),
    _payment(
        "pays-both",
        "the customer also paid on the page of an earlier attempt after {step}",
        _scene(DO, PAY_EARLIER),
        DOUBLE_PAYMENT,
    ),
    _payment(
        "pays-earlier",
        "the customer paid on the page of an earlier attempt instead of {step}",
        _scene(PAY_EARLIER),
        UNSHIPPED,
    ),
    _payment(
        "earlier-first",
        "the customer paid on the page of an earlier attempt before {step}",
        _scene(PAY_EARLIER, DO),
        DOUBLE_PAYMENT,
    ),
    _payment(
        "cancels-earlier",
        "the customer cancelled an earlier attempt after {step}",
        _scene(DO, CANCEL_EARLIER),
        UNDONE_PAYMENT,
    ),
    _payment(
        "after-earlier",
        "{step} came after an earlier attempt had expired",
        _scene(EXPIRE_EARLIER, DO),
        UNSHIPPED,
    ),
    _customer("three-days", "three days passed after {step}", _scene(DO, "P3D"), LAPSE),
    _customer("lapses", "the authorization expired after {step}", LAPSES, LAPSE),
    _direct_payment("month", "a month passed after {step}", _scene(DO, "P31D"), LAPSE),
    _direct_payment(
        "transfer-too",
        "the customer had chosen a bank transfer before, which arrived after {step}, too",
        _scene(TRANSFER_TOO),
        DOUBLE_PAYMENT,
    ),
    _action("restarted", "the shop was restarted after {step}", _scene(DO, RESTART_SHOP), UNSHIPPED, AT_REST),
    # The service
    _screening("declined", "the screening of {step} declined", {"screening": "declined"}, UNPAID_GOODS),
    _long_screening(
        "needs-time", "the screening of {step} took a day", {**SLOW_SCREENING, "then": "passed"}, UNSHIPPED
    ),
    _long_screening(
        "declined-later",
        "the screening of {step} took a day and then declined",
        {**SLOW_SCREENING, "then": "declined"},
        UNPAID_GOODS,
    ),
    _failing_screening(
        "error", "the screening of {step} reported an error", {"screening": "error"}, UNPAID_GOODS
    ),
    _approval("not-approved", "the screening declined", Action(SCREENING, "decline"), UNPAID_GOODS),
    _settlement("not-settled", "the processor failed", Action(PROCESSOR, "fail"), UNPAID_GOODS),
    _refund("settles-later", "{step} took two days", {"processor": "settles", "after": "P2D"}, DEBT, AT_REST),
    _refund("fails-later", "{step} failed after two days", {"processor": "fails", "after": "P2D"}, DEBT),
    _charge("charge-declined", "{step} was declined", {"processor": "fails", "after": "PT1M"}, UNPAID_GOODS),
    _charge("charge-later", "{step} took a day", {"processor": "settles", "after": "P1D"}, UNSHIPPED),
)


def rehearsal_variations() -> list[Variation]:
    """Return the variations for rehearsals, in the order of execution."""
    return [variation for variation in VARIATIONS if variation.kinds]


def all_offers() -> Iterator[VariationOffer]:
    """Yield all offers, each completed from its variation."""
    for each in VARIATIONS:
        for offer in each.offers:
            yield offer._replace(effect=offer.effect or each.effect, risk=each.risk)


def offers_in(place: OfferedIn) -> dict[str, VariationOffer]:
    """Return the offers of a feature, by name."""
    return {offer.name: offer for offer in all_offers() if place in offer.offered_in}


def offered_scenarios() -> dict[str, VariationOffer]:
    """Return the offers of ready-made scenarios, by name."""
    return offers_in(OfferedIn.SCENARIO)
