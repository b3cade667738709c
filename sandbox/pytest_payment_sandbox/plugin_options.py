"""The plugin's options and markers.

Imports are kept to a minimum, because every pytest run loads this module.
"""

import json
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

REHEARSAL_SECONDS = 60.0
OFF, WARN, ERROR = "off", "warn", "error"
MODE_VARIABLE = "PAYMENT_SANDBOX_REVIEW"
PROJECT_FIXTURES = (
    "payment_sandbox",
    "class_payment_sandbox",
    "module_payment_sandbox",
    "session_payment_sandbox",
)
FILE_SUFFIXES = (".yaml", ".yml", ".json")
EXPECT_ARGUMENT = "expect"
PROJECT_MARKERS = ("payment_intercept", "payment_scenario", "payment_settings")
MARKERS = (
    "payment_scenario(scenario): the initial scenario of the test's project: a name or a file",
    "payment_settings(**settings): the settings of the test's project",
    "payment_intercept(*urls, key=None): redirect requests for these addresses to the test's project; "
    "key is the API key that is hard-coded in the shop",
    "payment_review(mode, expect=[rules]): off, warn or error: how to report the review's findings on "
    "this test, except for violations of expected rules",
    "payment_rehearse(only): rehearse this test: rerun it with one change at a time, or with this "
    'variation only, such as "webhook:2:twice"',
)


def add_options(parser: pytest.Parser) -> None:
    """Add the command-line options and the ini options."""
    group = parser.getgroup("payment sandbox")
    group.addoption(
        "--payment-scenario",
        metavar="NAME",
        help="the initial scenario of every project, unless its test has a payment_scenario marker",
    )
    group.addoption(
        "--payment-review",
        choices=(OFF, WARN, ERROR),
        help="review the shop's calls after every test: warn of mistakes (the default), or fail the test",
    )
    group.addoption(
        "--payment-seed",
        metavar="NUMBER",
        type=int,
        help="the seed of every project, for reproducible identifiers",
    )
    group.addoption(
        "--payment-open",
        action="store_true",
        help="keep the project of a failed test, and open its page in the browser",
    )
    _add_rehearsal_options(group)
    parser.addini(
        "payment_scenarios", "folders of scenario files that can be used by name", type="paths", default=[]
    )
    parser.addini("payment_scenario", "default of --payment-scenario", default="")
    parser.addini("payment_review", "default of --payment-review", default=WARN)
    parser.addini("payment_seed", "default of --payment-seed", default="")
    parser.addini(
        "payment_settings", "settings of every project, one per line, such as mode = live", type="linelist"
    )
    parser.addini("payment_intercept", "addresses to redirect to the sandbox", type="linelist")
    parser.addini(
        "payment_gc_freeze",
        "whether garbage collections skip what is loaded before the first payment test",
        type="bool",
        default=True,
    )


def _add_rehearsal_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--payment-rehearse", action="store_true", help="rerun every test with one change at a time"
    )
    group.addoption(
        "--payment-rehearse-only",
        metavar="VARIATION",
        help="run the tests with this variation only, such as webhook:2:twice",
    )
    group.addoption(
        "--payment-rehearse-seconds",
        metavar="SECONDS",
        type=float,
        default=REHEARSAL_SECONDS,
        help="the processor time for the variations of each test (default: 60)",
    )
    group.addoption(
        "--payment-rehearse-report",
        metavar="FILE",
        help="write the findings of a rehearsal to this .json file",
    )


def check_options(config: pytest.Config) -> None:
    """Validate the options before any test runs.

    Raises:
        pytest.UsageError: an option is invalid.
    """
    scenario_folders(config)
    suite_settings(config)
    suite_seed(config)
    must_freeze(config)
    rehearsal_seconds(config)
    _suite_mode(config)
    scenario = suite_scenario(config)
    if scenario is not None and scenario.endswith(FILE_SUFFIXES):
        _find_file(Path(scenario), config.rootpath)


def rehearsal_seconds(config: pytest.Config) -> float:
    """Return the processor time for the variations of each test, in seconds.

    Raises:
        pytest.UsageError: the option is not a number above zero.
    """
    seconds: float = config.getoption("payment_rehearse_seconds")
    if not 0 < seconds < math.inf:
        raise pytest.UsageError(f"--payment-rehearse-seconds takes a number above zero, not {seconds:g}")
    return seconds


def must_freeze(config: pytest.Config) -> bool:
    """Whether garbage collections skip what is loaded before the first payment test.

    Raises:
        pytest.UsageError: the option is neither true nor false.
    """
    try:
        return bool(config.getini("payment_gc_freeze"))
    except (ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"payment_gc_freeze takes true or false: {error}") from None


def is_rehearsed(item: pytest.Item) -> bool:
    """Whether an option or a marker selects a test for rehearsal."""
    config = item.config
    is_requested = config.getoption("payment_rehearse") or config.getoption("payment_rehearse_only")
    return bool(is_requested) or item.get_closest_marker("payment_rehearse") is not None


def scenario_folders(config: pytest.Config) -> list[Path]:
    """Return the folders with scenario files.

    Raises:
        pytest.UsageError: a folder does not exist.
    """
    folders = [Path(folder) for folder in config.getini("payment_scenarios")]
    for folder in folders:
        if not folder.is_dir():
            raise pytest.UsageError(f"payment_scenarios: the folder {folder} does not exist")
    return folders


def suite_scenario(config: pytest.Config) -> str | None:
    """Return the scenario for the whole suite, if there is one."""
    return config.getoption("payment_scenario") or config.getini("payment_scenario") or None


def suite_settings(config: pytest.Config) -> dict[str, Any]:
    """Return the settings that apply to every project.

    Raises:
        pytest.UsageError: a line is not a setting.
    """
    settings: dict[str, Any] = {}
    for line in config.getini("payment_settings"):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name:
            raise pytest.UsageError(f"payment_settings takes lines such as mode = live, not {line!r}")
        settings[name] = value
        with suppress(ValueError):
            settings[name] = json.loads(value)
    return settings


def suite_seed(config: pytest.Config) -> int | None:
    """Return the suite's seed, if there is one.

    Raises:
        pytest.UsageError: the seed is not a number.
    """
    text = config.getini("payment_seed")
    seed: int | None = config.getoption("payment_seed")
    if seed is not None or not text:
        return seed
    try:
        return int(text)
    except ValueError:
        raise pytest.UsageError(f"payment_seed takes a number, not {text!r}") from None


def review_mode(item: pytest.Item) -> str:
    """Return the mode in which to report the mistakes in a test: off, warn or error.

    Raises:
        pytest.UsageError: the marker or ini option has another value.
    """
    default_mode = _suite_mode(item.config)
    marker = item.get_closest_marker("payment_review")
    if marker is None:
        return default_mode
    named = {name: value for name, value in marker.kwargs.items() if name != EXPECT_ARGUMENT}
    given = [*marker.args, *named.values()]
    if len(given) > 1 or named.keys() - {"mode"} or not (given or marker.kwargs):
        raise pytest.UsageError(f"payment_review takes one of {OFF}, {WARN} and {ERROR}")
    return _check_mode(given[0] if given else default_mode)


def _suite_mode(config: pytest.Config) -> str:
    """Return the mode of the suite: from the option, the environment or the ini file, in this order."""
    option: str | None = config.getoption("payment_review")
    if option is not None:
        return option
    if mode := os.environ.get(MODE_VARIABLE):
        return _check_mode(mode, MODE_VARIABLE)
    return _check_mode(config.getini("payment_review"))


def _check_mode(mode: Any, origin: str = "payment_review") -> str:
    if mode not in (OFF, WARN, ERROR):
        raise pytest.UsageError(f"{origin} must be {OFF}, {WARN} or {ERROR}, not {mode!r}")
    return str(mode)


def settings_of_test(item: Any) -> dict[str, Any]:
    """Return the settings of a test's project from the test's markers; the closest marker takes precedence.

    The seed of each test is derived from the suite's seed, if any, so that identifiers differ between tests.

    Raises:
        pytest.UsageError: a marker has a setting that is not a keyword argument.
    """
    seed = suite_seed(item.config)
    if seed is None and is_rehearsed(item):
        seed = 0
    settings: dict[str, Any] = {} if seed is None else {"seed": crc32(f"{seed} {item.nodeid}".encode())}
    return {**settings, **settings_of_markers(item)}


def settings_of_markers(item: pytest.Item) -> dict[str, Any]:
    """Return the settings in a test's markers."""
    settings: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("payment_settings"))):
        if marker.args:
            raise pytest.UsageError("payment_settings takes settings by name: payment_settings(mode='live')")
        settings.update(marker.kwargs)
    return settings


def scenario_of_test(item: Any) -> Any:
    """Return the scenario of a test's project from the test's marker or the suite; None if neither has one.

    A file can be in the current folder, or in the folder of the test.

    Raises:
        pytest.UsageError: the marker does not have exactly one scenario.
    """
    marker = item.get_closest_marker("payment_scenario")
    if marker is None:
        given: list[Any] = [suite_scenario(item.config)]
        folder = item.config.rootpath
    else:
        given, folder = [*marker.args, *marker.kwargs.values()], item.path.parent
    if len(given) != 1 or (marker is not None and marker.kwargs.keys() - {"name", "scenario"}):
        raise pytest.UsageError("payment_scenario takes one scenario: payment_scenario('webhook-lost')")
    (scenario,) = given
    is_file = isinstance(scenario, Path) or (isinstance(scenario, str) and scenario.endswith(FILE_SUFFIXES))
    return _find_file(Path(scenario), folder) if is_file else scenario


def _find_file(file: Path, folder: Path) -> Path:
    for candidate in (file, folder / file):
        if candidate.is_file():
            return candidate
    raise pytest.UsageError(f"payment_scenario: there is no file {file} in the current folder or in {folder}")


def urls_of_test(item: Any) -> list[tuple[str, str | None]]:
    """Return the intercepted addresses of a test, each with the shop's hard-coded key, if any.

    Raises:
        pytest.UsageError: the marker has an invalid argument.
    """
    urls: list[tuple[str, str | None]] = [(url, None) for url in item.config.getini("payment_intercept")]
    for marker in item.iter_markers("payment_intercept"):
        is_known = not marker.kwargs.keys() - {"key"}
        if not is_known or not marker.args or not all(isinstance(url, str) for url in marker.args):
            raise pytest.UsageError("payment_intercept takes addresses: payment_intercept('https://...')")
        urls += [(url, marker.kwargs.get("key")) for url in marker.args]
    return urls


def needs_project(item: pytest.Item, fixtures: Sequence[str]) -> bool:
    """Whether a marker or an option configures a project, but no fixture of the test creates a project."""
    is_requested = any(item.get_closest_marker(name) is not None for name in PROJECT_MARKERS)
    is_requested = is_requested or bool(item.config.getini("payment_intercept"))
    return is_requested and not any(name in fixtures for name in PROJECT_FIXTURES)
