"""A merchant's test suite in a separate process."""

import atexit
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.documentation import environment, merchants_environment, run_command
from tests.support.warm import WarmProcess

SHOP = """
import pytest
import requests
from flask import Flask, request

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "wallet-web"}]}


def place(sandbox, **more):
    answer = sandbox.session.post(f"{sandbox.base_url}/v1/orders/", json={**ORDER, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.fixture
def shop(payment_sandbox):
    app = Flask("shop")
    app.known = []

    @app.post("/webhook")
    def webhook():
        order_id = request.json["order_id"]
        order = payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/").json()
        app.known.append(order["status"])
        return "", 200

    payment_sandbox.deliver_to(app)
    return app
"""
PLUGINS: Final = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "pytest_payment_sandbox.plugin,pytest_asyncio.plugin,pytest_socket,pytest_timeout,xdist.plugin",
}
"""The environment of pytest with the plugins that a merchant's suite needs: all of them take two seconds to load."""


def suite(tmp_path: Path, tests: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run these tests as a suite in a separate process."""
    (tmp_path / "test_shop.py").write_text(SHOP + tests)
    return run_pytest(tmp_path, "-q", "-pno:cacheprovider", *options, str(tmp_path), **environment)


def run_pytest(folder: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a merchant's folder with these options.

    A plugin named by an option may replace parts of what is loaded after it: that is a process from the start.
    """
    if any(option.startswith("-p") and not option.startswith("-pno:") for option in options):
        return run_command([sys.executable, "-m", "pytest", *options], folder, **PLUGINS, **more)
    return warm_process().run(options, folder, merchants_environment(folder, **PLUGINS, **more))


@cache
def warm_process() -> WarmProcess:
    """Return the process that has loaded what a suite loads until its first test, started at first use."""
    process = WarmProcess(f"{SHOP}\n\ndef test_nothing(shop): pass\n", environment(**PLUGINS))
    atexit.register(process.stop)
    return process


def run_suite(
    tmp_path: Path, code: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Write a module of tests, and run Python in its folder with these options."""
    (tmp_path / "test_shop.py").write_text(code)
    return run_command([sys.executable, *options], tmp_path, **PLUGINS, **environment)


def passed(result: subprocess.CompletedProcess[str], count: int) -> None:
    """Assert that all tests of a suite passed."""
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-2000:]
    assert f"{count} passed" in result.stdout, result.stdout
