"""Sets up or grades the tasks: ``make agents SOLUTIONS=folder``.

If the folder does not exist, it is created with the starting shops; otherwise its solutions are graded.
"""

import sys
from pathlib import Path

from tests.agents.grading import TASKS, grade_all, write_tasks

USAGE = (
    "name a folder: make agents SOLUTIONS=folder; a new folder gets the ten tasks, an existing one is graded"
)


def main() -> None:
    """Set up the tasks, or grade the solutions and exit with 1 unless all pass."""
    if len(sys.argv) != 2:
        sys.exit(USAGE)
    folder = Path(sys.argv[1])
    if not folder.exists():
        write_tasks(folder)
        print(
            f"{folder} has {len(TASKS)} tasks, each with TASK.md and the shop to complete; grade them with the same command"
        )
        return
    grades = grade_all(folder)
    for task, grade in grades.items():
        print(f"{'passed' if grade.passed else 'failed'}  {task}")
        for finding in grade.findings or ([] if grade.passed else grade.text.strip().splitlines()[-3:]):
            print(f"        {finding}")
    passed = sum(grade.passed for grade in grades.values())
    print(f"{passed} of {len(grades)} tasks solved")
    sys.exit(0 if passed == len(grades) else 1)


if __name__ == "__main__":
    main()
