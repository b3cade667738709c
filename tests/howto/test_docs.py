"""The documentation is correct: every code block runs, and every response is as shown."""

import json
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from payment_sandbox.forms.schemas import json_schema
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.settings import SettingsForm, check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.scenarios.loader import load_text
from payment_sandbox.serving.server import Server
from payment_sandbox.serving.starting import read_declared_projects
from payment_sandbox.ui.docs.library import PAGE_NAMES, read_source
from tests.documentation.parts import generated_files
from tests.documentation.references import example_setting
from tests.support.blocks import Block, as_glob, blocks, differs
from tests.support.documentation import ROOT, of, run_command, text_of
from tests.support.driver import Sandbox
from tests.support.servers import make_server
from tests.support.suites import run_pytest
from tests.support.tools import require

END_OF_BLOCK = "\x1e"


@pytest.fixture
def fresh() -> Iterator[Server]:
    """A server as ``make run`` starts it, except for the port."""
    with make_server() as running:
        yield running


def check_shown(shown: Block, printed: str) -> None:
    """Assert that the printed text matches the documented output."""
    if shown.language == "json":
        lines = [line for line in printed.splitlines() if line.strip()]
        assert lines, f"nothing was printed, documented is: {shown.text}"
        problem = differs(json.loads(shown.text), json.loads(lines[-1]))
        assert problem is None, f"{problem}\n{lines[-1][:3000]}"
    else:
        for line in shown.text.splitlines():
            assert any(fnmatchcase(actual.strip(), as_glob(line)) for actual in printed.splitlines()), (
                f"{line!r} is documented, but this was printed:\n{printed[-2000:]}"
            )


@pytest.mark.parametrize("name", ["README", *PAGE_NAMES])
def test_every_command_prints_what_is_shown(name: str, fresh: Server, tmp_path: Path) -> None:
    """The commands of a page, run in order in one shell, print what the page shows."""
    require("curl")
    commands = [block for block in blocks(text_of(name)) if block.language == "sh"]
    if name == "README":
        commands = [block for block in commands if "curl" in block.text]
    os.symlink(ROOT / "scenarios", tmp_path / "scenarios")
    script = f"\nprintf '\\n{END_OF_BLOCK}'\n".join(["set -eu", *(block.text for block in commands)])
    script += "\nkill $(jobs -p) 2> /dev/null || true"  # a second trap replaces the first one
    port = fresh.url.rpartition(":")[2]
    result = run_command(["bash", "-c", script.replace("127.0.0.1:8080", f"127.0.0.1:{port}")], tmp_path)
    assert result.returncode == 0, f"{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
    printed = result.stdout.replace(f"127.0.0.1:{port}", "127.0.0.1:8080").split(END_OF_BLOCK)[1:]
    for block, output in zip(commands, printed, strict=True):
        if block.shown is not None:
            check_shown(block.shown, output)


@pytest.mark.parametrize("block", of("python"))
def test_every_test_passes_as_pasted(block: Block, tmp_path: Path) -> None:
    """Each file of tests passes in its own folder."""
    (tmp_path / "test_pasted.py").write_text(block.text)
    result = run_pytest(tmp_path, "-q", "-pno:cacheprovider")
    assert result.returncode == 0, result.stdout[-4000:]


@pytest.mark.prove
def test_the_shop_of_the_pytest_page_passes_its_own_rehearsal(tmp_path: Path) -> None:
    """The shop survives every change, such as lost webhooks and lost responses."""
    (tmp_path / "test_shop.py").write_text(
        next(block.text for block in blocks(text_of("pytest")) if block.language == "python")
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    result = run_pytest(tmp_path, "-q", "-pno:cacheprovider", "--payment-rehearse")
    (summary,) = re.findall(r"^payment rehearsal: \d tests rehearsed in .*", result.stdout, re.MULTILINE)
    assert summary.endswith(": no findings"), result.stdout[-4000:]


YAML_FILES = [
    block for block in of("yaml") if re.search("^(rules|projects|api_key):", block.values[0].text, re.M)
]


@pytest.mark.parametrize("block", YAML_FILES)
def test_every_file_is_accepted(block: Block, tmp_path: Path) -> None:
    """The sandbox accepts the scenarios and projects; ``test_recipes`` runs the other files."""
    data = YAML(typ="safe", pure=True).load(block.text)
    if "rules" in data:
        load_text(block.text, METHOD_NAMES, check_scenario_settings, f"{data['name']}.yaml")
        return
    (tmp_path / "projects.yaml").write_text(block.text)
    catalogue = Catalogue(METHOD_NAMES, check_scenario_settings, default=default_scenario())
    declared = read_declared_projects([tmp_path / "projects.yaml"], catalogue)
    assert len(declared) == len(data.get("projects", [data]))


def test_generated_parts_are_up_to_date() -> None:
    """The files contain what the code generates; ``make docs`` writes it."""
    outdated = [
        file.name for file, text in generated_files() if not file.exists() or file.read_text("utf-8") != text
    ]
    assert outdated == [], "run make docs"


def test_every_setting_can_be_changed_as_shown(sandbox: Sandbox) -> None:
    """The change on the page is accepted, and alters the setting."""
    schema = json_schema(SettingsForm, {})
    for name, item in schema["properties"].items():
        value = example_setting(name, item)
        assert f"`{json.dumps({name: value})}`" in read_source("reference")
        before = sandbox.get("/control/project/").json()["settings"][name]
        after = sandbox.patch("/control/project/", {name: value}).json()["settings"][name]
        assert (after, before != after) == (value, True), name
