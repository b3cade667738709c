"""A recipe for a language has a folder, its files on the page, and a line in the test that runs them."""

from pathlib import Path

import pytest

from tests.support.changed_package import ChangedCheckout

SUITE = """set -euo pipefail
${SANDBOX_COMMAND:-payment-sandbox} --version
test "$((2 + 2))" = 4
echo "1 test passed"
"""
BLOCK = "\n```sh shell/shop_test.sh\n{suite}```\n"
LINE = '    "shell": (("bash",), "bash shop_test.sh", "1 test passed"),\n'
PROJECT = "tests/howto/projects/shell"
PAGE = "ui/docs/pages/languages.md"
LANGUAGES = "tests/howto/test_languages.py"
TESTS = (f"{LANGUAGES}::test_the_pages_show_their_projects", f"{LANGUAGES}::test_a_suite_passes[shell]")
DIFFERS = "test_languages.py::test_the_pages_show_their_projects"
FAILS = "test_languages.py::test_a_suite_passes"


@pytest.mark.prove
def test_a_new_language_is_shown_and_run(tmp_path: Path) -> None:
    """The page must show the tested files exactly, and a suite that fails is named."""
    checkout = ChangedCheckout(tmp_path)
    (checkout.root / PROJECT).mkdir()
    checkout.add(f"{PROJECT}/shop_test.sh", SUITE.replace("= 4", "= 5"))
    checkout.insert(LANGUAGES, '    "ruby": (\n        ("ruby-rspec", "ruby-webrick"),', LINE)
    assert checkout.failing(*TESTS) == {DIFFERS, FAILS}
    checkout.package.append(PAGE, BLOCK.format(suite=SUITE))
    checkout.add(f"{PROJECT}/shop_test.sh", SUITE.replace("1 test", "One test"))
    assert checkout.failing(*TESTS) == {DIFFERS, FAILS}
    checkout.add(f"{PROJECT}/shop_test.sh", SUITE)
    assert checkout.failing(*TESTS) == set()
