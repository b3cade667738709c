"""The sandbox creates its certificate authority once, and only its user can read the key."""

import os
from concurrent.futures import ProcessPoolExecutor
from errno import EPERM
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import requests

from payment_sandbox.serving import tls
from payment_sandbox.serving.config import Security
from payment_sandbox.serving.sessions import CertificateRefused
from payment_sandbox.serving.tls import create_own_context
from tests.support.servers import make_server


def test_the_authority_is_made_once(state: Path) -> None:
    """A second context uses the existing authority; only its user can read the key."""
    create_own_context([])
    before = (state / "ca.pem").read_bytes()
    create_own_context(["other.test"])
    assert (state / "ca.pem").read_bytes() == before
    assert (state / "ca-key.pem").stat().st_mode & 0o777 == 0o600


def test_a_damaged_authority_says_what_to_do(state: Path) -> None:
    """A damaged authority is not replaced silently, because browsers may trust it."""
    create_own_context([])
    (state / "ca-key.pem").write_text("damaged")
    with pytest.raises(CertificateRefused, match="delete it, and trust the new"):
        create_own_context([])


def test_servers_that_start_at_once_have_one_authority(state: Path) -> None:
    """Concurrent starts share one authority, and its certificate matches its key."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(4, mp_context=context) as processes:
        list(processes.map(create_context_in, [str(state.parent)] * 8))
    with make_server(security=Security(create_own_context([]), authority=tls.authority_file())) as server:
        assert requests.get(f"{server.url}/health/", timeout=60, verify=str(state / "ca.pem")).ok
    assert sorted(path.name for path in state.iterdir()) == ["ca-key.pem", "ca.pem"]


def test_a_volume_without_hard_links_is_enough(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Volumes without hard links, such as memory sticks, are supported."""

    def link(*args: Any, **options: Any) -> None:
        raise PermissionError(EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    create_own_context([])
    assert sorted(path.name for path in state.iterdir()) == ["ca-key.pem", "ca.pem"]
    assert (state / "ca-key.pem").stat().st_mode & 0o777 == 0o600


def test_a_volume_that_shows_the_key_to_others_gets_none(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key is written where other users could read it."""
    open_file = os.open

    def open_for_all(path: Any, flags: int, mode: int = 0o777) -> int:
        descriptor = open_file(path, flags, mode)
        if flags & os.O_CREAT:
            os.fchmod(descriptor, 0o777)
        return descriptor

    monkeypatch.setattr(os, "open", open_for_all)
    with pytest.raises(CertificateRefused, match="would let others read the key"):
        create_own_context([])
    assert list(state.iterdir()) == []


def create_context_in(state_home: str) -> None:
    """Create a certificate in a separate process."""
    os.environ["XDG_STATE_HOME"] = state_home
    create_own_context([])
