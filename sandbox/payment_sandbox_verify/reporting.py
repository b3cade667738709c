"""The report of a comparison, and the file with settings."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox_verify.cleaning import REFUNDED_OR_VOIDED
from payment_sandbox_verify.normalising import anonymize
from payment_sandbox_verify.player import Player
from payment_sandbox_verify.settings_search import account_settings, find_settings
from payment_sandbox_verify.steps import ConversationScene
from payment_sandbox_verify.verifying import (
    REFERENCE_KEY,
    Progress,
    RuleReport,
    Verdict,
    VerificationResult,
    differing_rules,
    verify,
)

YAML_WIDTH: Final = 100
DIFFERENCES_FILE: Final = "differences.yaml"
FILE_HEADER: Final = """\
# The differences of {url} from the sandbox, found by payment-sandbox verify.
# Serve a sandbox that behaves like this server: payment-sandbox serve --project {file}
"""


class Comparison(NamedTuple):
    """The results for a service, and settings that make the sandbox behave like it.

    ``not_copied`` has the rules in which the service differs from a sandbox with these settings, too.
    """

    url: str
    theirs: VerificationResult
    settings: Mapping[str, Any]
    not_copied: Sequence[RuleReport]

    @property
    def differing(self) -> list[RuleReport]:
        """The rules that differ."""
        return [verdict for verdict in self.theirs.reports.values() if verdict.verdict is Verdict.DIFFERS]


def compare(
    player: Player,
    *,
    live: bool,
    progress: Progress | None = None,
    scenes: Sequence[ConversationScene] | None = None,
) -> Comparison:
    """Verify a service, and find the settings of a sandbox that answers as it does.

    Raises:
        NotVerified: the server has stopped responding.
    """
    base = account_settings(player.service, live=live)
    theirs = verify(player, base, live=live, progress=progress, scenes=scenes)
    found, remaining = find_settings([each for each, _ in theirs.pairs], theirs.differences, base)
    account = {name: value for name, value in base.items() if (name, value) != ("mode", "test")}
    aliases = {theirs: name for theirs, name in player.service.ours.items() if theirs != name}
    settings = {**account, **found, **({"aliases": aliases} if aliases else {})}
    return Comparison(player.service.url, theirs, settings, differing_rules(remaining))


def format_settings_file(compared: Comparison, file: str) -> str:
    """Return the settings file; differences that no setting can reproduce become comments."""
    yaml = YAML()
    yaml.width = YAML_WIDTH
    body = StringIO()
    yaml.dump({"api_key": REFERENCE_KEY, **compared.settings}, body)
    lines = [f"#   {verdict.rule}: {' '.join(verdict.reason.split())}\n" for verdict in compared.not_copied]
    comments = "".join(["\n# No setting can reproduce these:\n", *lines]) if lines else ""
    return f"{FILE_HEADER.format(url=compared.url, file=file)}\n{body.getvalue()}{comments}"


GROUPS_MAX: Final = 14
ORDERS_MAX: Final = 5
ADVICE: Final = {
    Verdict.AGREES: "Nothing to do: what works with the sandbox works with this server, as far as compared.",
    Verdict.UNKNOWN: "Remove the causes below, and run verify again.",
}
VERDICTS: Final = {
    Verdict.AGREES: "answers like the sandbox",
    Verdict.DIFFERS: "differs from the sandbox",
    Verdict.UNKNOWN: "could not be compared with the sandbox",
}


def report_lines(compared: Comparison, file: Path | None = None, *, by_rule: bool = False) -> Iterator[str]:
    """Yield the verdict, the differences, and what could not be compared, in groups or ``by_rule``."""
    results = compared.theirs
    agree, differ, unknown = (results.count(each) for each in Verdict)
    overall = Verdict.DIFFERS if differ else Verdict.AGREES if agree else Verdict.UNKNOWN
    yield f"{overall.value}: {compared.url} {VERDICTS[overall]}"
    counts = f"{agree} rules agree, {differ} differ, {unknown} could not be compared"
    yield f"{counts} ({results.call_count} calls)"
    yield ADVICE.get(overall) or _advise_on_settings(compared, file)
    for each in compared.differing:
        yield from ("", *_difference_lines(each, results.reports))
    yield from ("", *(_rule_lines(results.reports) if by_rule else _group_lines(results.reports)), "")
    yield from _clean_up_lines(results)


def _advise_on_settings(compared: Comparison, file: Path | None) -> str:
    """Say how many differences a sandbox can have by its settings, and how to get them."""
    count, remaining = len(compared.differing), [each.rule for each in compared.not_copied]
    copied = sum(each.rule not in remaining for each in compared.differing)
    if not copied:
        return "No setting of the sandbox reproduces this: correct the server, or allow for it in the shop."
    if file is None:
        return (
            f"Settings reproduce {copied} of {count}: --differences {DIFFERENCES_FILE} writes them to a file."
        )
    return f"{file} reproduces {copied} of {count}: payment-sandbox serve --project {file}"


def _difference_lines(report: RuleReport, reports: Mapping[str, RuleReport]) -> Iterator[str]:
    for reason in report.reasons:
        yield f"{report.rule}: {make_printable(reason)}"
    hidden = sum(each.hidden_by == report.rule for each in reports.values())
    note = f" (rules not compared because of this: {hidden})" if hidden else ""
    yield f"  The rule: {rule_texts()[report.rule]}{note}"


def _rule_lines(reports: Mapping[str, RuleReport]) -> Iterator[str]:
    for each in reports.values():
        if each.verdict is not Verdict.DIFFERS:
            yield f"{each.verdict.value}: {each.rule}: {rule_texts()[each.rule]}"
            yield from (f"  {make_printable(reason)}" for reason in each.reasons)


def _group_lines(reports: Mapping[str, RuleReport]) -> Iterator[str]:
    """Yield how many rules could not be compared, for each cause; those behind a difference stand with it."""
    unknown = [each for each in reports.values() if each.verdict is Verdict.UNKNOWN and not each.hidden_by]
    causes = Counter(" ".join(anonymize(each.reason).split()) for each in unknown).most_common()
    if causes:
        yield "Not compared (--by-rule lists each rule):"
    for cause, count in causes[:GROUPS_MAX]:
        yield f"{count:4} {'rule' if count == 1 else 'rules'}: {make_printable(cause)}"
    if causes[GROUPS_MAX:]:
        rest = sum(count for _, count in causes[GROUPS_MAX:])
        yield f"{rest:4} rules: {len(causes) - GROUPS_MAX} further causes"


def _clean_up_lines(results: VerificationResult) -> Iterator[str]:
    """Yield what remains on the server."""
    codes = f"; its {results.code_count} QR requests will expire" if results.code_count else ""
    refunded = sum(each == REFUNDED_OR_VOIDED for each in results.remaining.values())
    others = [f"{order}: {rest}" for order, rest in results.remaining.items() if rest != REFUNDED_OR_VOIDED]
    suffix = f", of which {refunded} were voided or refunded" if refunded else ""
    if not others:
        yield f"All created orders are cleaned up{suffix}{codes}."
        return
    yield f"{len(others)} orders could not be cleaned up{codes}:"
    yield from map(make_printable, others[:ORDERS_MAX])
    if others[ORDERS_MAX:]:
        yield f"and {len(others) - ORDERS_MAX} more: --json lists them, --clean-up tries again"


def report_data(compared: Comparison) -> dict[str, Any]:
    """Convert a comparison to JSON data."""
    return {
        "url": compared.url,
        "rules": [_rule_data(each) for each in compared.theirs.reports.values()],
        "settings": dict(compared.settings),
        "not_copied": [each.rule for each in compared.not_copied],
        "left": list(compared.theirs.remaining),
    }


def _rule_data(verdict: RuleReport) -> dict[str, Any]:
    return {
        "rule": verdict.rule,
        "text": rule_texts()[verdict.rule],
        "verdict": verdict.verdict.value,
        "how": verdict.reason,
    }
