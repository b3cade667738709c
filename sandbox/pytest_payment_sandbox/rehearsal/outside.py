"""Reads the books and pages of a shop in another process, over HTTP or from a command."""

import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import requests

from payment_sandbox.projects.project import Project
from payment_sandbox.testing.books import BookEntry
from pytest_payment_sandbox.rehearsal.showing import PageFailed

SOURCE_SECONDS_MAX: Final = 20.0
OUTPUT_LENGTH_MAX: Final = 300  # characters of output quoted in an error
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
URL_PREFIXES: Final = ("http://", "https://")


class BooksUnreadable(Exception):
    """The shop's books cannot be read; the message names the source and the expected content."""


class ExternalBooks:
    """The shop's books, a JSON list of entries, at an address or printed by a command."""

    def __init__(self, source: str) -> None:
        """Parse the source: an address with a scheme, or a command.

        Raises:
            ValueError: the source is neither an address nor a command.
        """
        self.source = source
        self._command: Sequence[str] = () if source.startswith(URL_PREFIXES) else shlex.split(source)
        if not self._command and not urlsplit(source).hostname:
            raise ValueError(
                f"takes an address such as http://localhost:3000/books or a command, not {source!r}"
            )

    def read_entries(self, project: Project, environment: Mapping[str, str]) -> list[BookEntry]:
        """Return the entries for the project's orders; omit entries from other runs.

        Raises:
            BooksUnreadable: the source does not return a list of entries.
        """
        text = self._run_command(environment) if self._command else self._fetch()
        try:
            entries = json.loads(text)
            if not isinstance(entries, list):
                raise ValueError(f"{_shorten(text)!r} is not a list")
            read = [BookEntry.read(entry) for entry in entries]
        except (TypeError, ValueError) as wrong:
            raise self._unreadable_error(f"expected a JSON list of entries: {wrong}") from wrong
        known = {order.id for order in project.epoch.store.orders_newest_first()}
        return [entry for entry in read if known.intersection(entry.orders)]

    def _fetch(self) -> str:
        try:
            answer = requests.get(self.source, timeout=SOURCE_SECONDS_MAX)
        except requests.RequestException as error:
            raise self._unreadable_error(f"no response ({type(error).__name__})") from error
        if answer.status_code != HTTPStatus.OK:
            raise self._unreadable_error(f"expected 200, not {answer.status_code}: {_shorten(answer.text)}")
        return answer.text

    def _run_command(self, environment: Mapping[str, str]) -> str:
        try:
            completed = subprocess.run(
                self._command,
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SOURCE_SECONDS_MAX,
                check=False,
            )
        except OSError as error:
            raise self._unreadable_error(f"cannot run {self._command[0]!r}: {error.strerror}") from error
        except subprocess.TimeoutExpired as late:
            raise self._unreadable_error(f"the command took longer than {late.timeout:.0f} s") from late
        if completed.returncode != 0:
            raise self._unreadable_error(
                f"exit code {completed.returncode}: {_shorten(completed.stderr or completed.stdout)}"
            )
        return completed.stdout

    def _unreadable_error(self, reason: str) -> BooksUnreadable:
        return BooksUnreadable(f"--books {self.source}: {reason}")


def request_page(url: str) -> str | None:
    """Request a page of a shop on this machine, without cookies; return None if the page does not exist.

    Raises:
        PageFailed: the shop responds with an error.
    """
    if urlsplit(url).hostname not in LOOPBACK:
        return None
    try:
        answer = requests.get(url, timeout=SOURCE_SECONDS_MAX)
    except requests.RequestException:
        return None
    if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise PageFailed(f"status {answer.status_code}")
    return answer.text if answer.status_code == HTTPStatus.OK else None


def _shorten(text: str) -> str:
    shown = text.strip()
    return shown if len(shown) <= OUTPUT_LENGTH_MAX else f"{shown[:OUTPUT_LENGTH_MAX]}…"
