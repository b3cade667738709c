"""Runs all attacks at full size, or those that are named: ``python -m tests.attack crowds``.

With ``--short`` they are as small as in ``make prove``.
"""

import sys
from time import perf_counter

from tests.attack import SHORT, Failed, Report, Size
from tests.attack.all import ATTACKS


def main(names: list[str]) -> int:
    """Print a report; returns how many attacks have succeeded."""
    problems: list[str] = []
    size = SHORT if "--short" in names else Size()
    for name in [name for name in names if name != "--short"] or ATTACKS:
        print(name, flush=True)
        report = Report(name, size, lambda line: print(line, flush=True))
        begun = perf_counter()
        ATTACKS[name](report)
        report.note("seconds", f"{perf_counter() - begun:.0f}")
        try:
            report.end()
        except Failed as failed:
            problems.append(str(failed))
    print("\n".join(problems) or "all attacks were repelled")
    return len(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
