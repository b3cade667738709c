"""Scenario files: what is wrong with one is named with line and column."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from payment_sandbox.methods import NAMES
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.projects.settings import check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue, load_file, load_folder
from payment_sandbox.scenarios.documents import parse_yaml
from tests.support.driver import Sandbox

RULE = "name: x\nrules:\n  - "
WRONG = [
    # what the file says, line:column, path, a word of the message
    ("", "1:1", "", "object"),
    ("- 1", "1:1", "", "object"),
    ("just words", "1:1", "", "object"),
    ("name: [", "1:8", "", "YAML"),
    ("name: x\nname: y", "2:1", "", "duplicate"),
    ("name: x\n\tdescription: y", "2:1", "", "YAML"),
    ("name: *x", "1:7", "", "alias"),
    ("name: x\n---\nname: y", "2:1", "", "document"),
    ("name: x\ndescription: 5", "2:1", "description", "text"),
    ("name: Big", "1:1", "name", "small letters"),
    ("name: other", "1:1", "name", "file's name"),
    ("description: x", "1:1", "name", "required"),
    ("name: x\nrulez: []", "2:1", "rulez", "did you mean 'rules'?"),
    ("name: x\nrules: {}", "2:1", "rules", "list"),
    ("name: x\nrules:\n  - 5", "3:5", "rules[0]", "object"),
    (RULE + "when: {}", "3:5", "rules[0].then", "required"),
    (RULE + "then: {}", "3:5", "rules[0].then", "must name one of"),
    (RULE + "then: {custmer: pays}", "3:12", "rules[0].then.custmer", "did you mean 'customer'?"),
    (RULE + "then: {customer: payz}", "3:12", "rules[0].then.customer", "did you mean 'pays'?"),
    (RULE + "then: {customer: yes}", "3:12", "rules[0].then.customer", "one of"),
    (RULE + "then: {customer: pays, after: 12:30}", "3:28", "rules[0].then.after", "duration"),
    (RULE + "then: {customer: pays, after: -PT5S}", "3:28", "rules[0].then.after", "duration"),
    (RULE + "then: {customer: pays, card: gold}", "3:28", "rules[0].then.card", "one of"),
    (RULE + "then: {customer: pays, reason: no}\n    times: 0", "4:5", "rules[0].times", "at least 1"),
    (RULE + "times: 1.5\n    then: {customer: pays}", "3:5", "rules[0].times", "whole number"),
    (
        RULE + "when: {amount: {above: 5}}\n    then: {customer: pays}",
        "3:21",
        "rules[0].when.amount.above",
        "known key",
    ),
    (RULE + "when: {amount: 12.95}\n    then: {customer: pays}", "3:12", "rules[0].when.amount", "object"),
    (
        RULE + "when: {amount: {gte: -1}}\n    then: {customer: pays}",
        "3:21",
        "rules[0].when.amount.gte",
        "at least 0",
    ),
    (
        RULE + "when: {payment_method: []}\n    then: {customer: pays}",
        "3:12",
        "rules[0].when.payment_method",
        "at least 1",
    ),
    (
        RULE + "when: {payment_method: credit-crad}\n    then: {customer: pays}",
        "3:12",
        "rules[0].when.payment_method",
        "did you mean 'credit-card'?",
    ),
    (RULE + "when: {customer: Jan}\n    then: {customer: pays}", "3:12", "rules[0].when.customer", "object"),
    (
        RULE + "when: {customer: {country: 5}}\n    then: {customer: pays}",
        "3:23",
        "rules[0].when.customer.country",
        "text",
    ),
    (
        RULE + "when: {attempt: first}\n    then: {customer: pays}",
        "3:12",
        "rules[0].when.attempt",
        "whole number",
    ),
    (
        RULE + "when: {refund: 1}\n    then: {processor: fails}",
        "3:12",
        "rules[0].when.refund",
        "true or false",
    ),
    (RULE + "then: {credit: soon}", "3:12", "rules[0].then.credit", "object"),
    (RULE + "then: {credit: {amount: 0}}", "3:21", "rules[0].then.credit.amount", "at least 1"),
    (RULE + "then: {screening: maybe}", "3:12", "rules[0].then.screening", "one of"),
    (RULE + "then: {processor: settle}", "3:12", "rules[0].then.processor", "did you mean 'settles'?"),
    ("name: x\nsettings: {mode: demo}", "2:12", "settings.mode", "one of"),
    ("name: x\nsettings: {mod: live}", "2:12", "settings.mod", "did you mean 'mode'?"),
    ("name: x\nwebhooks:\n  - then: {answer: 42}", "3:12", "webhooks[0].then.answer", "at least 100"),
    (
        "name: x\nwebhooks:\n  - when: {status: done}\n    then: {drop: true}",
        "3:12",
        "webhooks[0].when.status",
        "one of",
    ),
    ("name: x\nwebhooks:\n  - then: {drop: true, swap: true}", "3:5", "webhooks[0].then", "exactly one"),
    ("name: x\nfaults:\n  - then: {status: 200}", "3:12", "faults[0].then.status", "at least 400"),
    (
        "name: x\nfaults:\n  - when: {path: v1}\n    then: {reset: true}",
        "3:12",
        "faults[0].when.path",
        "path",
    ),
    ("name: x\nfaults:\n  - then: {rate_limit: 10}", "3:12", "faults[0].then.rate_limit", "text"),
]


@pytest.mark.rule("SCN-01")
@pytest.mark.parametrize(("text", "place", "path", "says"), WRONG)
def test_a_wrong_file_is_named_by_line_and_column(
    tmp_path: Path, text: str, place: str, path: str, says: str
) -> None:
    """With the path, what was expected and the nearest known word."""
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(Invalid) as refused:
        load_file(file, NAMES, check_scenario_settings)
    found = {f"{violation.line}:{violation.column}": violation for violation in refused.value.violations}
    assert place in found, refused.value.violations
    assert found[place].path == path
    assert says in found[place].message
    assert found[place].file == str(file)


def test_all_mistakes_of_all_files_come_at_once(tmp_path: Path) -> None:
    """Nothing is loaded from a folder with a wrong file."""
    (tmp_path / "a.yaml").write_text("name: b\nrulez: []")
    (tmp_path / "c.json").write_text('{"name": "c", "rules": 5}')
    (tmp_path / "good.yml").write_text("name: good")
    with pytest.raises(Invalid) as refused:
        load_folder(tmp_path, NAMES, check_scenario_settings)
    assert [(Path(found.file or "").name, found.line) for found in refused.value.violations] == [
        ("a.yaml", 2),
        ("c.json", 1),
    ]


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    """And so is a file that cannot be read."""
    with pytest.raises(Invalid, match="is no folder"):
        load_folder(tmp_path / "nowhere", NAMES, check_scenario_settings)
    with pytest.raises(Invalid, match="cannot be read"):
        load_file(tmp_path / "nothing.yaml", NAMES, check_scenario_settings)


def test_an_own_scenario_goes_before_a_ready_one(tmp_path: Path) -> None:
    """Of the same name."""
    (tmp_path / "webhook-lost.yaml").write_text("name: webhook-lost\ndescription: mine")
    assert Catalogue(NAMES, check_scenario_settings, [tmp_path]).find("webhook-lost").description == "mine"


def test_yaml_is_read_as_version_1_2() -> None:
    """On, no, yes and 12:30 are words."""
    text = "on: yes\nno: off\nat: 12:30\nwhen: 2027-01-01\nhex: 0o14\n"
    data: Any = parse_yaml(dedent(text)).data
    assert data == {"on": "yes", "no": "off", "at": "12:30", "when": "2027-01-01", "hex": 12}


def test_a_document_that_explodes_is_refused() -> None:
    """Anchors that multiply, and nesting without end."""
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for before, name in zip("abcdef", "bcdefg", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for text in (bomb, "a: " + "[" * 5000, "x" * (2 << 20)):
        with pytest.raises(Invalid, match="is no YAML"):
            parse_yaml(text)


@pytest.mark.rule("CTL-19")
def test_a_scenario_can_be_sent_as_yaml(sandbox: Sandbox) -> None:
    """And a wrong one is refused with line and column."""
    headers = {"Content-Type": "application/yaml"}
    good = "name: mine\nrules:\n  - then: {customer: pays}\n"
    answer = sandbox.put("/control/scenario/", data=good, headers=headers)
    assert answer.json() == {"name": "mine", "rules": [{"then": {"customer": "pays"}}]}
    wrong = sandbox.put("/control/scenario/", data=good.replace("customer", "custmer"), headers=headers)
    assert wrong.status_code == 400
    (found, *_) = [item for item in wrong.json()["error"]["violations"] if item["path"].endswith("custmer")]
    assert (found["line"], found["column"], found["nearest"]) == (3, 12, "customer")
    assert sandbox.get("/control/scenario/").json()["name"] == "mine"
    assert sandbox.put("/control/scenario/", data=b"\xff", headers=headers).status_code == 400
