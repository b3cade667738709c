"""The dashboard without scripts: pages, forms and buttons."""

from __future__ import annotations

import subprocess
from typing import Any

import requests

from tests.support.documentation import environment
from tests.support.driver import Sandbox
from tests.support.payer import HTML, Form, Page


class Dashboard:
    """A browser that follows redirects and keeps cookies."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.base = f"{sandbox.url}/dashboard/{sandbox.project['project_id']}/"
        self.http = requests.Session()
        self.http.headers.update(HTML)

    def open(self, path: str = "orders/", status: int = 200) -> Page:
        """Open a page of the project."""
        address = path if path.startswith("http") else f"{self.base}{path}"
        return self._checked(self.http.get(address), status)

    def press(self, page: Page, value: str, status: int = 200, **fields: str) -> Page:
        """Press the button with this value; the fields of its form are sent, too, with these changes.

        ``recipe=expired`` is the button with this name and value.
        """
        form, name = self.button(page, value)
        return self.send(form, {name: value.removeprefix(f"{name}="), **fields}, page, status)

    def send(self, form: Form, fields: dict[str, Any], page: Page, status: int = 200) -> Page:
        """Send a form with these fields in addition to its own."""
        headers = {"Origin": self.sandbox.url, "Referer": page.url}
        sent = {**form.fields, **fields}
        return self._checked(self.http.post(form.action, data=sent, headers=headers), status)

    def button(self, page: Page, value: str) -> tuple[Form, str]:
        """Return the form and the name of a button."""
        for form in page.forms:
            for name, known in form.buttons:
                if value in (known, f"{name}={known}"):
                    return form, name
        raise AssertionError(f"there is no button {value!r} among {[form.buttons for form in page.forms]}")

    @property
    def token(self) -> str:
        """The token of the project's forms."""
        token: str = self.open("settings/").forms[-1].fields["token"]
        return token

    def _checked(self, answer: requests.Response, status: int) -> Page:
        assert answer.status_code == status, answer.text[:2000]
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        assert self.sandbox.key not in answer.text, "no page has an API key"
        return Page(answer)


def run_in_shell(command: str, key: str | None = None) -> str:
    """Run a command that a page shows, with the key in the environment if any; return its output."""
    env = environment(**({} if key is None else {"SANDBOX_API_KEY": key}))
    program, output = ["bash", "-euc", command], subprocess.PIPE
    return subprocess.run(program, env=env, stdout=output, text=True, timeout=60, check=True).stdout
