"""A state file that cannot be read is refused, and not touched."""

import os
import resource
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.serving.binding import PortInUse
from payment_sandbox.storage.codec import StateRefused
from payment_sandbox.storage.sqlite import StateFile
from tests.support.driver import Sandbox, by, card
from tests.support.servers import make_server
from tests.support.state_files import with_server


def a_file(path: Path) -> bytes:
    """A file with an order in it."""
    with_server(path, lambda server: Sandbox(server).place(card()))
    return path.read_bytes()


def foreign(path: Path) -> None:
    """Some text."""
    path.write_text("orders: all of them\n" * 50)


def anothers(path: Path) -> None:
    """A database of another program's."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE record (id)")
    database.close()


def of_another_version(path: Path) -> None:
    """A later one."""
    a_file(path)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()


def cut_off(path: Path) -> None:
    """A copy that did not come whole."""
    whole = a_file(path)
    path.write_bytes(whole[: len(whole) * 2 // 3])


def overwritten(path: Path) -> None:
    """A page of it."""
    whole = bytearray(a_file(path))
    whole[4096:8192] = b"\xff" * 4096
    path.write_bytes(whole)


def _changed(path: Path, statement: str) -> None:
    a_file(path)
    with sqlite3.connect(path) as database:
        assert database.execute(statement).rowcount
    database.close()


def of_no_json(path: Path) -> None:
    """A body that is cut."""
    _changed(path, "UPDATE record SET body = '{' WHERE kind = 'orders'")


def of_no_order(path: Path) -> None:
    """An order without a status."""
    _changed(path, "UPDATE record SET body = json_remove(body, '$.status', '$.id') WHERE kind = 'orders'")


def of_no_kind(path: Path) -> None:
    """Records that nobody knows."""
    _changed(path, "UPDATE record SET kind = 'pigeons'")


def of_no_identity(path: Path) -> None:
    """A project without a name."""
    _changed(path, "UPDATE project SET identity = '{}'")


def of_an_empty_identity(path: Path) -> None:
    """A project with no id."""
    _changed(path, "UPDATE project SET identity = json_set(identity, '$.project_id', '')")


def of_nobody(path: Path) -> None:
    """Records of a project that is gone."""
    _changed(path, "UPDATE record SET project = 99 WHERE kind = 'orders'")


def of_no_clock(path: Path) -> None:
    """A clock in no mode."""
    _changed(path, "UPDATE project SET counters = json_set(counters, '$.clock_mode', 'sideways')")


def of_a_wrong_server_row(body: str) -> Callable[[Path], None]:
    """What holds for the server as a whole."""
    return lambda path: _changed(path, f"UPDATE server SET body = '{body}' WHERE name = 'ids'")


def of_an_unknown_server_row(path: Path) -> None:
    """That no version has ever written."""
    _changed(path, "INSERT INTO server VALUES ('pigeons', '{}')")


def of_wrong_deleted_keys(path: Path) -> None:
    """Numbers."""
    _changed(path, "INSERT OR REPLACE INTO server VALUES ('deleted', '[1, 2]')")


def of_a_wrong_start(path: Path) -> None:
    """A clock that starts sideways."""
    _changed(path, "UPDATE project SET identity = json_set(identity, '$.start.mode', 'sideways')")


def of_one_key_for_two(path: Path) -> None:
    """Two projects that the same key would find."""
    with_server(path, lambda server: Sandbox(server).place(card()))
    _changed(path, "UPDATE project SET identity = json_set(identity, '$.key_digest', 'x')")


WRONG = [
    *(
        (of_a_wrong_server_row(body), "is damaged: server.ids")
        for body in ("5", "{}", '{"seed": "x", "counts": {}}', '{"seed": 1, "counts": {"key": []}}', "[]")
    ),
    (of_a_wrong_server_row("{"), "is damaged"),
    (of_an_unknown_server_row, "is damaged: server"),
    (of_wrong_deleted_keys, "is damaged: server.deleted"),
    (of_a_wrong_start, "is damaged: identity.start.mode"),
    (of_one_key_for_two, "is damaged: identity"),
    (foreign, "not a state file"),
    (anothers, "not a state file"),
    (of_another_version, "its format is 7, but this server reads only up to 3"),
    (cut_off, "is damaged"),
    (overwritten, "is damaged"),
    (of_no_json, "is damaged"),
    (of_no_order, "is damaged: state.orders[0]"),
    (of_no_kind, "is damaged"),
    (of_no_identity, "is damaged"),
    (of_an_empty_identity, "is damaged: identity.project_id: must not be empty"),
    (of_nobody, "is damaged: 1 records belong to no project"),
    (of_no_clock, "is damaged: state.clock_mode"),
]


@pytest.mark.parametrize(("spoil", "says"), WRONG)
def test_a_file_that_cannot_be_read_is_refused_untouched(
    tmp_path: Path, spoil: Callable[[Path], None], says: str
) -> None:
    """With one clear sentence that names it; not a byte changes, and nothing is left beside it."""
    state = tmp_path / "state.db"
    spoil(state)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(StateRefused) as refused:
        make_server(state=state)
    assert str(refused.value).startswith(str(state))
    assert says in str(refused.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_two_servers_do_not_share_a_file(tmp_path: Path) -> None:
    """The second is told so, and the first goes on."""
    state = tmp_path / "state.db"
    with make_server(state=state) as server:
        with pytest.raises(StateRefused, match="in use by another server"):
            make_server(state=state)
        Sandbox(server).place(card())
    with_server(state, lambda server: None)


def test_a_file_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """In a folder that is not there."""
    with pytest.raises(StateRefused, match="cannot be used"):
        make_server(state=tmp_path / "nowhere" / "state.db")


def test_an_empty_file_is_a_new_one(tmp_path: Path) -> None:
    """As ``mktemp`` makes it."""
    state = tmp_path / "state.db"
    state.touch()
    with_server(state, lambda server: Sandbox(server).place(by("wallet-qr")))


def test_a_server_that_does_not_start_lets_go_of_the_file(tmp_path: Path) -> None:
    """A taken port leaves it to the next."""
    state = tmp_path / "state.db"
    with make_server() as other:
        with pytest.raises(PortInUse):
            make_server(port=other.port, state=state)
        with_server(state, lambda server: None)


@pytest.mark.parametrize("kind", ["fifo", "folder"])
def test_what_is_no_file_is_refused_untouched(tmp_path: Path, kind: str) -> None:
    """And a link is followed, not replaced."""
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


def test_a_refused_file_is_free_for_the_next_open(tmp_path: Path) -> None:
    """Its lock went with the refusal: the message is the same again, not that another server holds it."""
    state = tmp_path / "state.db"
    a_file(state)
    with sqlite3.connect(state) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()
    for _ in range(2):
        with pytest.raises(StateRefused, match="a newer version"):
            StateFile(state)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "empty"])
def test_of_two_servers_that_start_at_once_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, is_there: bool
) -> None:
    """Whenever the other one makes the file; nothing is left beside it."""
    state, open_file, others = tmp_path / "state.db", os.open, list[StateFile]()
    if is_there:
        state.touch()

    def open_slowly(*given: Any, **options: Any) -> int:
        monkeypatch.setattr(os, "open", open_file)
        if moment == "before":
            others.append(StateFile(state))
        opened = open_file(*given, **options)
        if moment == "after":
            others.append(StateFile(state))
        return opened

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
    """As on a full disk; nothing is left beside it, and the next server makes it."""
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


def test_orders_that_are_gone_are_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The file is consistent without them, so it is served, but not without a word."""
    path = tmp_path / "state.db"
    a_file(path)
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM record")
    database.close()
    with_server(path, lambda server: None)
    assert "has 0 orders, not the 1 created" in caplog.text
