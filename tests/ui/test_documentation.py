"""The documentation is also available to programs, as Markdown with an index of all pages."""

import re

import pytest
import requests

from payment_sandbox.serving.server import Server
from payment_sandbox.ui.docs.library import MENU_NAMES, PAGE_NAMES, title


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_every_page_is_markdown_too(server: Server, name: str) -> None:
    """Each page is Markdown under ``.md`` and for ``Accept: text/markdown``; browsers get HTML."""
    shown = requests.get(f"{server.url}/docs/{name}.md")
    assert shown.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert shown.text.startswith(f"# {title(name)}\n")
    assert not re.search(r"^{{ [a-z-]+ }}$", shown.text, re.MULTILINE)
    accepted = requests.get(f"{server.url}/docs/{name}/", headers={"Accept": "text/markdown"})
    assert accepted.text == shown.text
    for accept in ("text/html,application/xhtml+xml,*/*;q=0.8", "*/*"):
        page = requests.get(f"{server.url}/docs/{name}/", headers={"Accept": accept})
        assert (page.headers["Content-Type"], page.headers["Vary"]) == ("text/html; charset=utf-8", "Accept")


def test_a_list_of_all_pages(server: Server) -> None:
    """The index has each page of the menu with a summary, and begins with five pages of less than 60 kB."""
    listed = requests.get(f"{server.url}/llms.txt")
    assert listed.headers["Content-Type"].startswith("text/plain")
    lines = re.findall(r"^- \[(.+)\]\((.+)\): (.+)$", listed.text, re.MULTILINE)
    assert [address for _, address, _ in lines] == [f"{server.url}/docs/{name}.md" for name in MENU_NAMES]
    assert all(about[0].isupper() or about[0] == "`" for _, _, about in lines), lines
    assert all(about.endswith(".") and "](" not in about and "{{" not in about for _, _, about in lines)
    assert requests.get(lines[-1][1]).status_code == 200
    begin, _, _ = listed.text.partition("\n## Ways to pay\n")
    assert "## Read these five pages" in begin
    addresses = re.findall(r"\((http[^)]+)\): ", begin)
    assert len(addresses) == 5
    assert sum(len(requests.get(address).content) for address in addresses) < 60_000
    assert len(begin) < 2000
