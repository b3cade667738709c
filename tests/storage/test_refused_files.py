"""A state file that cannot be read is refused and left unchanged."""

import os
import resource
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.serving.binding import PortInUse
from payment_sandbox.storage.codec import StateRefused
from payment_sandbox.storage.sqlite import StateFile
from tests.support.driver import Sandbox, by, card
from tests.support.servers import make_server
from tests.support.state_files import with_server


def write_state_file(path: Path) -> bytes:
    """Write a state file with an order."""
    with_server(path, lambda server: Sandbox(server).place(card()))
    return path.read_bytes()


def write_other_database(path: Path) -> None:
    """Write a database of another program."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE record (id)")
    database.close()


def truncate_file(path: Path) -> None:
    """Write a truncated state file."""
    whole = write_state_file(path)
    path.write_bytes(whole[: len(whole) * 2 // 3])


def overwrite_page(path: Path) -> None:
    """Overwrite a page of a state file."""
    whole = bytearray(write_state_file(path))
    whole[4096:8192] = b"\xff" * 4096
    path.write_bytes(whole)


def write_changed(*statements: str) -> Callable[[Path], None]:
    """Return a function that writes a state file, and changes rows of it."""

    def write(path: Path) -> None:
        write_state_file(path)
        with closing(sqlite3.connect(path)) as database, database:
            assert all([database.execute(statement).rowcount for statement in statements])

    return write


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "ids without a seed": (
        write_changed("UPDATE server SET body = '{}' WHERE name = 'ids'"),
        "is damaged: server.ids",
    ),
    "ids that are a list": (
        write_changed("UPDATE server SET body = '[]' WHERE name = 'ids'"),
        "is damaged: server.ids",
    ),
    "a row that no version has written": (
        write_changed("INSERT INTO server VALUES ('pigeons', '{}')"),
        "is damaged: server",
    ),
    "a key of two projects": (
        write_changed("UPDATE project SET identity = json_set(identity, '$.key_digest', 'x')"),
        "is damaged: identity",
    ),
    "plain text": (lambda path: path.write_text("orders: all of them\n" * 50), "not a state file"),
    "a database of another program": (write_other_database, "not a state file"),
    "a later format": (
        write_changed("PRAGMA user_version = 7"),
        "its format is 7, but this server reads only up to 4",
    ),
    "a truncated file": (truncate_file, "is damaged"),
    "an overwritten page": (overwrite_page, "is damaged"),
    "a truncated record": (write_changed("UPDATE record SET body = '{' WHERE kind = 'orders'"), "is damaged"),
    "an order without a status": (
        write_changed("UPDATE record SET body = json_remove(body, '$.status', '$.id') WHERE kind = 'orders'"),
        "is damaged: state.orders[0]",
    ),
    "an empty id of a project": (
        write_changed("UPDATE project SET identity = json_set(identity, '$.project_id', '')"),
        "is damaged: identity.project_id: must not be empty",
    ),
    "records of no project": (
        write_changed("UPDATE record SET project = 99 WHERE kind = 'orders'"),
        "is damaged: 1 records belong to no project",
    ),
}


@pytest.mark.parametrize(("damage", "words"), WRONG.values(), ids=WRONG)
def test_a_file_that_cannot_be_read_is_refused_untouched(
    tmp_path: Path, damage: Callable[[Path], object], words: str
) -> None:
    """The refusal names the file in one sentence; the file is unchanged, and no other file is created."""
    state = tmp_path / "state.db"
    damage(state)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for _ in range(2):  # a refusal releases the file for the next open
        with pytest.raises(StateRefused) as refused:
            make_server(state=state)
        assert str(refused.value).startswith(str(state))
        assert words in str(refused.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_two_servers_do_not_share_a_file(tmp_path: Path) -> None:
    """The second server is refused, and the first one keeps working."""
    state = tmp_path / "state.db"
    with make_server(state=state) as server:
        with pytest.raises(StateRefused, match="in use by another server"):
            make_server(state=state)
        Sandbox(server).place(card())
    with_server(state, lambda server: None)


def test_a_file_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """A state file in a missing folder is refused."""
    with pytest.raises(StateRefused, match="cannot be used"):
        make_server(state=tmp_path / "nowhere" / "state.db")


def test_an_empty_file_is_initialized(tmp_path: Path) -> None:
    """An empty file, as ``mktemp`` creates it, is initialized."""
    state = tmp_path / "state.db"
    state.touch()
    with_server(state, lambda server: Sandbox(server).place(by("wallet-qr")))


def test_a_server_that_does_not_start_releases_the_file(tmp_path: Path) -> None:
    """A server that does not start because its port is in use releases the file."""
    state = tmp_path / "state.db"
    with make_server() as other:
        with pytest.raises(PortInUse):
            make_server(port=other.port, state=state)
        with_server(state, lambda server: None)


@pytest.mark.parametrize("kind", ["fifo", "folder"])
def test_a_path_that_is_no_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    """A FIFO or a folder is refused and left unchanged; a link is followed, not replaced."""
    place = tmp_path / kind
    os.mkfifo(place) if kind == "fifo" else place.mkdir()
    with pytest.raises(StateRefused, match="is not a regular file"):
        make_server(state=place)
    assert place.is_fifo() if kind == "fifo" else place.is_dir()
    target, link = tmp_path / "target.db", tmp_path / "link.db"
    target.touch()
    link.symlink_to(target)
    with_server(link, lambda server: None)
    assert link.is_symlink()
    assert target.stat().st_size


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("exists", [False, True], ids=["missing", "empty"])
def test_of_two_servers_that_start_at_once_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, exists: bool
) -> None:
    """Of two concurrent starts, one is refused at any moment of creation; no other file is left over."""
    state, open_file, others = tmp_path / "state.db", os.open, list[StateFile]()
    if exists:
        state.touch()

    def open_slowly(*args: Any, **options: Any) -> int:
        monkeypatch.setattr(os, "open", open_file)
        if moment == "before":
            others.append(StateFile(state))
        descriptor = open_file(*args, **options)
        if moment == "after":
            others.append(StateFile(state))
        return descriptor

    monkeypatch.setattr(os, "open", open_slowly)
    with pytest.raises(StateRefused, match="in use by another server"):
        StateFile(state)
    (owner,) = others
    owner.remove("of nobody", fixed_key="a key")
    owner.close()
    owner = StateFile(state)
    assert owner.server.deleted == ("a key",)
    owner.close()
    assert list(tmp_path.iterdir()) == [state]


def test_a_file_that_cannot_be_filled_is_refused(tmp_path: Path) -> None:
    """On a full disk the file is refused, no file is left over, and the next server creates it."""
    state = tmp_path / "state.db"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        with pytest.raises(StateRefused, match="cannot be used: "):
            StateFile(state)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir() if path.stat().st_size] == []
    with_server(state, lambda server: None)
    assert list(tmp_path.iterdir()) == [state]


def test_missing_orders_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file with missing orders is served with a warning."""
    path = tmp_path / "state.db"
    write_changed("DELETE FROM record")(path)
    with_server(path, lambda server: None)
    assert "has 0 orders, not the 1 created" in caplog.text
