"""The page for coding agents: its parts are complete, and its shop passes the checks that it lists."""

from pathlib import Path

import pytest

from payment_sandbox.ui.docs.library import read_source
from tests.support.blocks import blocks
from tests.support.documentation import run_command

PAGE = read_source("agents")


@pytest.mark.prove
def test_its_shop_survives_its_last_step(tmp_path: Path) -> None:
    """The review and the rehearsal have no findings; without the job, the rehearsal has one."""
    (block,) = [block for block in blocks(PAGE) if block.language == "python"]
    test = tmp_path / "test_shop.py"
    test.write_text(block.text)
    command = ["pytest", "-q", "-p", "no:cacheprovider", "--payment-review=error", "--payment-rehearse"]
    result = run_command(command, tmp_path)
    assert "no findings" in result.stdout, result.stdout[-3000:]
    assert result.returncode == 0
    job = '    payment_sandbox.every("PT1H", shop.check_open_orders)\n'
    assert job in block.text
    test.write_text(block.text.replace(job, ""))
    result = run_command(command, tmp_path)
    assert result.returncode == 1
    assert "the customer paid €12.95, but the shop does not mark it as paid" in result.stdout, result.stdout[
        -3000:
    ]
