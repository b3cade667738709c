"""The command ``docs`` prints pages and sections without a server."""

import pytest
from click.testing import CliRunner, Result

from payment_sandbox.cli.main import commands
from payment_sandbox.judge.lessons import LESSONS, where_to_read
from payment_sandbox.ui.docs.library import PAGE_NAMES, read_source
from payment_sandbox.ui.docs.sections import section


def docs(reference: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(commands, ["docs", reference])


@pytest.mark.parametrize("reference", ["mistakes#read-the-order", "/docs/mistakes/#read-the-order"])
def test_a_section_is_printed_alone(reference: str) -> None:
    """The section ends before the next heading of its level; the address in messages works, too."""
    printed = docs(reference).output
    assert printed.startswith("## Read the order\n")
    assert "\n## " not in printed
    assert "```python" in printed


def test_every_place_that_messages_name_exists() -> None:
    """Each page and each section that a finding names can be printed."""
    for lesson in LESSONS.values():
        assert section(where_to_read(lesson.path).removeprefix("payment-sandbox docs ")).startswith("#")
    for name in PAGE_NAMES:
        assert section(name) == read_source(name).rstrip()
