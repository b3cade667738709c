"""The own authority is made once, and its key is for its user only."""

import os
from concurrent.futures import ProcessPoolExecutor
from errno import ENOTSUP, EPERM
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import requests

from payment_sandbox.serving import tls
from payment_sandbox.serving.config import Security
from payment_sandbox.serving.tls import CertificateRefused, create_own_context
from tests.support.servers import make_server


def test_the_authority_is_made_once(state: Path) -> None:
    """Trusting it once is enough; its key is for its user only."""
    create_own_context([])
    before = (state / "ca.pem").read_bytes()
    create_own_context(["other.test"])
    assert (state / "ca.pem").read_bytes() == before
    assert (state / "ca-key.pem").stat().st_mode & 0o777 == 0o600


def test_a_damaged_authority_says_what_to_do(state: Path) -> None:
    """It is not replaced silently: somebody trusts it."""
    create_own_context([])
    (state / "ca-key.pem").write_text("damaged")
    with pytest.raises(CertificateRefused, match="delete it, and trust the new"):
        create_own_context([])


def test_servers_that_start_at_once_have_one_authority(state: Path) -> None:
    """Whoever is first; certificate and key belong together."""
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as starting:
        list(starting.map(own_context_in, [str(state.parent)] * 8))
    with make_server(security=Security(create_own_context([]), authority=tls.authority_file())) as server:
        assert requests.get(f"{server.url}/health/", timeout=5, verify=str(state / "ca.pem")).ok
    assert sorted(path.name for path in state.iterdir()) == ["ca-key.pem", "ca.pem"]


def test_a_volume_without_hard_links_is_enough(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As memory sticks and shared folders are."""

    def link(*given: Any, **options: Any) -> None:
        raise PermissionError(EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    create_own_context([])
    assert sorted(path.name for path in state.iterdir()) == ["ca-key.pem", "ca.pem"]
    assert (state / "ca-key.pem").stat().st_mode & 0o777 == 0o600


def test_nothing_is_left_of_a_key_that_cannot_be_put_in_place(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever way the system refuses."""

    def refuse(*given: Any, **options: Any) -> None:
        raise OSError(ENOTSUP, "Operation not supported")

    for name in ("link", "rename", "replace"):
        monkeypatch.setattr(os, name, refuse)
    with pytest.raises(CertificateRefused, match="operation not supported"):
        create_own_context([])
    assert list(state.iterdir()) == []


def test_a_volume_that_shows_the_key_to_others_gets_none(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even for a moment."""
    open_file = os.open

    def open_for_all(path: Any, flags: int, mode: int = 0o777) -> int:
        opened = open_file(path, flags, mode)
        if flags & os.O_CREAT:
            os.fchmod(opened, 0o777)
        return opened

    monkeypatch.setattr(os, "open", open_for_all)
    with pytest.raises(CertificateRefused, match="would let others read the key"):
        create_own_context([])
    assert list(state.iterdir()) == []


def test_a_left_part_of_a_killed_server_does_not_show_the_key(state: Path) -> None:
    """A new key is never written into a file that is there."""
    state.mkdir(parents=True)
    part = state / f".ca-key.pem.{os.getpid()}"
    part.write_text("")
    part.chmod(0o644)
    create_own_context([])
    assert (state / "ca-key.pem").stat().st_mode & 0o777 == 0o600


def own_context_in(state_home: str) -> None:
    """Make a certificate in a process of its own."""
    os.environ["XDG_STATE_HOME"] = state_home
    create_own_context([])
