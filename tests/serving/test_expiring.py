"""Unused projects expire if their settings say so."""

from threading import Event
from time import perf_counter

import requests

from payment_sandbox.serving.server import Server
from tests.support.driver import Sandbox


def project_ids(server: Server) -> set[str]:
    """Return the ids of all projects."""
    listed = requests.get(f"{server.url}/control/projects/").json()["items"]
    return {each["project_id"] for each in listed}


def test_a_project_that_is_not_used_is_deleted(server: Server) -> None:
    """A project is deleted once its last call is long enough ago; other projects remain."""
    permanent, unused = Sandbox(server), Sandbox(server, expires_after="PT30M", owner="CI job 7")
    used_at = unused.project_in_process.used_at_seconds
    assert unused.get("/control/clock/").status_code == 200
    assert unused.project_in_process.used_at_seconds > used_at
    for sandbox in (permanent, unused):
        sandbox.project_in_process.used_at_seconds -= 3600
    ends_at = perf_counter() + 120
    while unused.project["project_id"] in project_ids(server):
        assert perf_counter() < ends_at, "the project has not expired"
        Event().wait(0.05)
    assert unused.http.get(f"{server.url}/control/clock/", auth=(unused.key, "")).status_code == 401
    assert permanent.get("/control/clock/").status_code == 200


def test_a_very_long_time_never_ends(sandbox: Sandbox) -> None:
    """A duration beyond the calendar is accepted."""
    sandbox.settings(expires_after="P9999Y")
    assert not sandbox.project_in_process.is_over()
