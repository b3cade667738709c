"""The report of a comparison, and the file with settings."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from io import StringIO
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox_verify.player import Player
from payment_sandbox_verify.service import REFUNDED_OR_VOIDED, MethodNames, reverse
from payment_sandbox_verify.settings_search import account_settings, find_settings, play_again
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
FILE_HEADER: Final = """\
# The differences of {url} from the sandbox, found by payment-sandbox verify.
# Serve a sandbox that behaves like this server: payment-sandbox serve --project {file}
"""


class Comparison(NamedTuple):
    """The results for a service, and settings that make the sandbox behave like it.

    ``not_copied`` has the rules in which the service differs from a sandbox with these settings, too.
    ``beside`` has the results of the server of ``--against``.
    """

    url: str
    theirs: VerificationResult
    settings: Mapping[str, Any]
    not_copied: Sequence[RuleReport]
    beside: VerificationResult | None = None

    @property
    def differing(self) -> list[RuleReport]:
        """The rules that differ."""
        return [verdict for verdict in self.theirs.reports.values() if verdict.verdict is Verdict.DIFFERS]


def compare(
    player: Player,
    *,
    live: bool,
    against: Player | None = None,
    progress: Progress | None = None,
    scenes: Sequence[ConversationScene] | None = None,
) -> Comparison:
    """Verify a service, and find the settings of a sandbox that answers as it does.

    Raises:
        NotVerified: a server has stopped responding.
    """
    base = account_settings(player.service, live=live)
    theirs = verify(player, base, live=live, progress=progress, scenes=scenes)
    play = partial(play_again, is_live=live)
    found = find_settings([each for each, _ in theirs.pairs], theirs.differences, base, play)
    account = {name: value for name, value in base.items() if (name, value) != ("mode", "test")}
    beside = None
    if against is not None:
        beside = verify(against, account_settings(against.service, live=live), live=live, scenes=scenes)
    settings = {**account, **found.settings, **alias_settings(player.service.names)}
    return Comparison(player.service.url, theirs, settings, differing_rules(found.remaining), beside)


def alias_settings(names: MethodNames) -> dict[str, Any]:
    """Return the setting that makes the sandbox accept the account's own names for methods."""
    aliases = {theirs: name for theirs, name in reverse(names).items() if theirs != name}
    return {"aliases": aliases} if aliases else {}


def format_settings_file(compared: Comparison, file: str) -> str:
    """Return the settings file; differences that no setting can reproduce become comments."""
    yaml = YAML()
    yaml.width = YAML_WIDTH
    body = StringIO()
    yaml.dump({"api_key": REFERENCE_KEY, **compared.settings}, body)
    lines = [f"#   {verdict.rule}: {' '.join(verdict.reason.split())}\n" for verdict in compared.not_copied]
    comments = "".join(["\n# No setting can reproduce these:\n", *lines]) if lines else ""
    return f"{FILE_HEADER.format(url=compared.url, file=file)}\n{body.getvalue()}{comments}"


VERDICT_ORDER: Final = (Verdict.UNKNOWN, Verdict.AGREES, Verdict.DIFFERS)  # the most important ones last
VERDICT_WIDTH: Final = len(Verdict.UNKNOWN.value)


def report_lines(
    verdicts: Mapping[str, RuleReport], beside: Mapping[str, RuleReport] | None = None
) -> Iterator[str]:
    """Yield the lines of the report, rule by rule; ``beside`` has the verdicts on another server."""
    texts = rule_texts()
    for verdict in VERDICT_ORDER:
        for each in verdicts.values():
            if each.verdict is not verdict:
                continue
            yield f"{verdict.value:{VERDICT_WIDTH}}  {each.rule:7}  {texts[each.rule]}"
            if each.reason and verdict is not Verdict.AGREES:
                yield f"{'':{VERDICT_WIDTH}}           {make_printable(each.reason)}"
            hidden = hidden_rules(each.rule, verdicts)
            if hidden:
                yield f"{'':{VERDICT_WIDTH}}           which hides {', '.join(hidden)}"
            other = beside.get(each.rule) if beside is not None else None
            if other is not None and (other.verdict, other.reason) != (verdict, each.reason):
                yield f"{'':{VERDICT_WIDTH}}           the other server {_describe_verdict(other)}"


def hidden_rules(rule: str, verdicts: Mapping[str, RuleReport]) -> list[str]:
    """Return the rules that cannot be checked because this rule differs."""
    return [each.rule for each in verdicts.values() if each.hidden_by == rule]


def _describe_verdict(verdict: RuleReport) -> str:
    reason = f": {make_printable(verdict.reason)}" if verdict.reason else ""
    return f"{verdict.verdict.value}{reason}"


def describe_counts(results: VerificationResult) -> str:
    """Describe the number of rules with each verdict."""
    agree, differ, unknown = (results.count(verdict) for verdict in Verdict)
    return f"{agree} rules agree, {differ} differ, {unknown} could not be checked"


def describe_clean_up(results: VerificationResult) -> str:
    """Describe the clean-up: a sentence, and a line for each remaining order."""
    codes = f"; its {results.code_count} QR requests will expire" if results.code_count else ""
    refunded = [each for each in results.remaining.values() if each == REFUNDED_OR_VOIDED]
    others = [f"{order}: {rest}" for order, rest in results.remaining.items() if rest != REFUNDED_OR_VOIDED]
    suffix = f", of which {len(refunded)} were voided or refunded" if refunded else ""
    if not others:
        return f"all created orders are cleaned up{suffix}{codes}"
    return "\n".join([f"{len(others)} orders could not be cleaned up{codes}:", *others])


def report_data(compared: Comparison) -> dict[str, Any]:
    """Convert a comparison to JSON data."""
    beside = compared.beside.reports if compared.beside is not None else {}
    return {
        "url": compared.url,
        "rules": [_rule_data(each, beside.get(each.rule)) for each in compared.theirs.reports.values()],
        "settings": dict(compared.settings),
        "not_copied": [each.rule for each in compared.not_copied],
        "left": list(compared.theirs.remaining),
    }


def _rule_data(verdict: RuleReport, beside: RuleReport | None) -> dict[str, Any]:
    return {
        "rule": verdict.rule,
        "text": rule_texts()[verdict.rule],
        "verdict": verdict.verdict.value,
        "how": verdict.reason,
        "beside": None if beside is None else {"verdict": beside.verdict.value, "how": beside.reason},
    }
