"""A disk that is full while captures come due: what the answers say is true, and nothing is lost."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.attack import Report
from tests.attack.server_process import Project, run_server
from tests.support.driver import card

DISK: Final = "size=32m"
FULL_STATUS: Final = 507
UNCHANGED: Final = "nothing has changed"


def attack(report: Report) -> None:
    """Fill the disk before an advance over delayed captures, then free it and advance again."""
    with small_disk() as folder:
        if folder is None:
            report.note("a small disk needs the right to mount one", "not run")
            return
        count = report.size.count(200, 20)
        with (
            run_server("--quiet", "--state", str(folder / "state.db")) as server,
            server.project(clock="frozen") as project,
        ):
            orders = [delayed(project)["id"] for _ in range(count)]
            start = now(project)
            fill(folder)
            answer = project.call("POST", "/control/clock/advance/", {"by": "PT2H"})
            report.expect("a full disk is an answer", answer.status_code == FULL_STATUS, answer.text)
            is_unchanged = UNCHANGED in answer.text
            report.expect("the answer is true", not is_unchanged or now(project) == start, answer.text)
            (folder / "junk").unlink()
            project.expect("POST", "/control/clock/advance/", {"by": "PT3H"})
            lost = [order for order in orders if not is_captured(project, order)]
            report.expect("every capture runs later", not lost, lost)
            report.note("captures that were due on a full disk", count)


@contextmanager
def small_disk() -> Iterator[Path | None]:
    """Mount a small disk in memory; None without the right to."""
    with TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", folder]
        try:
            is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            is_mounted = False
        try:
            yield Path(folder) if is_mounted else None
        finally:
            if is_mounted:
                subprocess.run(["umount", "--lazy", folder], check=True)


def delayed(project: Project) -> Any:
    """Create an order whose capture is due in an hour, and authorize it."""
    order = project.order(card(capture_mode="delayed", expiration_period="PT1H"))
    action = {"actor": "customer", "action": "pay"}
    project.expect("POST", f"/control/orders/{order['id']}/act/", action)
    return order


def now(project: Project) -> Any:
    """Return the project's time."""
    return project.expect("GET", "/control/clock/")["now"]


def fill(folder: Path) -> None:
    """Fill the disk."""
    size = 65_536
    with (folder / "junk").open("wb", buffering=0) as junk:
        while size:
            try:
                junk.write(b"x" * size)
            except OSError:
                size //= 2


def is_captured(project: Project, order_id: str) -> bool:
    """Return whether an order is captured in full."""
    order = project.expect("GET", f"/v1/orders/{order_id}/")
    return bool(order["transactions"][0]["is_fully_captured"])
