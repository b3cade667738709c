"""The lines of ``serve`` under attack: injected text, secrets, and projects that come and go."""

import gc
import json
import weakref
from collections.abc import Callable
from threading import Event
from typing import Any

import requests

from payment_sandbox.cli.activity import Activity, format_json, text_formatter
from payment_sandbox.serving.server import Server
from tests.cli.conftest import Printed
from tests.support.driver import Sandbox, card
from tests.support.servers import make_server

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}


def test_nothing_in_a_line_breaks_it_or_controls_the_terminal(
    told: Server, first: Callable[..., Any], printed: Printed
) -> None:
    """Line breaks and escape codes come out as text, with a key and without one."""
    evil = "/v1/%0aFAKE%1b%5b2J%c2%9b%e2%80%ae/"
    first("GET", evil)
    first("GET", evil, auth=("nobody", ""))
    Sandbox(told, name="Shop\n\x1b[2Jowner").create(card())
    printed.until("owner]")
    assert len(printed.text.splitlines()) == 3
    assert printed.text.replace("\n", "").isprintable()
    assert printed.text.count("\\nFAKE\\x1b[2J\\x9b\\u202e") == 2


def test_no_key_is_printed(told: Server, first: Callable[..., Any], printed: Printed) -> None:
    """Also where it is in a wrong place, and the project is not known."""
    key = Sandbox(told).key
    for auth in (("nobody", ""), (key, "")):
        first("GET", f"/v1/orders/{key}/", auth=auth)
    first("GET", "/v1/orders/x/", headers={"Host": key})
    lines = printed.until("unknown host name")
    assert len(lines) == 3
    assert key not in printed.text


def test_lines_for_programs_are_json_whatever_is_masked(printed: Printed) -> None:
    """A masked value is still a value."""
    activity = Activity(format_json, write=printed.write)
    activity.start()
    with make_server(observer=activity) as server:
        for path in ("/v1/cvc:123/", "/v1/cvc%22:%22123%22/"):
            requests.get(f"{server.url}{path}", timeout=10)
        printed.until("refused")
    activity.stop()
    for line in printed.text.splitlines():
        assert json.loads(line)["status"] == 404
        assert "123" not in line


def test_deleted_projects_are_forgotten(told: Server, printed: Printed) -> None:
    """Also if nobody reads what is printed."""
    held = Event()
    activity = Activity(text_formatter(is_coloured=False), write=lambda data: held.wait(30) or len(data))
    activity.start()
    with make_server(observer=activity) as server:
        projects = []
        for _ in range(20):
            sandbox = Sandbox(server)
            sandbox.create(card())
            projects.append(weakref.ref(server.registry.find_by_id(sandbox.project["project_id"])))
            sandbox.delete("/control/project/")
            del sandbox
        server.registry.find("nobody")
        gc.collect()
        assert sum(project() is not None for project in projects) <= 1
    held.set()
    activity.stop()


def test_long_lists_are_cut_and_not_spelled_out(first: Callable[..., Any], printed: Printed) -> None:
    """Ten fields, and how many more."""
    first("POST", "/v1/orders/", {**ORDER, **{f"{'x' * 100}{number}": 1 for number in range(80)}})
    (line,) = printed.until("ignored")
    assert line.endswith(", and 70 more")
