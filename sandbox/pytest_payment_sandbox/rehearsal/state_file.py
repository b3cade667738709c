"""The file in which commands remember what was tried, for the next time that somebody goes on."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pytest_payment_sandbox.rehearsal.remembering import Remembered
from pytest_payment_sandbox.rehearsal.report import save

FOLDER: Final = Path(".payment-sandbox")
NAME: Final = "rehearsal.json"
GITIGNORE: Final = "*\n"

RememberedTests = Mapping[str, Remembered]
"""What was tried of each test, by its name."""


def read_state(command: str) -> RememberedTests:
    """What was tried with this command in this folder, when it was stopped."""
    with suppress(OSError, ValueError, AttributeError):
        tests: RememberedTests = json.loads((FOLDER / NAME).read_text(encoding="utf-8")).get(command, {})
        return tests
    return {}


def write_state(command: str, tests: RememberedTests) -> None:
    """Remember what was tried with this command; nothing to remember removes the file.

    Raises:
        OSError: the folder cannot be written.
    """
    if not tests:
        (FOLDER / NAME).unlink(missing_ok=True)
        return
    save(FOLDER / ".gitignore", GITIGNORE)
    save(FOLDER / NAME, json.dumps({command: dict(tests)}))
