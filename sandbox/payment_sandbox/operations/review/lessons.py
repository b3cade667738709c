"""Lessons: the cost of each kind of mistake, and the documentation with wrong and right code."""

from typing import Final, NamedTuple

from payment_sandbox.scenarios import variations as risks

PAGE: Final = "/docs/mistakes/"
WORDS: Final = {
    "captures": ("capture", "captured"),
    "voids": ("void", "voided"),
    "refunds": ("refund", "refunded"),
    "charges": ("charge", "charged"),
}
"""Verb and past participle of the calls that move money, by the collection in the path."""


class Lesson(NamedTuple):
    """The cost of a mistake in money or goods, and its section on the page about mistakes."""

    risk: str
    section: str

    @property
    def page(self) -> str:
        """The URL path of the section."""
        return f"{PAGE}#{self.section}"


READ: Final = Lesson(risks.UNPAID, "read-the-order")
LEARN: Final = Lesson(risks.MISSED, "learn-of-every-payment")
TWICE: Final = Lesson(risks.PAID_TWICE, "after-a-lost-response")
ONCE: Final = Lesson(risks.TWICE, "do-everything-once")
CAPTURE: Final = Lesson(risks.LAPSED, "capture-in-time")
REFUNDS: Final = Lesson(risks.OWED, "refunds-can-fail")
OWED: Final = Lesson(risks.OWED, "give-money-back")
RULES: Final = "/docs/fidelity/"
ERRORS: Final = "/docs/errors/"
SCENARIOS: Final = "/docs/scenarios/#why-did-my-rule-not-match"
ENDLESS: Final = Lesson("one payment keeps a worker of the shop busy forever", "set-time-limits")

LESSONS: Final[dict[str, Lesson]] = {
    # by the rule of a finding
    "HOOK-08": READ,
    "FLOW-15": READ,
    "HOOK-09": LEARN,
    "HOOK-10": ONCE,
    "HOOK-12": LEARN,
    "HOOK-13": OWED,
    "SET-47": ONCE,
    "HOOK-03": LEARN,
    "HOOK-04": Lesson("customers and webhooks are sent to addresses that do not answer", "one-scheme"),
    "HOOK-02": Lesson(risks.REFUSED, "wait-instead-of-polling"),
    "ORD-07": TWICE,
    "CTL-23": TWICE,
    "CAP-03": CAPTURE,
    "CAP-04": CAPTURE,
    "FLOW-09": Lesson("a customer is charged for a subscription that their bank has ended", "end-a-series"),
    "SET-12": Lesson("a value that the shop relies on never arrives", "say-it-as-the-service-does"),
    "SET-31": Lesson("refunds by lines do not add up to the amount paid", "say-it-as-the-service-does"),
    # by the kind of a rehearsal's problem
    "shipped-unpaid": READ,
    "paid-for-nothing": READ,
    "payment-missed": LEARN,
    "unknown-money": TWICE,
    "paid-twice": TWICE,
    "charged-again": ONCE,
    "refunded-again": ONCE,
    "shipped-again": ONCE,
    "shipped-twice": ONCE,
    "refunds-differ": REFUNDS,
    "cancelled-but-kept": REFUNDS,
    "went-back": Lesson(risks.UNDONE, "go-forward-only"),
    "shown-paid": READ,
    "shown-differently": LEARN,
    "mailed-differently": ONCE,
    "lapsed": CAPTURE,
    "waits": Lesson(risks.STUCK, "set-time-limits"),
    "endless": ENDLESS,
    "hangs": ENDLESS,
    "secret": Lesson("anyone who reads the log can charge and refund in the shop's name", "keep-secrets"),
}


def lesson_of(rule: str) -> Lesson | None:
    """Return the lesson about a rule or a kind of problem, if any."""
    return LESSONS.get(rule.removeprefix("review "))


def page_of_rule(rule: str | None) -> str:
    """Return the page about the rule of a refusal, or else the page about errors."""
    return f"{RULES}#{rule.lower()}" if rule is not None else ERRORS
