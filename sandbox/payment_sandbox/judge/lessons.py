"""Lessons: the cost of each kind of mistake, and its documentation with wrong and correct code."""

from typing import Final, NamedTuple

from payment_sandbox.scenarios import risks

MISTAKES_PAGE: Final = "/docs/mistakes/"
CALL_VERBS: Final = {
    "captures": ("capture", "captured"),
    "voids": ("void", "voided"),
    "refunds": ("refund", "refunded"),
    "charges": ("charge", "charged"),
}
"""The verb and past participle for each call that moves money, by path segment."""
REPETITION_RISKS: Final = {
    "captures": "the customer is charged twice",
    "voids": "a part of the reserved money is given up twice",
    "refunds": "money is refunded twice",
    "charges": "the customer is charged twice",
}
"""The cost of a repeated call, by path segment."""


class Lesson(NamedTuple):
    """The cost of a mistake in money or goods, and its section of the documentation."""

    risk: str
    section: str

    @property
    def path(self) -> str:
        """The URL path of the section."""
        return f"{MISTAKES_PAGE}#{self.section}"


def where_to_read(page: str) -> str:
    """Name the command that prints a section of the documentation, and its URL if a server has it."""
    host, _, place = page.rpartition("/docs/")
    command = f"payment-sandbox docs {place.replace('/#', '#').rstrip('/')}"
    return f"{command} or {page}" if host else command


READ_ORDER: Final = Lesson(risks.UNPAID_GOODS, "read-the-order")
NOTICE_PAYMENTS: Final = Lesson(risks.UNSHIPPED, "learn-of-every-payment")
LOST_RESPONSE: Final = Lesson(risks.DOUBLE_PAYMENT, "after-a-lost-response")
LOST_ORDER: Final = Lesson(risks.UNSHIPPED, LOST_RESPONSE.section)
SENT_AGAIN: Final = Lesson(risks.DUPLICATION, "requests-that-the-http-client-sends-again")
ACT_ONCE: Final = Lesson(risks.DUPLICATION, "do-everything-once")
CAPTURE_IN_TIME: Final = Lesson(risks.LAPSE, "capture-in-time")
FAILING_REFUNDS: Final = Lesson(risks.DEBT, "refunds-can-fail")
RETURN_MONEY: Final = Lesson(risks.DEBT, "give-money-back")
RULES_PAGE: Final = "/docs/fidelity/"
ERRORS_PAGE: Final = "/docs/troubleshooting/#errors"
UNMATCHED_RULES_PAGE: Final = "/docs/scenarios/#why-did-my-rule-not-match"
TIME_LIMITS: Final = Lesson("one payment keeps a worker of the shop busy forever", "set-time-limits")

LESSONS: Final[dict[str, Lesson]] = {
    # keyed by the rule of a finding
    "HOOK-08": READ_ORDER,
    "FLOW-15": READ_ORDER,
    "HOOK-09": NOTICE_PAYMENTS,
    "HOOK-10": ACT_ONCE,
    "HOOK-12": NOTICE_PAYMENTS,
    "HOOK-13": RETURN_MONEY,
    "A45": RETURN_MONEY,
    "SET-47": ACT_ONCE,
    "HOOK-03": NOTICE_PAYMENTS,
    "HOOK-04": Lesson("customers and webhooks are sent to addresses that do not answer", "one-scheme"),
    "HOOK-02": Lesson(risks.RATE_LIMITED_SHOP, "wait-instead-of-polling"),
    "ORD-07": LOST_RESPONSE,
    "CTL-23": LOST_RESPONSE,
    "CAP-03": CAPTURE_IN_TIME,
    "CAP-04": CAPTURE_IN_TIME,
    "FLOW-09": Lesson("a customer is charged for a subscription that their bank has blocked", "end-a-series"),
    "SET-12": Lesson("a value that the shop relies on never arrives", "say-it-as-the-service-does"),
    "SET-31": Lesson("the provider refuses the request", "say-it-as-the-service-does"),
    # keyed by the kind of problem in a rehearsal
    "shipped-unpaid": READ_ORDER,
    "paid-for-nothing": READ_ORDER,
    "paid-in-part": READ_ORDER,
    "payment-missed": NOTICE_PAYMENTS,
    "capture-missed": LOST_RESPONSE,
    "unknown-money": LOST_ORDER,
    "paid-twice": LOST_RESPONSE,
    "charged-again": ACT_ONCE,
    "refunded-again": ACT_ONCE,
    "shipped-again": ACT_ONCE,
    "shipped-twice": ACT_ONCE,
    "captured-not-shipped": LOST_ORDER,
    "refunds-differ": FAILING_REFUNDS,
    "cancelled-but-kept": RETURN_MONEY,
    "shown-paid": READ_ORDER,
    "shown-differently": NOTICE_PAYMENTS,
    "lapsed": CAPTURE_IN_TIME,
    "endless": TIME_LIMITS,
    "secret": Lesson("anyone who reads the log can charge and refund in the shop's name", "keep-secrets"),
}


def lesson_of(rule: str) -> Lesson | None:
    """Return the lesson about a rule or a kind of problem, if there is one."""
    return LESSONS.get(rule.removeprefix("review "))
