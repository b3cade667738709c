"""Secrets are found in logs of any level and in databases, without false alarms."""

import logging
import sqlite3
import traceback
from contextlib import closing
from pathlib import Path

import pytest

from payment_sandbox.projects.project import Project
from payment_sandbox.testing.project_fixture import PaymentSandbox
from pytest_payment_sandbox.rehearsal.leaks import collect_logs, find_leaks
from tests.support.in_process import project_of

CARD = 4111_1111_1111_1111


@pytest.fixture
def project(payment_sandbox: PaymentSandbox) -> Project:
    """The project of a shop."""
    return project_of(payment_sandbox)


def test_the_code_in_a_traceback_is_no_secret(project: Project) -> None:
    """Source lines of tracebacks are ignored, and error messages are checked."""

    def pay(card: str, message: str) -> str:
        try:
            try:
                raise LookupError(card or "4111111111111111"[:4])
            except LookupError as error:
                raise ExceptionGroup(message, [KeyError("4111111111111111"[:4])]) from error
        except ExceptionGroup:
            text = traceback.format_exc()
        return text

    assert "4111111111111111" in pay("", "refused")
    assert [*find_leaks(project, None, [pay("", "refused")])] == []
    assert [*find_leaks(project, None, [pay("", f"refused {CARD}")])] != []


def test_all_log_levels_are_collected() -> None:
    """All levels are collected, and the logger's level is restored afterwards."""
    before, logger = logging.root.level, logging.getLogger("shop.without.level")
    texts = list[str]()
    with collect_logs(texts):
        logger.debug("as %s", "key")
    logger.debug("later")
    assert texts == ["as key"]
    assert logging.root.level == before


@pytest.mark.parametrize(
    ("kind", "value", "mode", "encoding"),
    [
        ("INTEGER", CARD, "WAL", "UTF-8"),
        ("TEXT", str(CARD), "DELETE", "UTF-16"),
        ("TEXT", "KEY", "WAL", "UTF-16"),
    ],
)
def test_a_column_of_a_database_can_hold_a_secret(
    project: Project, tmp_path: Path, kind: str, value: int | str, mode: str, encoding: str
) -> None:
    """A secret is found as a number, in any encoding, and in the write-ahead log."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute(f'CREATE TABLE "a sale" (number INTEGER, paid_by {kind})')
        connection.commit()
        assert [*find_leaks(project, lambda: [path])] == []
        secret = project.masking.api_key if value == "KEY" else value
        connection.execute('INSERT INTO "a sale" VALUES (?, ?)', (1, secret))
        connection.commit()
        assert [*find_leaks(project, lambda: [path])] != []


def test_digits_and_bytes_elsewhere_are_no_card_code(project: Project, tmp_path: Path) -> None:
    """Three digits are a secret only in a column for card codes; bytes of its files can look like one by chance."""
    path, log = tmp_path / "shop.db", tmp_path / "shop.db-wal"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE sales (cvc TEXT, size TEXT)")
        connection.execute("INSERT INTO sales (size) VALUES ('123')")
        connection.commit()
        with log.open("ab") as file:
            file.write(b"\xff cVc\n123 \xff")
        assert [*find_leaks(project, lambda: [path, log])] == []
        connection.execute("INSERT INTO sales (cvc) VALUES ('123')")
        connection.commit()
        assert len([*find_leaks(project, lambda: [path])]) == 1
    with pytest.raises(TypeError, match="payment_traces must list strings and file paths, not 7"):
        list(find_leaks(project, lambda: [7]))  # type: ignore[list-item]
