"""A rule that never matches gives a warning with line and column."""

from pathlib import Path

import pytest

from payment_sandbox.operations.review_scenario import check_file
from payment_sandbox.scenarios.catalogue import ready_folder, scenario_files

LIVE = "settings: {mode: live}\n"
CARD = "payment_method: credit-card"
PAYS = "then: {customer: pays}"
NEVER_MATCHING = [
    # the rules, settings before them, line:column, words of the warning
    (f"- {PAYS}\n- when: {{{CARD}}}\n  {PAYS}", "", "4:3", "rules[0] always matches first"),
    (f"- when: {{{CARD}}}\n  {PAYS}\n- when: {{{CARD}, attempt: 2}}\n  {PAYS}", "", "5:3", "rules[0]"),
    (f"- when: {{amount: {{lte: 9}}}}\n  {PAYS}\n- when: {{amount: 9}}\n  {PAYS}", "", "5:3", "rules[0]"),
    (
        f'- when: {{merchant_order_id: "a*"}}\n  {PAYS}\n- when: {{merchant_order_id: "ab-*"}}\n  {PAYS}',
        "",
        "5:3",
        "rules[0]",
    ),
    ("- when: {payment_method: bank-transfer}\n  then: {customer: pays}", LIVE, "5:3", "depend on credit"),
    ("- when: {refund: true}\n  then: {customer: pays}", "", "4:3", "depend on processor"),
    (f"- when: {{payment_method: wallet-apple}}\n  {PAYS}", "", "3:10", "test mode"),
    (f"- when: {{payment_method: [credit-card, bank-redirect-be]}}\n  {PAYS}", "", "3:10", "with bank-r"),
    ("- then: {credit: {after: P2D}}", "", "3:3", "test mode"),
    (f"- when: {{amount: {{gte: 50, lt: 10}}}}\n  {PAYS}", "", "3:10", "matches no amount"),
    (f"- when: {{customer: {{email_adress: x}}}}\n  {PAYS}", "", "3:21", "did you mean 'email_address'?"),
    (
        f"- when: {{payment_method: wallet-web}}\n  {PAYS}",
        "settings: {payment_methods: [credit-card]}\n",
        "4:10",
        "settings disable",
    ),
    ("- when: {refund: true, attempt: 2}\n  then: {processor: fails}", "", "3:24", "matches no refund"),
    (
        "- when: {payment_method: wallet-web}\n  then: {customer: pays, card: challenge}",
        "",
        "4:26",
        "has no effect",
    ),
    (
        f"- {PAYS}\nwebhooks:\n- then: {{drop: true}}\n- when: {{attempt: 1}}\n  then: {{answer: 500}}",
        "",
        "6:3",
        "webhooks[0] always matches first",
    ),
    ("- when: {payment_method: invoice-later-b}\n  then: {screening: error}", "", "4:3", "can never happen"),
]
FINE = [
    f"- when: {{{CARD}}}\n  times: 1\n  {PAYS}\n- when: {{{CARD}}}\n  {PAYS}",
    f"- when: {{{CARD}}}\n  {PAYS}\n- {PAYS}",
    f"- when: {{amount: {{gt: 100}}}}\n  {PAYS}\n- when: {{amount: {{gte: 100}}}}\n  {PAYS}",
    f'- when: {{merchant_order_id: "a?"}}\n  {PAYS}\n- when: {{merchant_order_id: "a*"}}\n  {PAYS}',
    "- when: {payment_method: bank-transfer}\n  then: {credit: never}",
    f"- when: {{payment_method: wallet-apple}}\n  {PAYS}\n- then: {{credit: {{after: P2D}}}}\n{LIVE}",
    f"- when: {{refund: true}}\n  then: {{processor: fails}}\n- {PAYS}",
]


def check_rules(tmp_path: Path, rules: str, settings: str = "") -> list[str]:
    """Check a scenario with these rules; return its warnings with their places."""
    file = tmp_path / "x.yaml"
    file.write_text(f"name: x\n{settings}rules:\n{rules}\n")
    _, warnings = check_file(file)
    assert all(warning.file == str(file) for warning in warnings)
    return [f"{warning.line}:{warning.column} {warning.message}" for warning in warnings]


@pytest.mark.parametrize(("rules", "settings", "place", "words"), NEVER_MATCHING)
def test_a_rule_that_never_matches_is_named(
    tmp_path: Path, rules: str, settings: str, place: str, words: str
) -> None:
    """Rules that can never match, or are impossible in test mode, are reported."""
    (warning,) = check_rules(tmp_path, rules, settings)
    assert warning.startswith(f"{place} ")
    assert words in warning


@pytest.mark.parametrize("rules", FINE)
def test_a_rule_that_can_match_is_not_named(tmp_path: Path, rules: str) -> None:
    """A rule after one that is limited, narrower or unrelated is not reported."""
    assert check_rules(tmp_path, rules) == []


def test_an_alias_of_the_scenario_is_a_method(tmp_path: Path) -> None:
    """A rule for a method includes its aliases, but not the reverse."""
    aliases = "settings: {aliases: {my-card: credit-card}}\n"
    alias = "when: {payment_method: my-card}"
    alias_first = f"- {alias}\n  {PAYS}\n- when: {{{CARD}}}\n  {PAYS}"
    assert check_rules(tmp_path, alias_first, aliases) == []
    (warning,) = check_rules(tmp_path, f"- when: {{{CARD}}}\n  {PAYS}\n- {alias}\n  {PAYS}", aliases)
    assert "rules[0] always matches first" in warning


def test_no_scenario_of_the_package_has_a_warning() -> None:
    """The scenarios of the package have no warnings."""
    for path in scenario_files(ready_folder()):
        assert check_file(path)[1] == []
