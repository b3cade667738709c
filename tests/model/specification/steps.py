"""Steps of the model: a call or an event, its allowed answers, and the events due immediately."""

from collections.abc import Callable
from typing import Any, Final

from tests.model.specification import calls, events, merchant
from tests.model.specification.calls import NOT_FOUND, Call, Outcomes, Refusal, refuse
from tests.model.specification.changes import run_until
from tests.model.specification.records import Shop

HANDLERS: Final[dict[type, Callable[[Shop, Any], Outcomes]]] = {
    calls.Create: merchant.create,
    calls.Update: merchant.update,
    calls.Cancel: merchant.cancel,
    calls.Capture: merchant.capture,
    calls.Void: merchant.void,
    calls.CreateRefund: merchant.create_refund,
    calls.CreateCode: merchant.create_code,
    calls.Act: events.act,
    calls.Scan: events.scan,
    calls.Advance: events.advance,
    calls.SetReachability: events.set_reachability,
}
STALE: Final = Refusal(412, "PreconditionFailed")  # SET-33, IFM-01, IFM-02


def step(shop: Shop, call: Call) -> Outcomes:
    """Return every allowed answer with the state after it, including the events due immediately.

    An empty result means that the specification does not define the call in this state. A missing object gets
    404, and an outdated entity tag gets 412 (SET-08, SET-33).
    """
    number, index = getattr(call, "order", -1), getattr(call, "attempt", -1)
    is_missing = number >= len(shop.orders) or (index >= 0 and index >= len(shop.orders[number].attempts))
    if is_missing or getattr(call, "code", -1) >= len(shop.codes):
        return refuse(shop, NOT_FOUND)
    outcomes = HANDLERS[type(call)](shop, call)
    if getattr(call, "if_match", "") == "stale":
        return *(outcome for outcome in outcomes if outcome.status >= 400), *refuse(shop, STALE)
    return tuple(outcome._replace(shop=run_until(outcome.shop, outcome.shop.now)) for outcome in outcomes)
