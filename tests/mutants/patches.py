"""Reads changes to the source from patch files: the mutants beside this module.

A file consists of blocks. Each starts with a rule in brackets, followed by one or more hunks: the path of a
module of the package, the removed lines, and the added lines::

    [CAP-02]
    orders/authorization.py
    -        if now >= self.expires_at:
    +        if now > self.expires_at:

If no change to the source can break a rule, the block gives the reason: ``[GEN-05] none: …``. The head
``[GEN-05] untried`` means that the tests of the rule have not run against the patch yet.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent
PACKAGE: Final = Path("sandbox/payment_sandbox")
HEAD: Final = re.compile(r"\[([A-Z]+-?\d+)\](?: none: (.+)| (untried))?")


class PatchRefused(ValueError):
    """A patch file is malformed, or a patch does not fit the source."""


class Hunk(NamedTuple):
    """A change to one module."""

    path: Path
    before: str
    after: str

    def apply(self, package: Path) -> None:
        """Change the module in a copy of the package.

        Raises:
            PatchRefused: the lines do not occur exactly once, or do not change.
        """
        file = package / self.path
        source = f"\n{file.read_text(encoding='utf-8')}" if file.is_file() else ""
        times = source.count(f"\n{self.before}")
        if times != 1 or self.before == self.after:
            raise PatchRefused(
                f"these lines occur {times} times in {self.path}, or do not change:\n{self.before}"
            )
        file.write_text(source.replace(f"\n{self.before}", f"\n{self.after}")[1:], encoding="utf-8")


class Mutant(NamedTuple):
    """A change to the source that breaks one rule; or, without hunks, the reason for having none."""

    rule: str
    hunks: tuple[Hunk, ...]
    reason: str = ""
    is_untried: bool = False

    def apply(self, package: Path) -> None:
        """Change a copy of the package.

        Raises:
            PatchRefused: the patch does not fit.
        """
        for hunk in self.hunks:
            hunk.apply(package)


def mutants(folder: Path = FOLDER) -> dict[str, Mutant]:
    """Return all mutants by their rules.

    Raises:
        PatchRefused: a file is malformed, or a rule has two mutants.
    """
    known: dict[str, Mutant] = {}
    for file in sorted(folder.glob("*.patch")):
        for mutant in read(file):
            if mutant.rule in known:
                raise PatchRefused(f"{file.name}: {mutant.rule} has another mutant already")
            known[mutant.rule] = mutant
    return known


def read(file: Path) -> Iterator[Mutant]:
    """Yield the mutants of a file.

    Raises:
        PatchRefused: the file is malformed.
    """
    blocks: list[tuple[re.Match[str], list[str]]] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        head = HEAD.fullmatch(line)
        if head is not None:
            blocks.append((head, []))
        elif blocks and line:
            blocks[-1][1].append(line)
        elif line and not line.startswith("#"):
            raise PatchRefused(f"{file.name}, line {number}: a block begins with a rule in brackets")
    for head, lines in blocks:
        hunks = tuple(_hunks(file, head[1], lines))
        if bool(hunks) == bool(head[2]):
            raise PatchRefused(f"{file.name}: {head[1]} has either a patch or a reason why there is none")
        yield Mutant(head[1], hunks, head[2] or "", head[3] is not None)


def _hunks(file: Path, rule: str, lines: list[str]) -> Iterator[Hunk]:
    path, changes = "", Changes([], [])
    for line in [*lines, ""]:
        if line[:1] == "-" and not changes.after:
            changes.before.append(line[1:])
        elif line[:1] == "+" and changes.before:
            changes.after.append(line[1:])
        elif line[:1] in "+-" and line:
            raise PatchRefused(f"{file.name}: {rule}: lines with - come first, then lines with +")
        else:
            if changes.before:
                yield Hunk(Path(path), _text(changes.before), _text(changes.after))
            path, changes = line, Changes([], [])


class Changes(NamedTuple):
    """The lines of a hunk that is being read."""

    before: list[str]
    after: list[str]


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
