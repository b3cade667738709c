"""What users ask of a rehearsal: how long it may take, and where its report goes; light, for options."""

import math
from pathlib import Path
from typing import Final

UNITS: Final = {"s": 1, "m": 60, "h": 3600}
REPORTS: Final = (".html", ".htm", ".json")


def seconds_of(text: str) -> float:
    """Read a time such as ``60s`` or ``10m``.

    Raises:
        ValueError: it is none, or no time above zero that ends.
    """
    number, unit = (text[:-1], text[-1:]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"takes a time above zero such as 60s or 10m, not {text!r}")
    return seconds


def check_report(name: str) -> None:
    """Check the name of a report.

    Raises:
        ValueError: it is neither that of a page nor of JSON, or its folder is not there.
    """
    if Path(name).suffix not in REPORTS:
        raise ValueError(f"takes an .html or a .json file, not {name!r}")
    if not Path(name).absolute().parent.is_dir():
        raise ValueError(f"takes a file in a folder that is there, not {name!r}")
