"""The scenario of every project that chose none: people act, and trigger values make things go wrong."""

from functools import cache
from typing import Any, Final

from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.scenarios.model import Scenario

PAGES: Final = [
    "credit-card",
    "bank-redirect-nl",
    "bank-redirect-be",
    "bank-redirect-de",
    "wallet-qr",
    "wallet-web",
    "wallet-apple",
    "wallet-google",
]
WITH_PAGE: Final = [*PAGES, "pay-later-a"]
SCREENED: Final = ["pay-later-a", "invoice-later-b"]


def _by_customer(local_part: str, methods: list[str], then: dict[str, Any]) -> dict[str, Any]:
    when = {"payment_method": methods, "customer": {"email_address": f"{local_part}@*"}}
    return {"when": when, "then": then}


def _by_amount(amount: int, methods: list[str], then: dict[str, Any]) -> dict[str, Any]:
    return {"when": {"payment_method": methods, "amount": amount}, "then": then}


DOCUMENT: Final[dict[str, Any]] = {
    "name": "default",
    "description": "Customers and banks wait for you; these customers and amounts make things go wrong.",
    "rules": [
        _by_customer("declined", SCREENED, {"screening": "declined"}),
        _by_customer("needs-time", ["pay-later-a"], {"screening": "needs-time"}),
        _by_customer("needs-time-declined", ["pay-later-a"], {"screening": "needs-time", "then": "declined"}),
        _by_customer("error", ["pay-later-a"], {"screening": "error"}),
        _by_customer("pays", WITH_PAGE, {"customer": "pays", "after": "PT10S"}),
        _by_customer("fails", WITH_PAGE, {"customer": "fails", "after": "PT10S", "reason": "Do not honour"}),
        _by_customer("cancels", WITH_PAGE, {"customer": "cancels", "after": "PT10S"}),
        _by_customer("transfers", ["bank-transfer"], {"credit": {"after": "P2D"}}),
        _by_amount(66601, SCREENED, {"screening": "declined"}),
        _by_amount(66602, ["pay-later-a"], {"screening": "needs-time"}),
        _by_amount(66603, ["pay-later-a"], {"screening": "error"}),
        _by_amount(66604, ["credit-card"], {"processor": "fails", "reason": "Do not honour"}),
        {
            "when": {"refund": True, "amount": 66605},
            "then": {"processor": "fails", "after": "PT1M", "reason": "The account to refund to is closed"},
        },
    ],
}


@cache
def default_scenario() -> Scenario:
    """The built-in scenario, read once."""
    return load_scenario(DOCUMENT, [*PAGES, *SCREENED, "bank-transfer"])
