"""The available scenarios: default, ready-made, and from the user's folders."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from payment_sandbox.forms.base import did_you_mean, nearest_word
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.scenarios.loader import CheckSettings, load_scenario, load_text
from payment_sandbox.scenarios.model import Scenario

SCENARIO_SUFFIXES: Final = (".yaml", ".yml", ".json")
SCHEMA_SUFFIX: Final = ".schema.json"  # the JSON schema for editors, beside the scenarios


def ready_folder() -> Path:
    """Return the folder of the ready-made scenarios: in the package, or next to it in a checkout."""
    packaged = Path(__file__).parent / "ready"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "scenarios"


@cache
def ready_texts() -> Mapping[Path, str]:
    """Read the files of the ready-made scenarios once, because a test may hide them later."""
    return {path: read_text(path) for path in scenario_files(ready_folder())}


def ready_scenarios(methods: Sequence[str], check_settings: CheckSettings) -> dict[str, Scenario]:
    """Load the ready-made scenarios, by name."""
    texts = ready_texts()
    known = _load_files(texts, texts.__getitem__, methods, check_settings)
    return {name: known[name] for name in sorted(known)}


def load_folder(folder: Path, methods: Sequence[str], check_settings: CheckSettings) -> dict[str, Scenario]:
    """Load all scenarios in a folder, by name.

    Raises:
        Invalid: lists all errors in all files.
    """
    if not folder.is_dir():
        raise Invalid([Violation("", "is not a folder", file=str(folder))])
    return _load_files(scenario_files(folder), read_text, methods, check_settings)


def _load_files(
    files: Iterable[Path],
    read: Callable[[Path], str],
    methods: Sequence[str],
    check_settings: CheckSettings,
) -> dict[str, Scenario]:
    scenarios: dict[str, Scenario] = {}
    violations: list[Violation] = []
    for path in files:
        try:
            scenario = load_text(read(path), methods, check_settings, str(path))
            scenarios[scenario.name] = scenario
        except Invalid as invalid:
            violations += invalid.violations
    if violations:
        raise Invalid(violations)
    return scenarios


def scenario_files(folder: Path) -> list[Path]:
    """Return the scenario files in a folder, sorted by name."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in SCENARIO_SUFFIXES and not path.name.endswith(SCHEMA_SUFFIX)
    )


def read_text(path: Path) -> str:
    """Read the text of a file.

    Raises:
        Invalid: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is not UTF-8"
    except OSError as error:
        reason = str(error.strerror).lower()
    raise Invalid([Violation("", f"cannot be read: {reason}", file=str(path))])


def is_name(choice: object) -> bool:
    """Whether a choice of a scenario is a name, or a document with nothing but a name."""
    return isinstance(choice, str) or (isinstance(choice, dict) and choice.keys() == {"name"})


class Catalogue:
    """Scenarios by name; a user's scenario takes precedence over a ready-made scenario of the same name."""

    def __init__(
        self,
        methods: Sequence[str],
        check_settings: CheckSettings,
        folders: Sequence[Path] = (),
        *,
        default: Scenario,
    ) -> None:
        self._default = default
        self._methods = methods
        self._check_settings = check_settings
        self._folders = folders
        self._texts: dict[Path, tuple[str, Scenario]] = {}  # the files read again
        self._user_scenarios: dict[str, Scenario] = {}
        for folder in folders:
            self._user_scenarios |= load_folder(folder, methods, check_settings)

    @cached_property
    def _ready_scenarios(self) -> dict[str, Scenario]:
        return ready_scenarios(self._methods, self._check_settings)

    @property
    def scenarios(self) -> dict[str, Scenario]:
        """All scenarios by name."""
        return {self._default.name: self._default, **self._ready_scenarios, **self._user_scenarios}

    def find(self, name: object) -> Scenario:
        """Return the scenario with this name; a changed or new file with this name is read first.

        Raises:
            Invalid: the scenario is unknown, with the available names; or its file is invalid, with line and
            column.
        """
        for path in self._files_of(name):
            text = read_text(path)
            if path not in self._texts or self._texts[path][0] != text:
                self._texts[path] = text, load_text(text, self._methods, self._check_settings, str(path))
            fresh = self._texts[path][1]
            self._user_scenarios = {**self._user_scenarios, fresh.name: fresh}
        known = self.scenarios
        scenario = known.get(name) if isinstance(name, str) else None
        if scenario is None:
            nearest = nearest_word(name, list(known)) if isinstance(name, str) else None
            message = f"{name!r} is not a known scenario{did_you_mean(nearest)}"
            raise Invalid([Violation("name", message, list(known), nearest)])
        return scenario

    def choose(self, choice: object, methods: Sequence[str]) -> Scenario:
        """Return the scenario of a name or a document; ``methods`` are the method names of its project.

        Raises:
            Invalid: lists all violations.
        """
        if is_name(choice):
            return self.find(choice["name"] if isinstance(choice, dict) else choice)
        return load_scenario(choice, methods, self._check_settings)

    def has(self, name: str) -> bool:
        """Whether a scenario, or a file that may be invalid, has this name."""
        return name in self.scenarios or bool(self._files_of(name))

    def _files_of(self, name: object) -> list[Path]:
        folders = [folder for folder in self._folders if folder.is_dir()]  # a test may hide them
        return [path for folder in folders for path in scenario_files(folder) if path.stem == name]
