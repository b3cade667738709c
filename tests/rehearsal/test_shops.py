"""A shop without tests is explored with a browser: by its pages, and by its books if it tells them."""

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
    # by the variation that shows it: the mistake, and what it does
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
    port, own = free_port(), free_port()
    command = [
        *(sys.executable, "-m", "payment_sandbox", "explore", *options),
        *("--shop", f"http://127.0.0.1:{port}", "--sandbox", f"http://127.0.0.1:{own}", "--buy", str(buy)),
        *("--", sys.executable, str(SUITE / "shop.py"), str(port)),
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
    """With a picture of the page, in one file; the report has what was changed."""
    ran = explore(
        tmp_path, *ONLY, "--books", "/books", mistakes=" ".join(name for name, _ in MISTAKES.values())
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    for variation, (mistake, effect) in MISTAKES.items():
        assert effect in ran.stdout, mistake
        assert f'payment-sandbox explore --only "{variation}" --shop ' in ran.stdout, mistake
    assert "1 shop rehearsed in 3 variations: 3 findings" in ran.stdout
    page = (tmp_path / "exploration.html").read_text()
    assert re.search(r'<img alt="the page http[^"]*/thanks[^"]*" src="data:image/jpeg;base64,', page)
    assert "<script" not in page


@pytest.mark.prove
def test_a_right_shop_is_silent(tmp_path: Path) -> None:
    """After the same changes; while something is under way, it says so."""
    ran = explore(tmp_path, *ONLY, "--books", "/books")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 shop rehearsed in 3 variations: no findings" in ran.stdout
    assert "making the unchanged purchase in http" in ran.stderr


@pytest.mark.parametrize(
    ("options", "buy", "words"),
    [
        (["--shop", "localhost:3000"], "", "--shop takes an address such as http://localhost:3000, not"),
        (["--budget", "soon"], "", "--budget takes a duration above zero"),
        (["--shop", "http://127.0.0.1:1"], "", "no response; start the shop with SANDBOX_URL=http"),
        ([], "open: /\nsteps:\n- press: a\n", "buy.yaml:3: step 1: expected one of click, fill"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path: Path, options: list[str], buy: str, words: str) -> None:
    """With exit code 2, before a browser is started."""
    (tmp_path / "buy.yaml").write_text(buy or (SUITE / "buy.yaml").read_text())
    given = [
        "--shop",
        "http://127.0.0.1:1",
        "--sandbox",
        f"http://127.0.0.1:{free_port()}",
        "--buy",
        "buy.yaml",
    ]
    command = [sys.executable, "-m", "payment_sandbox", "explore", *given, *options]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, words in ran.stderr) == (2, True), ran.stderr


@pytest.mark.prove
def test_a_purchase_that_does_not_work_is_explained(tmp_path: Path) -> None:
    """With the file, what it expected, where the customer is, and what the page says."""
    (tmp_path / "buy.yaml").write_text((SUITE / "buy.yaml").read_text().replace("/thanks", "text=Merci"))
    ran = explore(tmp_path, buy=tmp_path / "buy.yaml")
    assert ran.returncode == 2
    assert 'buy.yaml, returned: expected "text=Merci" on http' in ran.stderr
    assert "which shows 'Thank you! Your socks are on their way.'" in ran.stderr
