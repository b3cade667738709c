"""The page about other languages shows the projects that are tested here."""

import subprocess
from pathlib import Path

import pytest

from payment_sandbox.ui.docs.library import read_source
from tests.howto.languages import PROJECTS, copied
from tests.support.blocks import blocks
from tests.support.documentation import run_command
from tests.support.tools import require

JARS = Path("/usr/share/java")
JUNIT = (
    "junit-jupiter-api", "junit-jupiter-engine", "junit-platform-commons", "junit-platform-engine",
    "junit-platform-launcher", "junit-platform-reporting", "junit-platform-console", "picocli",
    "opentest4j", "opentest4j-reporting-events", "opentest4j-reporting-schema", "apiguardian-api",
)  # fmt: skip
CLASSES = ":".join(f"{JARS}/{name}.jar" for name in JUNIT)
LAUNCH = "org.junit.platform.console.ConsoleLauncher --class-path built --scan-class-path --disable-banner"
QUICK = "-XX:TieredStopAtLevel=1"  # Java starts with less processor time
SUITES = {
    # required system packages, the command of the suite, and the output if it passes
    "node": (("nodejs",), "node --test", "# pass 3"),
    "php": (
        ("php-cli", "php-curl", "phpunit", "composer"),
        "phpunit --bootstrap vendor/autoload.php ShopTest.php",
        "OK (3 tests, 4 assertions)",
    ),
    "java": (
        ("default-jdk-headless", "junit5"),
        f"javac -J{QUICK} -cp {CLASSES} -d built *.java && java {QUICK} -cp {CLASSES}:built {LAUNCH}",
        "2 tests successful",
    ),
    "ruby": (
        ("ruby-rspec", "ruby-webrick"),
        "rspec shop_spec.rb",
        "1 example, 0 failures",
    ),
}


def test_the_pages_show_their_projects() -> None:
    """The pages show all files of their projects exactly."""
    texts = map(read_source, ("node", "php", "languages"))
    shown = {block.file: block.text for text in texts for block in blocks(text) if block.file}
    for name, text in shown.items():
        assert (PROJECTS / name).read_text() == text, f"{name} differs from the page"
    folders = {name.partition("/")[0] for name in shown}
    files = {str(path.relative_to(PROJECTS)) for folder in folders for path in (PROJECTS / folder).iterdir()}
    assert files == shown.keys()
    assert folders == set(SUITES)


every_language = pytest.mark.parametrize(
    "language",
    [name if name == "node" else pytest.param(name, marks=pytest.mark.prove) for name in SUITES],
)


@every_language
def test_a_suite_passes(language: str, tmp_path: Path) -> None:
    """The suite passes, and the server that it has started ends."""
    starter, pids = tmp_path / "sandbox", tmp_path / "pids"
    starter.write_text(f'#!/bin/sh\necho $$ >> {pids}\nexec payment-sandbox "$@"\n')
    starter.chmod(0o755)
    packages, command, printed = SUITES[language]
    require(*packages)
    folder = copied(language, tmp_path)
    result = run_command(["bash", "-euc", command], folder, SANDBOX_COMMAND=str(starter))
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-2000:]
    assert printed in result.stdout, result.stdout[-2000:]
    for pid in pids.read_text().split():
        subprocess.run(["tail", f"--pid={pid}", "-f", "/dev/null"], timeout=60, check=True)  # until it ends
