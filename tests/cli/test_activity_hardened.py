"""The activity of ``serve`` under attack: injected text, secrets, and many projects."""

import gc
import weakref
from collections.abc import Callable
from threading import Event
from typing import Any

from payment_sandbox.cli.activity import Activity, text_formatter
from payment_sandbox.serving.server import Server
from tests.cli.conftest import PrintedLines
from tests.support.driver import Sandbox, card
from tests.support.servers import make_server

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}


def test_nothing_in_a_line_breaks_it_or_controls_the_terminal(
    printing_server: Server, call: Callable[..., Any], printed: PrintedLines
) -> None:
    """Line breaks and escape codes are printed escaped, with and without a valid key."""
    evil = "/v1/%0aFAKE%1b%5b2J%c2%9b%e2%80%ae/"
    call("GET", evil)
    call("GET", evil, auth=("nobody", ""))
    Sandbox(printing_server, name="Shop\n\x1b[2Jowner").create(card())
    printed.wait_for("owner]")
    assert len(printed.text.splitlines()) == 3
    assert printed.text.replace("\n", "").isprintable()
    assert printed.text.count("\\nFAKE\\x1b[2J\\x9b\\u202e") == 2


def test_no_key_is_printed(printing_server: Server, call: Callable[..., Any], printed: PrintedLines) -> None:
    """API keys are not printed, even in a path or a header."""
    key = Sandbox(printing_server).key
    for auth in (("nobody", ""), (key, "")):
        call("GET", f"/v1/orders/{key}/", auth=auth)
    call("GET", "/v1/orders/x/", headers={"Host": key})
    lines = printed.wait_for("unknown host name")
    assert len(lines) == 3
    assert key not in printed.text


def test_deleted_projects_are_forgotten(printing_server: Server, printed: PrintedLines) -> None:
    """Deleted projects are released even if the output is blocked."""
    released = Event()
    activity = Activity(text_formatter(is_coloured=False), write=lambda data: released.wait(30) or len(data))
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
    released.set()
    activity.stop()


def test_long_lists_are_cut_and_not_spelled_out(call: Callable[..., Any], printed: PrintedLines) -> None:
    """Ten ignored fields are printed, and the number of further ones."""
    call("POST", "/v1/orders/", {**ORDER, **{f"{'x' * 100}{number}": 1 for number in range(80)}})
    (line,) = printed.wait_for("ignored")
    assert line.endswith(", and 70 more")
