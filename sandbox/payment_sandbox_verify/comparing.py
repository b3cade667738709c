"""Compares a service with the sandbox, and chooses settings that make the sandbox behave like it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, Final, NamedTuple

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.loading import LOADING
from payment_sandbox_verify.answer import anonymize
from payment_sandbox_verify.checks import REFUSED_STATUSES, Check
from payment_sandbox_verify.differences import differing_settings
from payment_sandbox_verify.probing import Progress, RuleReport, Verdict
from payment_sandbox_verify.recorded import Mirror, RecordedCall, settings_at_start
from payment_sandbox_verify.service import REFUNDED_OR_VOIDED, MethodNames, Service, reverse
from payment_sandbox_verify.shapes import check_all_shapes
from payment_sandbox_verify.verifying import (
    REFERENCE_KEY,
    VerificationResult,
    is_live,
    reference_sandbox,
    summarize,
    verify,
    verify_default_sandbox,
)

YAML_WIDTH: Final = 100
ERRORS_SETTING: Final = "errors"
NOT_RECORDED: Final = "no recorded call covers this rule"
FILE_HEADER: Final = """\
# The differences of {url} from the sandbox, found by payment-sandbox verify.
# Serve a sandbox that behaves like this server: payment-sandbox serve --project {file}
"""


class Comparison(NamedTuple):
    """The results for two compared services, and settings that make the sandbox behave like the first.

    ``copied`` has the ids of the rules that differ in the same way in a sandbox with these settings.
    """

    url: str
    theirs: VerificationResult
    ours: VerificationResult
    settings: Mapping[str, Any]
    copied: frozenset[str]
    skipped: Sequence[str] = ()

    @property
    def differing(self) -> list[RuleReport]:
        """The rules that differ."""
        return [verdict for verdict in self.theirs.reports.values() if verdict.verdict is Verdict.DIFFERS]

    @property
    def not_copied(self) -> list[RuleReport]:
        """The differing rules that the settings cannot reproduce."""
        return [verdict for verdict in self.differing if verdict.rule not in self.copied]


def compare(
    service: Service, *, live: bool, against: Service | None = None, progress: Progress | None = None
) -> Comparison:
    """Verify a service, and the sandbox or another server for comparison.

    A sandbox with the derived settings is verified, too, which proves that they work.
    """
    ours = verify_default_sandbox(live=live)
    theirs = verify(service, live=live, progress=progress, sandbox_answers=ours.answers)
    candidates = differing_settings(theirs.answers, ours.answers, theirs.refusals, ours.refusals)
    settings, copy = _select_settings(theirs, ours, candidates, alias_settings(service.names), live=live)
    copied = _copied_rules(theirs, copy) if copy is not None else frozenset()
    if against is not None:
        ours = verify(against, live=bool(is_live(against)), sandbox_answers=ours.answers)
    return Comparison(service.url, theirs, ours, settings, copied)


def _select_settings(
    theirs: VerificationResult,
    ours: VerificationResult,
    candidates: Mapping[str, Any],
    aliases: Mapping[str, Any],
    *,
    live: bool,
) -> tuple[dict[str, Any], VerificationResult | None]:
    """Return the settings that cause no new difference, and the results of a sandbox with them.

    If all settings together make another rule differ, or change an answer that agreed with the service,
    they are applied one at a time.
    """
    settings = {**candidates, **aliases}
    copy = _verify_with(settings, live=live)
    if copy is None or not _adds_differences(theirs, ours, copy):
        return settings, copy
    settings, copy = dict(aliases), _verify_with(aliases, live=live)
    for part in _split_settings(candidates):
        candidate = _merge_settings(settings, part)
        results = _verify_with(candidate, live=live)
        if results is not None and not _adds_differences(theirs, ours, results):
            settings, copy = candidate, results
    return settings, copy


def _verify_with(settings: Mapping[str, Any], *, live: bool) -> VerificationResult | None:
    """Verify a sandbox with these settings; return None if there are none."""
    if not settings:
        return None
    ours = verify_default_sandbox(live=live)
    with reference_sandbox({"mode": "live" if live else "test", **settings}) as reference:
        return verify(reference.service, live=live, sandbox_answers=ours.answers)


def _split_settings(settings: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the settings one at a time; errors by type come before errors by rule, which refine them."""
    yield from ({name: value} for name, value in settings.items() if name != ERRORS_SETTING)
    errors: Mapping[str, Any] = settings.get(ERRORS_SETTING, {})
    for name in sorted(errors, key=lambda name: name in rule_texts()):
        yield {ERRORS_SETTING: {name: errors[name]}}


def _merge_settings(settings: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    errors = {**settings.get(ERRORS_SETTING, {}), **part.get(ERRORS_SETTING, {})}
    return {**settings, **part, **({ERRORS_SETTING: errors} if errors else {})}


def _adds_differences(theirs: VerificationResult, ours: VerificationResult, copy: VerificationResult) -> bool:
    """Whether a copy differs where the service does not: in a rule, or in the status of a refused call."""
    if any(
        each.verdict is Verdict.DIFFERS and theirs.reports[rule].verdict is Verdict.AGREES
        for rule, each in copy.reports.items()
    ):
        return True
    their_statuses, our_statuses = (
        {answer.call_key: answer.status for answer in results.answers} for results in (theirs, ours)
    )
    common_statuses = {
        key: status
        for key, status in their_statuses.items()
        if status in REFUSED_STATUSES and our_statuses.get(key) == status
    }
    return any(
        answer.status != common_statuses.get(answer.call_key, answer.status) for answer in copy.answers
    )


def _copied_rules(theirs: VerificationResult, copy: VerificationResult) -> frozenset[str]:
    """Return the rules that differ in the same way in a copy and in the service."""
    return frozenset(
        rule
        for rule, each in copy.reports.items()
        if each.verdict is Verdict.DIFFERS
        and _first_case(each.reason) == _first_case(theirs.reports[rule].reason)
    )


def _first_case(reason: str) -> str:
    """Return the first case of a difference; later cases depend on where call sequences stop."""
    return anonymize(reason.partition("; ")[0])


def alias_settings(names: MethodNames) -> dict[str, Any]:
    """Return the setting that makes the sandbox accept the account's own names for methods."""
    aliases = {theirs: name for theirs, name in reverse(names).items() if theirs != name}
    return {"aliases": aliases} if aliases else {}


def compare_recording(
    recorded: Sequence[RecordedCall], name: str, names: MethodNames | None = None
) -> Comparison:
    """Compare recorded traffic with the sandbox, which gets the same calls; ``names`` as in ``read_har``."""
    with reference_sandbox(settings_at_start(recorded)) as reference:
        mirror = Mirror(reference.service, reference.client)
        checks = [*mirror.replay_calls(recorded), *check_all_shapes([each.answer for each in recorded])]
    theirs = summarize(checks, mirror.theirs, {}, NOT_RECORDED)
    refusals = [answer for answer in mirror.answers if not answer.is_success]
    settings = differing_settings(mirror.theirs, mirror.answers, theirs.refusals, refusals)
    copied = _rules_copied_in_recording(recorded, settings) if settings else frozenset()
    settings |= alias_settings(names or {})
    return Comparison(name, theirs, theirs, settings, copied, tuple(mirror.skipped))


def _rules_copied_in_recording(
    recorded: Sequence[RecordedCall], settings: Mapping[str, Any]
) -> frozenset[str]:
    """Return the rules for which a sandbox with the settings no longer differs from the recording."""
    with reference_sandbox({**settings_at_start(recorded), **settings}) as reference:
        mirror = Mirror(reference.service, reference.client)
        remaining = _failed_rules(mirror.replay_calls(recorded))
    their_rules = _failed_rules(check_all_shapes([each.answer for each in recorded]))
    our_rules = _failed_rules(check_all_shapes(mirror.answers))
    return frozenset(rule for rule in rule_texts() if rule not in remaining | (their_rules - our_rules))


def _failed_rules(checks: Iterable[Check]) -> set[str]:
    return {check.rule for check in checks if not check.is_met}


def format_settings_file(compared: Comparison, file: str) -> str:
    """Return the settings file; differences that no setting can reproduce become comments."""
    with LOADING:
        from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = YAML_WIDTH
    body = StringIO()
    yaml.dump({"api_key": REFERENCE_KEY, **compared.settings}, body)
    uncopied = [
        f"#   {verdict.rule}: {_collapse_whitespace(verdict.reason)}\n" for verdict in compared.not_copied
    ]
    comments = "".join(["\n# No setting can reproduce these:\n", *uncopied]) if uncopied else ""
    return f"{FILE_HEADER.format(url=compared.url, file=file)}\n{body.getvalue()}{comments}"


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


VERDICT_ORDER: Final = (Verdict.UNKNOWN, Verdict.AGREES, Verdict.DIFFERS)  # the most important ones last
VERDICT_WIDTH: Final = len(Verdict.UNKNOWN.value)


def report_lines(
    verdicts: Mapping[str, RuleReport], reference: Mapping[str, RuleReport] | None = None
) -> Iterator[str]:
    """Yield the lines of the report, rule by rule; ``reference`` has the verdicts on another server."""
    texts = rule_texts()
    for verdict in VERDICT_ORDER:
        for each in verdicts.values():
            if each.verdict is verdict:
                yield f"{verdict.value:{VERDICT_WIDTH}}  {each.rule:7}  {texts[each.rule]}"
                if each.reason and verdict is not Verdict.AGREES:
                    yield f"{'':{VERDICT_WIDTH}}           {make_printable(each.reason)}"
                hidden = hidden_rules(each.rule, verdicts)
                if hidden:
                    yield f"{'':{VERDICT_WIDTH}}           which hides {', '.join(hidden)}"
                other = reference.get(each.rule) if reference is not None else None
                if other is not None and (other.verdict, other.reason) != (verdict, each.reason):
                    yield f"{'':{VERDICT_WIDTH}}           the other server {_describe_verdict(other)}"


def hidden_rules(rule: str, verdicts: Mapping[str, RuleReport]) -> list[str]:
    """Return the rules that cannot be checked because this rule differs."""
    return [each.rule for each in verdicts.values() if each.hidden_by == rule]


def _describe_verdict(verdict: RuleReport) -> str:
    return (
        f"{verdict.verdict.value}: {make_printable(verdict.reason)}"
        if verdict.reason
        else verdict.verdict.value
    )


def describe_counts(results: VerificationResult) -> str:
    """Describe the number of rules with each verdict."""
    agree, differ, unknown = (results.count(verdict) for verdict in Verdict)
    return f"{agree} rules agree, {differ} differ, {unknown} could not be checked"


def describe_clean_up(results: VerificationResult) -> str:
    """Describe the clean-up: a sentence, and a line for each remaining order."""
    codes = f"; its {results.code_count} QR requests will expire" if results.code_count else ""
    refunded = [
        order_id for order_id, remainder in results.remaining.items() if remainder == REFUNDED_OR_VOIDED
    ]
    others = [
        f"{order_id}: {remainder}"
        for order_id, remainder in results.remaining.items()
        if remainder != REFUNDED_OR_VOIDED
    ]
    suffix = f", of which {len(refunded)} were voided or refunded" if refunded else ""
    if not others:
        return f"all created orders are cleaned up{suffix}{codes}"
    return "\n".join([f"{len(others)} orders could not be cleaned up{codes}:", *others])


def report_data(compared: Comparison) -> dict[str, Any]:
    """Convert a comparison to JSON data."""
    return {
        "url": compared.url,
        "rules": [_rule_data(each, compared.ours.reports) for each in compared.theirs.reports.values()],
        "settings": dict(compared.settings),
        "not_copied": [each.rule for each in compared.not_copied],
        "left": list(compared.theirs.remaining),
    }


def _rule_data(verdict: RuleReport, reference: Mapping[str, RuleReport]) -> dict[str, Any]:
    other = reference.get(verdict.rule)
    return {
        "rule": verdict.rule,
        "text": rule_texts()[verdict.rule],
        "verdict": verdict.verdict.value,
        "how": verdict.reason,
        "beside": None if other is None else {"verdict": other.verdict.value, "how": other.reason},
    }
