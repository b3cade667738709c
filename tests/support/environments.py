"""Folders that are each made once, and shared by all processes of a test run."""

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from inspect import getsource
from pathlib import Path
from typing import Final

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "payment-sandbox-tests"
"""Folders that later test runs use, too."""


def made_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Return a folder that ``make`` fills, once for all processes; a failed or killed attempt is repeated."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    complete = folder.with_name(f"{folder.name}.complete")
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (complete.exists() and folder.exists()):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            complete.touch()
    return folder


def cached(name: str, contents: Sequence[str], make: Callable[[Path], object]) -> Path:
    """Return a folder for these contents, made once on this machine, and again after a change of ``make``."""
    digest = sha256("\n".join([sys.version, getsource(make), *contents]).encode()).hexdigest()[:12]
    return made_once(CACHE / f"{name}-{digest}", make)
