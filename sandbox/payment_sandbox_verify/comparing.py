"""Compares a service with the sandbox, and chooses settings that make the sandbox behave like it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, Final, NamedTuple

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.kernel.patterns import printable
from payment_sandbox.loading import LOADING
from payment_sandbox_verify.answer import anonymous
from payment_sandbox_verify.checks import REFUSED, Check
from payment_sandbox_verify.differences import settings_of
from payment_sandbox_verify.probing import Progress, Reported, Verdict
from payment_sandbox_verify.recorded import Mirror, RecordedCall, settings_at_start
from payment_sandbox_verify.service import REFUNDED, Names, Service, reverse
from payment_sandbox_verify.shapes import passive
from payment_sandbox_verify.verifying import (
    MODEL_KEY,
    VerificationResult,
    is_live,
    model,
    summarize,
    verify,
    verify_default_sandbox,
)

WIDTH: Final = 100
ERRORS: Final = "errors"
NOT_RECORDED: Final = "no recorded call covers this rule"
HEAD: Final = """\
# The differences of {url} from the sandbox, found by payment-sandbox verify.
# Serve a sandbox that behaves like this server: payment-sandbox serve --project {file}
"""


class Compared(NamedTuple):
    """The results for two compared services, and settings that make the sandbox behave like the first.

    ``copied`` are the ids of the rules that differ in the same way in a sandbox with these settings.
    """

    url: str
    theirs: VerificationResult
    ours: VerificationResult
    settings: Mapping[str, Any]
    copied: frozenset[str]
    skipped: Sequence[str] = ()

    @property
    def differing(self) -> list[Reported]:
        """The rules that differ."""
        return [verdict for verdict in self.theirs.reports.values() if verdict.verdict is Verdict.DIFFERS]

    @property
    def not_copied(self) -> list[Reported]:
        """The differing rules that the settings cannot reproduce."""
        return [verdict for verdict in self.differing if verdict.rule not in self.copied]


def compare(
    service: Service, *, live: bool, against: Service | None = None, progress: Progress | None = None
) -> Compared:
    """Verify a service, and the sandbox or another server for comparison.

    A sandbox with the derived settings is verified, too, which proves that they work.
    """
    ours = verify_default_sandbox()
    theirs = verify(service, live=live, progress=progress, sandbox_answers=ours.answers)
    offered = settings_of(theirs.answers, ours.answers, theirs.refusals, ours.refusals)
    settings, copy = _select_settings(theirs, ours, offered, aliases_of(service.names))
    copied = _copied_rules(theirs, copy) if copy is not None else frozenset()
    if against is not None:
        ours = verify(against, live=bool(is_live(against)), sandbox_answers=ours.answers)
    return Compared(service.url, theirs, ours, settings, copied)


def _select_settings(
    theirs: VerificationResult,
    ours: VerificationResult,
    offered: Mapping[str, Any],
    aliases: Mapping[str, Any],
) -> tuple[dict[str, Any], VerificationResult | None]:
    """Return the settings that cause no new difference, and the results of a sandbox with them.

    If all settings together make another rule differ, or change an answer that agreed with the service,
    they are applied one at a time.
    """
    settings = {**offered, **aliases}
    copy = _verify_with(settings)
    if copy is None or not _breaks(theirs, ours, copy):
        return settings, copy
    settings, copy = dict(aliases), _verify_with(aliases)
    for part in _split_settings(offered):
        tried = _merge_settings(settings, part)
        found = _verify_with(tried)
        if found is not None and not _breaks(theirs, ours, found):
            settings, copy = tried, found
    return settings, copy


def _verify_with(settings: Mapping[str, Any]) -> VerificationResult | None:
    """Verify a sandbox with these settings; return None if there are none."""
    if not settings:
        return None
    with model(settings) as own:
        return verify(own.service, live=False, sandbox_answers=verify_default_sandbox().answers)


def _split_settings(settings: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the settings one at a time; errors by type come before errors by rule, which refine them."""
    yield from ({name: value} for name, value in settings.items() if name != ERRORS)
    errors: Mapping[str, Any] = settings.get(ERRORS, {})
    for name in sorted(errors, key=lambda name: name in rule_texts()):
        yield {ERRORS: {name: errors[name]}}


def _merge_settings(settings: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    errors = {**settings.get(ERRORS, {}), **part.get(ERRORS, {})}
    return {**settings, **part, **({ERRORS: errors} if errors else {})}


def _breaks(theirs: VerificationResult, ours: VerificationResult, copy: VerificationResult) -> bool:
    """Whether a copy differs where the service does not: in a rule, or in the status of a refusal."""
    if any(
        each.verdict is Verdict.DIFFERS and theirs.reports[rule].verdict is Verdict.AGREES
        for rule, each in copy.reports.items()
    ):
        return True
    there, here = ({answer.asked: answer.status for answer in found.answers} for found in (theirs, ours))
    alike = {
        asked: status for asked, status in there.items() if status in REFUSED and here.get(asked) == status
    }
    return any(answer.status != alike.get(answer.asked, answer.status) for answer in copy.answers)


def _copied_rules(theirs: VerificationResult, copy: VerificationResult) -> frozenset[str]:
    """Return the rules that differ in the same way in a copy and in the service."""
    return frozenset(
        rule
        for rule, each in copy.reports.items()
        if each.verdict is Verdict.DIFFERS and _first_case(each.how) == _first_case(theirs.reports[rule].how)
    )


def _first_case(how: str) -> str:
    """Return the first case of a difference; the other cases depend on where tours stop."""
    return anonymous(how.partition("; ")[0])


def aliases_of(names: Names) -> dict[str, Any]:
    """Return the setting that makes the sandbox accept the account's own names of methods."""
    aliases = {theirs: name for theirs, name in reverse(names).items() if theirs != name}
    return {"aliases": aliases} if aliases else {}


def compare_recording(recorded: Sequence[RecordedCall], name: str, names: Names | None = None) -> Compared:
    """Compare recorded traffic with the sandbox, which gets the same calls; ``names`` as in ``read_har``."""
    with model(settings_at_start(recorded)) as own:
        mirror = Mirror(own.service, own.client)
        checks = [*mirror.play(recorded), *passive([each.answer for each in recorded])]
    theirs = summarize(checks, mirror.theirs, {}, NOT_RECORDED)
    refusals = [answer for answer in mirror.answers if not answer.is_success]
    settings = settings_of(mirror.theirs, mirror.answers, theirs.refusals, refusals)
    copied = _rules_copied_in_recording(recorded, settings) if settings else frozenset()
    settings |= aliases_of(names or {})
    return Compared(name, theirs, theirs, settings, copied, tuple(mirror.skipped))


def _rules_copied_in_recording(
    recorded: Sequence[RecordedCall], settings: Mapping[str, Any]
) -> frozenset[str]:
    """Return the rules for which a sandbox with the settings no longer differs from the recording."""
    with model({**settings_at_start(recorded), **settings}) as own:
        mirror = Mirror(own.service, own.client)
        still = _differing(mirror.play(recorded))
    shown_there = _differing(passive([each.answer for each in recorded]))
    shown_here = _differing(passive(mirror.answers))
    return frozenset(rule for rule in rule_texts() if rule not in still | (shown_there - shown_here))


def _differing(checks: Iterable[Check]) -> set[str]:
    return {check.rule for check in checks if not check.holds}


def format_settings_file(compared: Compared, file: str) -> str:
    """Return the settings file; differences that no setting can copy become comments."""
    with LOADING:
        from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = WIDTH
    body = StringIO()
    yaml.dump({"api_key": MODEL_KEY, **compared.settings}, body)
    uncopied = [f"#   {verdict.rule}: {_line(verdict.how)}\n" for verdict in compared.not_copied]
    comments = "".join(["\n# No setting can copy these:\n", *uncopied]) if uncopied else ""
    return f"{HEAD.format(url=compared.url, file=file)}\n{body.getvalue()}{comments}"


def _line(text: str) -> str:
    return " ".join(text.split())


ORDER: Final = (Verdict.UNKNOWN, Verdict.AGREES, Verdict.DIFFERS)  # the most important ones last
VERDICT_WIDTH: Final = len(Verdict.UNKNOWN.value)


def lines(verdicts: Mapping[str, Reported], beside: Mapping[str, Reported] | None = None) -> Iterator[str]:
    """Yield the lines of the report, rule by rule; ``beside`` are the verdicts on another server."""
    texts = rule_texts()
    for verdict in ORDER:
        for each in verdicts.values():
            if each.verdict is verdict:
                yield f"{verdict.value:{VERDICT_WIDTH}}  {each.rule:7}  {texts[each.rule]}"
                if each.how and verdict is not Verdict.AGREES:
                    yield f"{'':{VERDICT_WIDTH}}           {printable(each.how)}"
                hidden = hidden_by(each.rule, verdicts)
                if hidden:
                    yield f"{'':{VERDICT_WIDTH}}           which hides {', '.join(hidden)}"
                other = beside.get(each.rule) if beside is not None else None
                if other is not None and (other.verdict, other.how) != (verdict, each.how):
                    yield f"{'':{VERDICT_WIDTH}}           the other server {_describe_verdict(other)}"


def hidden_by(rule: str, verdicts: Mapping[str, Reported]) -> list[str]:
    """Return the rules that cannot be checked because this one differs."""
    return [each.rule for each in verdicts.values() if each.because == rule]


def _describe_verdict(verdict: Reported) -> str:
    return f"{verdict.verdict.value}: {printable(verdict.how)}" if verdict.how else verdict.verdict.value


def counts(results: VerificationResult) -> str:
    """Describe the number of rules with each verdict."""
    agree, differ, unknown = (results.count(verdict) for verdict in Verdict)
    return f"{agree} rules agree, {differ} differ, {unknown} could not be checked"


def describe_clean_up(results: VerificationResult) -> str:
    """Describe the clean-up: a sentence, and a line for each remaining order."""
    codes = f"; its {results.codes} QR requests will expire" if results.codes else ""
    refunded = [order_id for order_id, left in results.remaining.items() if left == REFUNDED]
    others = [f"{order_id}: {left}" for order_id, left in results.remaining.items() if left != REFUNDED]
    given_back = f", of which {len(refunded)} were voided or refunded" if refunded else ""
    if not others:
        return f"all created orders are cleaned up{given_back}{codes}"
    return "\n".join([f"{len(others)} orders could not be cleaned up{codes}:", *others])


def as_data(compared: Compared) -> dict[str, Any]:
    """Convert a comparison to JSON data."""
    return {
        "url": compared.url,
        "rules": [_rule(each, compared.ours.reports) for each in compared.theirs.reports.values()],
        "settings": dict(compared.settings),
        "not_copied": [each.rule for each in compared.not_copied],
        "left": list(compared.theirs.remaining),
    }


def _rule(verdict: Reported, beside: Mapping[str, Reported]) -> dict[str, Any]:
    other = beside.get(verdict.rule)
    return {
        "rule": verdict.rule,
        "text": rule_texts()[verdict.rule],
        "verdict": verdict.verdict.value,
        "how": verdict.how,
        "beside": None if other is None else {"verdict": other.verdict.value, "how": other.how},
    }
