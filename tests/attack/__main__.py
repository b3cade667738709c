"""Run all attacks at full size, or the named ones: ``python -m tests.attack crowds``.

``--short`` makes them as small as in ``make prove``; ``--share=2`` doubles the length of scalable attacks.
"""

import sys
from time import perf_counter

from tests.attack import SHORT, Failed, Report, Size
from tests.attack.all import ATTACKS


def main(arguments: list[str]) -> int:
    """Print a report and return the number of attacks that succeeded."""
    problems: list[str] = []
    size, names = Size(), []
    for argument in arguments:
        if argument == "--short":
            size = SHORT
        elif argument.startswith("--share="):
            size = Size(float(argument.partition("=")[2]))
        else:
            names.append(argument)
    for name in names or ATTACKS:
        print(name, flush=True)
        report = Report(name, size, lambda line: print(line, flush=True))
        start = perf_counter()
        ATTACKS[name](report)
        report.note("seconds", f"{perf_counter() - start:.0f}")
        try:
            report.end()
        except Failed as failed:
            problems.append(str(failed))
    print("\n".join(problems) or "all attacks were repelled")
    return len(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
