"""A rule that never matches gives a warning, with line and column."""

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
    (
        f"- when: {{amount: {{gte: 100}}}}\n  {PAYS}\n- when: {{amount: {{gt: 99, lt: 500}}}}\n  {PAYS}",
        "",
        "5:3",
        "rules[0]",
    ),
    (f"- when: {{amount: {{lte: 9}}}}\n  {PAYS}\n- when: {{amount: 9}}\n  {PAYS}", "", "5:3", "rules[0]"),
    (
        f'- when: {{merchant_order_id: "a*"}}\n  {PAYS}\n- when: {{merchant_order_id: "ab-*"}}\n  {PAYS}',
        "",
        "5:3",
        "rules[0]",
    ),
    (
        f'- when: {{customer: {{country: "*"}}}}\n  {PAYS}\n- when: {{{CARD}}}\n  {PAYS}',
        "",
        "5:3",
        "rules[0]",
    ),
    (
        "- when: {refund: true}\n  then: {processor: fails}\n"
        "- when: {refund: true, amount: 5}\n  then: {processor: settles}",
        "",
        "5:3",
        "rules[0]",
    ),
    ("- when: {payment_method: bank-transfer}\n  then: {customer: pays}", LIVE, "5:3", "depend on credit"),
    ("- when: {refund: true}\n  then: {customer: pays}", "", "4:3", "depend on processor"),
    (f"- when: {{payment_method: wallet-apple}}\n  {PAYS}", "", "3:10", "test mode"),
    (f"- when: {{payment_method: [credit-card, bank-redirect-be]}}\n  {PAYS}", "", "3:10", "with bank-r"),
    ("- when: {payment_method: bank-transfer}\n  then: {credit: {after: P2D}}", "", "3:10", "test mode"),
    ("- then: {credit: {after: P2D}}", "", "3:3", "test mode"),
    (f"- when: {{amount: {{gte: 50, lt: 10}}}}\n  {PAYS}", "", "3:10", "matches no amount"),
    (f"- when: {{amount: 0}}\n  {PAYS}", "", "3:10", "the smallest amount is 1"),
    (f"- when: {{customer: {{email_adress: x}}}}\n  {PAYS}", "", "3:21", "did you mean 'email_address'?"),
    (
        f"- when: {{payment_method: wallet-web}}\n  {PAYS}",
        "settings: {payment_methods: [credit-card]}\n",
        "4:10",
        "settings disable",
    ),
    (
        "- when: {refund: true, payment_method: credit-card}\n  then: {processor: fails}\n"
        "- when: {refund: true, payment_method: credit-card}\n  then: {processor: fails}",
        "",
        "5:3",
        "rules[0]",
    ),
    ("- when: {refund: true, attempt: 2}\n  then: {processor: fails}", "", "3:24", "matches no refund"),
    (
        "- when: {payment_method: wallet-web}\n  then: {customer: pays, card: challenge}",
        "",
        "4:26",
        "has no effect",
    ),
    ("- when: {payment_method: invoice-later-b}\n  then: {screening: error}", "", "4:3", "can never happen"),
]
FINE = [
    f"- when: {{{CARD}}}\n  times: 1\n  {PAYS}\n- when: {{{CARD}}}\n  {PAYS}",
    f"- when: {{{CARD}}}\n  {PAYS}\n- {PAYS}",
    "- then: {customer: pays}\n- then: {processor: fails}",
    f"- when: {{amount: {{gt: 100}}}}\n  {PAYS}\n- when: {{amount: {{gte: 100}}}}\n  {PAYS}",
    f'- when: {{merchant_order_id: "a?"}}\n  {PAYS}\n- when: {{merchant_order_id: "a*"}}\n  {PAYS}',
    f'- when: {{customer: {{country: "N*"}}}}\n  {PAYS}\n- {PAYS}',
    "- when: {payment_method: bank-transfer}\n  then: {credit: never}",
    f"- when: {{refund: true}}\n  then: {{processor: fails}}\n- {PAYS}",
]


def checked(tmp_path: Path, rules: str, settings: str = "") -> list[str]:
    """The warnings of a scenario of these rules, each with its place."""
    file = tmp_path / "x.yaml"
    file.write_text(f"name: x\n{settings}rules:\n{rules}\n")
    _, warnings = check_file(file)
    assert all(warning.file == str(file) for warning in warnings)
    return [f"{warning.line}:{warning.column} {warning.message}" for warning in warnings]


@pytest.mark.parametrize(("rules", "settings", "place", "says"), NEVER_MATCHING)
def test_a_rule_that_never_matches_is_named(
    tmp_path: Path, rules: str, settings: str, place: str, says: str
) -> None:
    """One that can never match, and one that asks test mode for what it cannot do."""
    (warning,) = checked(tmp_path, rules, settings)
    assert warning.startswith(f"{place} ")
    assert says in warning


@pytest.mark.parametrize("rules", FINE)
def test_a_rule_that_can_match_is_not_named(tmp_path: Path, rules: str) -> None:
    """One that is spent, or wider, or about something else leaves room for the next."""
    assert checked(tmp_path, rules) == []


def test_a_webhook_rule_in_vain_is_named(tmp_path: Path) -> None:
    """As one for attempts is."""
    file = tmp_path / "x.yaml"
    file.write_text(
        "name: x\nwebhooks:\n  - then: {drop: true}\n  - when: {attempt: 1}\n    then: {answer: 500}"
    )
    (warning,) = check_file(file)[1]
    assert (warning.line, warning.path) == (4, "webhooks[1]")


def test_live_mode_can_do_it_all(tmp_path: Path) -> None:
    """What test mode cannot."""
    rules = "- when: {payment_method: wallet-apple}\n  then: {customer: pays}\n- then: {credit: {after: P2D}}"
    assert checked(tmp_path, rules, LIVE) == []


def test_an_alias_of_the_scenario_is_a_method(tmp_path: Path) -> None:
    """And covered by its method, but not the other way round."""
    aliases = "settings: {aliases: {my-card: credit-card}}\n"
    mine = "when: {payment_method: my-card}"
    narrow = f"- {mine}\n  {PAYS}\n- when: {{{CARD}}}\n  {PAYS}"
    assert checked(tmp_path, narrow, aliases) == []
    (warning,) = checked(tmp_path, f"- when: {{{CARD}}}\n  {PAYS}\n- {mine}\n  {PAYS}", aliases)
    assert "rules[0] always matches first" in warning


def test_no_ready_scenario_says_anything_in_vain() -> None:
    """Each can be used as it is."""
    for path in scenario_files(ready_folder()):
        assert check_file(path)[1] == []
