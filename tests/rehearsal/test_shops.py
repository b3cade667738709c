"""A shop without tests is explored with a browser, and checked by its pages and its books."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.conftest import NAMES
from tests.support.documentation import environment
from tests.support.ports import free_port

SUITE = Path(__file__).parent / "suites" / "flask"
MISTAKES = {
    # variation: (mistake, effect)
    "action:2:fails": (
        "thanks-everybody",
        "the page /thanks shows the same text to a customer who has not paid",
    ),
    "webhook:2:lost": ("trusts-webhooks", "the customer paid €12.95, but the shop does not mark it as paid"),
    "create:1:answer-lost": ("creates-again", "Two orders have the number"),
}
ONLY = [word for variation in MISTAKES for word in ("--only", variation)]


def explore(
    folder: Path, *options: str, mistakes: str = "", buy: Path = SUITE / "buy.yaml"
) -> subprocess.CompletedProcess[str]:
    """Explore the shop, which the command starts."""
    if not any(map(shutil.which, NAMES)):
        pytest.skip("no Chromium here: apt-get install chromium")
    shop_port, sandbox_port = free_port(), free_port()
    command = [
        *(sys.executable, "-m", "payment_sandbox", "explore", *options),
        *("--shop", f"http://127.0.0.1:{shop_port}", "--buy", str(buy)),
        *("--sandbox", f"http://127.0.0.1:{sandbox_port}"),
        *("--", sys.executable, str(SUITE / "shop.py"), str(shop_port)),
    ]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(MISTAKES=mistakes),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.prove
def test_planted_mistakes_are_named(tmp_path: Path) -> None:
    """Each finding has its effect and a command, and the report has pictures of the pages."""
    result = explore(
        tmp_path, *ONLY, "--books", "/books", mistakes=" ".join(name for name, _ in MISTAKES.values())
    )
    assert result.returncode == 1, result.stdout + result.stderr
    for variation, (mistake, effect) in MISTAKES.items():
        assert effect in result.stdout, mistake
        assert f'payment-sandbox explore --only "{variation}" --shop ' in result.stdout, mistake
    assert "1 shop rehearsed in 3 variations: 3 findings" in result.stdout
    page = (tmp_path / "exploration.html").read_text()
    assert re.search(r'<img alt="the page http[^"]*/thanks[^"]*" src="data:image/jpeg;base64,', page)
    assert "<script" not in page


@pytest.mark.prove
def test_a_correct_shop_has_no_findings(tmp_path: Path) -> None:
    """A correct shop has no findings, and the command prints its progress."""
    result = explore(tmp_path, *ONLY, "--books", "/books")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 shop rehearsed in 3 variations: no findings" in result.stdout
    assert "making the unchanged purchase in http" in result.stderr


@pytest.mark.parametrize(
    ("options", "buy", "words"),
    [
        (["--shop", "localhost:3000"], "", "--shop takes an address such as http://localhost:3000, not"),
        (["--budget", "soon"], "", "--budget takes a duration above zero"),
        (["--shop", "http://127.0.0.1:1"], "", "no response; start the shop with SANDBOX_URL=http"),
        ([], "open: /\nsteps:\n- press: a\n", "buy.yaml:3: step 1: expected one of click, fill"),
    ],
)
def test_a_wrong_option_or_script_is_explained(
    tmp_path: Path, options: list[str], buy: str, words: str
) -> None:
    """An invalid option or script ends the command with 2 before a browser is started."""
    (tmp_path / "buy.yaml").write_text(buy or (SUITE / "buy.yaml").read_text())
    required_options = [
        "--shop",
        "http://127.0.0.1:1",
        "--sandbox",
        f"http://127.0.0.1:{free_port()}",
        "--buy",
        "buy.yaml",
    ]
    command = [sys.executable, "-m", "payment_sandbox", "explore", *required_options, *options]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, words in result.stderr) == (2, True), result.stderr


@pytest.mark.prove
def test_a_failed_purchase_is_explained(tmp_path: Path) -> None:
    """The error names the script, the expected text, the address, and the text of the page."""
    (tmp_path / "buy.yaml").write_text((SUITE / "buy.yaml").read_text().replace("/thanks", "text=Merci"))
    result = explore(tmp_path, buy=tmp_path / "buy.yaml")
    assert result.returncode == 2
    assert 'buy.yaml, returned: expected "text=Merci" on http' in result.stderr
    assert "which shows 'Thank you! Your socks are on their way.'" in result.stderr
