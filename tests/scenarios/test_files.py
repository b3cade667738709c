"""Scenario files: what is wrong with one is named with line and column."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.settings import check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue, load_file, load_folder
from payment_sandbox.scenarios.documents import parse_yaml
from tests.support.driver import Sandbox
from tests.support.wrong_scenarios import WRONG


@pytest.mark.rule("SCN-01")
@pytest.mark.parametrize(("text", "place", "path", "says"), WRONG)
def test_a_wrong_file_is_named_by_line_and_column(
    tmp_path: Path, text: str, place: str, path: str, says: str
) -> None:
    """With the path, what was expected and the nearest known word."""
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(Invalid) as refused:
        load_file(file, METHOD_NAMES, check_scenario_settings)
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
        load_folder(tmp_path, METHOD_NAMES, check_scenario_settings)
    assert [(Path(found.file or "").name, found.line) for found in refused.value.violations] == [
        ("a.yaml", 1),
        ("a.yaml", 2),
        ("c.json", 1),
    ]


MANY = """\
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
def test_all_kinds_of_mistakes_come_in_one_pass(sandbox: Sandbox, tmp_path: Path) -> None:
    """In the order of the file, whether it is checked or sent."""
    file = tmp_path / "x.yaml"
    file.write_text(MANY)
    with pytest.raises(Invalid) as refused:
        load_file(file, METHOD_NAMES, check_scenario_settings)
    assert [(f"{one.line}:{one.column}", one.path) for one in refused.value.violations] == MISTAKES
    answer = sandbox.put("/control/scenario/", data=MANY, headers={"Content-Type": "application/yaml"})
    sent = [(f"{one['line']}:{one['column']}", one["path"]) for one in answer.json()["error"]["violations"]]
    assert sent == MISTAKES[1:], "a document that is sent may have any name"


def test_more_than_a_hundred_mistakes_come_all(tmp_path: Path) -> None:
    """A file is read by people, once."""
    file = tmp_path / "x.yaml"
    file.write_text("name: x\nrules:\n" + "  - then: {customer: payz}\n" * 150)
    with pytest.raises(Invalid) as refused:
        load_file(file, METHOD_NAMES, check_scenario_settings)
    assert len(refused.value.violations) == 150


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    """And so is a file that cannot be read."""
    with pytest.raises(Invalid, match="is not a folder"):
        load_folder(tmp_path / "nowhere", METHOD_NAMES, check_scenario_settings)
    with pytest.raises(Invalid, match="cannot be read"):
        load_file(tmp_path / "nothing.yaml", METHOD_NAMES, check_scenario_settings)


def test_an_own_scenario_goes_before_a_ready_one(tmp_path: Path) -> None:
    """Of the same name."""
    (tmp_path / "webhook-lost.yaml").write_text("name: webhook-lost\ndescription: mine")
    assert (
        Catalogue(METHOD_NAMES, check_scenario_settings, [tmp_path], default=default_scenario())
        .find("webhook-lost")
        .description
        == "mine"
    )


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
        with pytest.raises(Invalid, match="is not valid YAML"):
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
