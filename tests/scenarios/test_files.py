"""Scenario files: mistakes are reported with line and column."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.settings import check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue, load_folder, read_text
from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.scenarios.loader import load_text
from tests.scenarios.wrong_files import WRONG
from tests.support.driver import Sandbox


@pytest.mark.rule("SCN-01")
@pytest.mark.parametrize(("text", "position", "path", "words"), WRONG)
def test_a_wrong_file_is_named_by_line_and_column(
    tmp_path: Path, text: str, position: str, path: str, words: str
) -> None:
    """A violation names its position, its path and the expected values."""
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(Invalid) as refused:
        load_text(read_text(file), METHOD_NAMES, check_scenario_settings, str(file))
    violations = {f"{violation.line}:{violation.column}": violation for violation in refused.value.violations}
    assert position in violations, refused.value.violations
    violation = violations[position]
    assert violation.path == path
    assert words in violation.message
    assert violation.file == str(file)


def test_all_mistakes_of_all_files_are_reported_together(tmp_path: Path) -> None:
    """Loading a folder reports the mistakes of all of its files."""
    (tmp_path / "a.yaml").write_text("name: b\nrulez: []")
    (tmp_path / "c.json").write_text('{"name": "c", "rules": 5}')
    (tmp_path / "good.yml").write_text("name: good")
    with pytest.raises(Invalid) as refused:
        load_folder(tmp_path, METHOD_NAMES, check_scenario_settings)
    assert [(Path(each.file or "").name, each.line) for each in refused.value.violations] == [
        ("a.yaml", 1),
        ("a.yaml", 2),
        ("c.json", 1),
    ]


WITH_MISTAKES = """\
name: y
rulez: []
settings: {mode: prod}
rules:
  - when: {payment_method: cash}
    then: {after: soon}
  - 5
  - when: {payment_method: [credit-card, coins], amount: {above: 5}}
    then: {customer: payz}
webhooks:
  - then: {answer: 42, drop: true}
faults:
  - then: {status: 5, reset: true}
"""
MISTAKES = [
    ("1:1", "name"),
    ("2:1", "rulez"),
    ("3:12", "settings.mode"),
    ("5:12", "rules[0].when.payment_method"),
    ("6:5", "rules[0].then"),
    ("6:12", "rules[0].then.after"),
    ("7:5", "rules[1]"),
    ("8:12", "rules[2].when.payment_method"),
    ("8:59", "rules[2].when.amount.above"),
    ("9:12", "rules[2].then.customer"),
    ("11:5", "webhooks[0].then"),
    ("11:12", "webhooks[0].then.answer"),
    ("13:5", "faults[0].then"),
    ("13:12", "faults[0].then.status"),
]


@pytest.mark.rule("SCN-01")
def test_all_kinds_of_mistakes_are_reported_together(sandbox: Sandbox, tmp_path: Path) -> None:
    """Mistakes are reported in the order of the file, both for a file and for a request."""
    file = tmp_path / "x.yaml"
    file.write_text(WITH_MISTAKES)
    with pytest.raises(Invalid) as refused:
        load_text(read_text(file), METHOD_NAMES, check_scenario_settings, str(file))
    assert [(f"{each.line}:{each.column}", each.path) for each in refused.value.violations] == MISTAKES
    answer = sandbox.put(
        "/control/scenario/", data=WITH_MISTAKES, headers={"Content-Type": "application/yaml"}
    )
    sent = [
        (f"{each['line']}:{each['column']}", each["path"]) for each in answer.json()["error"]["violations"]
    ]
    assert sent == MISTAKES[1:], "a document in a request may have any name"


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    """A missing folder and an unreadable file are refused."""
    with pytest.raises(Invalid, match="is not a folder"):
        load_folder(tmp_path / "nowhere", METHOD_NAMES, check_scenario_settings)
    with pytest.raises(Invalid, match="cannot be read"):
        read_text(tmp_path / "nothing.yaml")


def test_a_custom_scenario_overrides_a_ready_one(tmp_path: Path) -> None:
    """A custom scenario overrides the ready scenario with the same name."""
    (tmp_path / "webhook-lost.yaml").write_text("name: webhook-lost\ndescription: mine")
    assert (
        Catalogue(METHOD_NAMES, check_scenario_settings, [tmp_path], default=default_scenario())
        .find("webhook-lost")
        .description
        == "mine"
    )


def test_yaml_is_read_as_version_1_2() -> None:
    """``on``, ``no``, ``yes``, times and dates are strings."""
    text = "on: yes\nno: off\nat: 12:30\nwhen: 2027-01-01\nhex: 0o14\n"
    data: Any = parse_yaml(dedent(text)).data
    assert data == {"on": "yes", "no": "off", "at": "12:30", "when": "2027-01-01", "hex": 12}


def test_an_exploding_document_is_refused() -> None:
    """Exponential anchors, deep nesting and too long texts are refused."""
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for before, name in zip("abcdef", "bcdefg", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for text in (bomb, "a: " + "[" * 5000, "x" * (2 << 20)):
        with pytest.raises(Invalid, match="is not valid YAML"):
            parse_yaml(text)


@pytest.mark.rule("CTL-19")
def test_a_scenario_can_be_sent_as_yaml(sandbox: Sandbox) -> None:
    """A scenario can be sent as YAML; a wrong scenario is refused with line and column."""
    headers = {"Content-Type": "application/yaml"}
    good = "name: mine\nrules:\n  - then: {customer: pays}\n"
    answer = sandbox.put("/control/scenario/", data=good, headers=headers)
    assert answer.json() == {"name": "mine", "rules": [{"then": {"customer": "pays"}}]}
    wrong = sandbox.put("/control/scenario/", data=good.replace("customer", "custmer"), headers=headers)
    assert wrong.status_code == 400
    (violation, *_) = [
        item for item in wrong.json()["error"]["violations"] if item["path"].endswith("custmer")
    ]
    assert (violation["line"], violation["column"], violation["nearest"]) == (3, 12, "customer")
    assert sandbox.get("/control/scenario/").json()["name"] == "mine"
    assert sandbox.put("/control/scenario/", data=b"\xff", headers=headers).status_code == 400
