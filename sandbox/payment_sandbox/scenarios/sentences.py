"""Rules of scenarios and faults as English sentences."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from payment_sandbox.orders.amounts import euros

Rule = Mapping[str, object]

PERIOD_UNITS: Final = {
    "PT": {"S": "second", "M": "minute", "H": "hour"},
    "P": {"D": "day", "W": "week", "Y": "year"},
}
CUSTOMER_SENTENCES: Final = {
    "waits": "the customer acts on the page",
    "fails": "the payment fails",
    "abandons": "the customer walks away",
}
SCREENING_SENTENCES: Final = {
    "passed": "the screening passes",
    "declined": "the screening declines",
    "needs-time": "the screening takes time",
    "error": "the screening ends with an error",
}
SCREENING_END_VERBS: Final = {"passed": "passes", "declined": "declines", "error": "ends with an error"}
PROCESSOR_SENTENCES: Final = {"settles": "the processor settles it", "fails": "the processor refuses it"}
CONDITION_NAMES: Final = {
    "payment_method": "",
    "method": "",
    "path": "",
    "email_address": "email",
    "merchant_order_id": "order number",
    "nth": "call number",
    "attempt": "attempt number",
}
BOUND_NAMES: Final = {"gte": "at least", "gt": "more than", "lte": "at most", "lt": "less than"}


def period_in_words(period: str) -> str:
    """Spell out a period: PT10S is 10 seconds; a period of several units stays unchanged."""
    for prefix, units in PERIOD_UNITS.items():
        number, unit = period.removeprefix(prefix)[:-1], units.get(period[-1:])
        if period.startswith(prefix) and unit is not None and number.isascii() and number.isdecimal():
            return f"{number} {unit}{'' if number == '1' else 's'}"
    return period


UNCONDITIONAL_PHRASES: Final = {"rules": "every attempt", "webhooks": "every webhook", "faults": "every call"}


def rule_in_words(kind: str, rule: Mapping[str, Any], online: Collection[str] = ()) -> str:
    """Describe a rule in a sentence, such as: For any online method: the customer pays after 10 seconds.

    ``kind`` is the list in the scenario that contains the rule; ``online`` names all online methods.
    """
    then = {"rules": then_in_words, "webhooks": webhook_in_words, "faults": fault_in_words}[kind](
        rule["then"]
    )
    when = when_in_words(rule["when"], online) if rule.get("when") else UNCONDITIONAL_PHRASES[kind]
    times = rule.get("times")
    return f"For {when}: {then}{f', {times} times at most' if times else ''}."


def then_in_words(then: Rule) -> str:
    """Describe the outcome of an attempt, such as: the customer pays after 10 seconds."""
    return ", ".join(_outcome_sentences(then)) or "nothing special happens"


def _outcome_sentences(then: Rule) -> Iterator[str]:
    after = f" after {period_in_words(str(then['after']))}" if "after" in then else ""
    reason = f" ({then['reason']})" if "reason" in then else ""
    if "customer" in then:
        acts = str(then["customer"])
        with_card = f" with {then['card']}" if "card" in then else ""
        yield f"{CUSTOMER_SENTENCES.get(acts, f'the customer {acts}')}{with_card}{after}{reason}"
    if "screening" in then:
        end = f", and then {SCREENING_END_VERBS[str(then['then'])]}" if "then" in then else ""
        yield f"{SCREENING_SENTENCES[str(then['screening'])]}{end}{after}{reason}"
    if "processor" in then:
        ends = str(then["processor"])
        yield f"{PROCESSOR_SENTENCES.get(ends, ends)}{after}{reason}"
    if "credit" in then:
        yield _describe_credit(then["credit"])


def _describe_credit(credit: object) -> str:
    if not isinstance(credit, Mapping):
        return "the money never arrives"
    amount = f"{euros(credit['amount'])} of " if "amount" in credit else ""
    after = f" after {period_in_words(str(credit['after']))}" if "after" in credit else ""
    return f"{amount}the money arrives{after}"


def when_in_words(when: Rule, online: Collection[str] = ()) -> str:
    """Describe the conditions of a rule, such as: credit-card, €5.00."""
    return ", ".join(_describe_condition(name, value, online) for name, value in when.items()) or "any"


def _describe_condition(name: str, value: object, online: Collection[str]) -> str:
    if name == "amount":
        return _describe_amount(value)
    if name == "refund":
        return "a refund" if value else "no refund"
    if isinstance(value, Mapping):
        return ", ".join(_describe_condition(key, each, online) for key, each in value.items())
    if isinstance(value, list) and online and set(value) == set(online):
        return "any online method"
    plain = " or ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{CONDITION_NAMES.get(name, name.replace('_', ' '))} {plain}".strip()


def _describe_amount(value: object) -> str:
    if not isinstance(value, Mapping):
        return euros(int(str(value)))
    return " and ".join(
        f"{BOUND_NAMES[name]} {euros(cents)}" for name, cents in value.items() if name in BOUND_NAMES
    )


def fault_in_words(then: Rule) -> str:
    """Describe the effect of a fault on a request, such as: response lost (503 instead)."""
    return ", ".join(_fault_sentences(then)) or "fault"


def _fault_sentences(then: Rule) -> Iterator[str]:
    known = LOSS_SENTENCES if then.get("phase") == "after" else REFUSAL_SENTENCES
    for name, value in then.items():
        if name in known:
            yield known[name].format(str(value).replace("/PT1S", " calls a second"))


TWO_PHASE_SENTENCES: Final = {
    "truncate": "response cut off in the middle",
    "rate_limit": "at most {}",
    "silence": "no response at all",
    "latency": "response {} s late",
    "stale": "outdated response",
    "early": "webhooks before the response",
}
REFUSAL_SENTENCES: Final = {
    "status": "refused with {}",
    "hang": "no response for {} s, request not processed",
    "reset": "connection cut, request not processed",
    **TWO_PHASE_SENTENCES,
}
LOSS_SENTENCES: Final = {
    "status": "response lost ({} instead)",
    "hang": "response lost after {} s",
    "reset": "response lost, connection cut",
    **TWO_PHASE_SENTENCES,
}
WEBHOOK_SENTENCES: Final = {
    "timeout": "the attempt times out",
    "drop": "the webhook is lost",
    "swap": "the webhook arrives after the next one",
}


def webhook_in_words(then: Rule) -> str:
    """Describe the effect on a webhook, such as: the webhook arrives 2 times."""
    return ", ".join(_webhook_sentence(then)) or "nothing special happens"


def _webhook_sentence(then: Rule) -> Iterator[str]:
    yield from (words for name, words in WEBHOOK_SENTENCES.items() if name in then)
    if "answer" in then:
        yield f"the attempt is recorded as answered with {then['answer']}"
    if "duplicate" in then or "together" in then:
        at_once = " at the same time" if "together" in then else ""
        yield f"the webhook arrives {then.get('duplicate') or then.get('together')} times{at_once}"
    if "delay" in then:
        yield f"the webhook arrives {period_in_words(str(then['delay']))} late"
