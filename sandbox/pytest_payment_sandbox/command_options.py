"""The options of the commands ``rehearse`` and ``explore``."""

import shlex
from pathlib import Path
from typing import NamedTuple


class SuiteOptions(NamedTuple):
    """The options of ``payment-sandbox rehearse``."""

    budget: str
    only: tuple[str, ...]
    test: str
    one: str | None
    books: str | None
    pages: tuple[str, ...]
    resumes: bool
    report: Path | None
    as_json: bool
    form: str
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """The suite's command, as users type it."""
        return shlex.join(self.command)

    def rerun_command(self, test: str, variation: str) -> str:
        """Return the command that reruns a variation of a test."""
        named = {"--test": test, "--one": self.one, "--books": self.books}
        words = [part for option, text in named.items() if text for part in (option, text)]
        words += [part for page in self.pages for part in ("--pages", page)]
        return f'payment-sandbox rehearse --only "{variation}" {shlex.join([*words, "--"])} {self.name}'


class ShopOptions(NamedTuple):
    """The options of ``payment-sandbox explore``."""

    shop: str
    buy: Path
    sandbox: str
    books: str | None
    pages: tuple[str, ...]
    budget: str
    only: tuple[str, ...]
    resumes: bool
    report: Path
    as_json: bool
    form: str
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the exploration in reports: the shop and the steps of the purchase."""
        return f"explore --shop {self.shop} --buy {self.buy}"

    def rerun_command(self, variation: str) -> str:
        """Return the command that reruns a variation."""
        books = ["--books", self.books] if self.books else []
        pages = [part for page in self.pages for part in ("--pages", page)]
        command = ["--", *self.command] if self.command else []
        required = ["--shop", self.shop, "--buy", str(self.buy), "--sandbox", self.sandbox]
        words = shlex.join([*required, *books, *pages, *command])
        return f'payment-sandbox explore --only "{variation}" {words}'
