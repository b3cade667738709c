"""The documentation is complete: these tests name whatever is missing."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from werkzeug.test import Client

import payment_sandbox.ui.pages
from payment_sandbox.cli.main import commands
from payment_sandbox.forms import Form
from payment_sandbox.forms.schemas import json_schema
from payment_sandbox.operations.choose_scenario import file_schema
from payment_sandbox.orders.cards import CARDS
from payment_sandbox.orders.refusals import Refusal
from payment_sandbox.projects.default_scenario import default_document
from payment_sandbox.serving.app import make_app
from payment_sandbox.serving.server import Server
from payment_sandbox.ui.dashboard.frame import VIEW_TITLES
from payment_sandbox.ui.docs.library import PAGE_NAMES, read_source
from payment_sandbox.ui.docs.sections import WORDS_MAX, search
from payment_sandbox.web.error_bodies import TYPE_BY_REFUSAL, TYPE_BY_STATUS
from payment_sandbox.web.routes import described_routes
from tests.documentation.flows import FLOWS
from tests.support.documentation import written_text
from tests.support.driver import Sandbox
from tests.support.projects import made_registry
from tests.support.servers import make_server

DESCRIPTION = "/openapi.json"  # the source of the lists
APP = make_app(made_registry(), public_url="http://sandbox.example")
FACTS = [facts for _, facts in described_routes(APP.parts())]


@pytest.fixture(scope="module")
def all_pages() -> str:
    """The text of every page, with the parts generated from the code."""
    return "\n".join(map(read_source, PAGE_NAMES))


@pytest.fixture(scope="module")
def written_pages() -> str:
    """The text of every page, without the parts generated from the code."""
    return "\n".join(map(written_text, PAGE_NAMES))


def test_every_route_is_mentioned(server: Server, all_pages: str) -> None:
    """Each route is mentioned with its method, except for the pages of the dashboard."""
    missing = []
    for rule, _ in described_routes(server.app.parts()):
        if rule.endpoint.startswith("dashboard."):
            continue
        path = re.sub(r"<([a-z_]+)>", r"{\1}", rule.rule)
        for method in (rule.methods or set()) - {"HEAD"}:
            if rule.rule != DESCRIPTION and f"### {method} {path}\n" not in all_pages:
                missing.append(f"{method} {path}")
    assert missing == []


def test_every_view_of_the_dashboard_is_explained_by_hand() -> None:
    """Each view is explained under its menu title, as a heading or in bold."""
    page = read_source("dashboard")
    missing = [
        name for name in VIEW_TITLES.values() if f"**{name}**" not in page and f"\n## {name}\n" not in page
    ]
    assert missing == []


def _stem(path: str) -> str:
    return re.sub(r"<[^>]*>", "<>", path)


def parameters(command: click.Command) -> Iterator[str]:
    """Yield the long names of the options of a command and its subcommands."""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield max(parameter.opts, key=len)
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            yield from parameters(subcommand)


def test_every_command_and_option_is_mentioned() -> None:
    """The page of the command line mentions each command and option."""
    text = read_source("reference")
    commands.add_remote_commands()
    assert [name for name in commands.commands if f"`{name}" not in text and f"## {name}" not in text] == []
    assert [name for name in sorted(set(parameters(commands))) if f"`{name}" not in text] == []


def subclasses_of(kind: type[Refusal]) -> Iterator[type[Refusal]]:
    """Yield all subclasses of a refusal, at every level."""
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses_of(subclass)


def test_every_refusal_is_mentioned(all_pages: str, written_pages: str) -> None:
    """Each is in the list of types, and those that belong to a payment flow are also in its guide."""
    refusals = {kind for kind in subclasses_of(Refusal) if kind.__module__.startswith("payment_sandbox.")}
    types = {TYPE_BY_REFUSAL.get(kind, kind.__name__) for kind in refusals}
    named = types | set(TYPE_BY_STATUS.values()) | {"ValidationError"}
    assert [name for name in sorted(named) if f"| `{name}` |" not in all_pages] == []
    own_pages = types - set(TYPE_BY_REFUSAL.values())
    assert [
        name
        for name in sorted(own_pages)
        if f"`{name}`" not in written_pages and f'"{name}"' not in written_pages
    ] == []


@pytest.mark.parametrize(
    "form",
    [facts.reads for facts in FACTS if facts.reads is not None],
)
def test_every_field_has_a_description(form: type[Form]) -> None:
    """Each field has a description in the API description."""
    schema = json_schema(form, {})
    missing = [
        f"{part}.{name}"
        for part, definition in {"": schema, **schema["$defs"]}.items()
        for name, item in definition.get("properties", {}).items()
        if not item.get("description")
    ]
    assert missing == []


def test_every_key_of_a_scenario_has_a_description() -> None:
    """Each key has a description in the schema that editors read."""
    schema = file_schema()
    missing = [
        f"{part}.{name}"
        for part, definition in {"": schema, **schema["$defs"]}.items()
        for name, item in definition["properties"].items()
        if not item.get("description")
    ]
    assert missing == []


def test_every_trigger_value_is_documented(all_pages: str) -> None:
    """The pages name the customers, amounts and cards of the default scenario, and no others."""
    customers = {
        rule["when"]["customer"]["email_address"].removesuffix("@*")
        for rule in default_document()["rules"]
        if "customer" in rule["when"]
    }
    amounts = {rule["when"]["amount"] for rule in default_document()["rules"] if "amount" in rule["when"]}
    assert set(re.findall(r"customer `([a-z-]+)@\.\.\.`", all_pages)) == customers
    assert {int(number) for number in re.findall(r"amount `(\d+)`", all_pages)} == amounts
    assert [name for name in CARDS if f"| `{name}` |" not in all_pages] == []


def test_no_page_contains_a_card_number(all_pages: str) -> None:
    """Full card numbers appear nowhere."""
    assert [card.name for card in CARDS.values() if card.number in all_pages] == []


def test_every_link_leads_somewhere(sandbox: Sandbox) -> None:
    """Each link leads to an existing page and to an existing heading."""
    pages: dict[str, str] = {}
    for name in PAGE_NAMES:
        response = sandbox.http.get(f"{sandbox.url}/docs/{name}/")
        assert response.status_code == 200
        pages[f"/docs/{name}/"] = response.text
    broken = []
    for path, text in pages.items():
        for link in re.findall(r'href="([^"]+)"', text):
            address, _, anchor = link.partition("#")
            if address in ("/docs/", "/dashboard/") or address.startswith("/docs/assets/"):
                continue
            if address == "/dashboard/assets/icon.svg":
                assert sandbox.http.get(f"{sandbox.url}{address}").status_code == 200
                continue
            target = pages.get(address or path)
            if target is None or (anchor and f'id="{anchor}"' not in target):
                broken.append(f"{path}: {link}")
    assert broken == []


def test_pages_hold_no_markup_of_their_source(sandbox: Sandbox) -> None:
    """Generated parts are filled in, and headings, tables and links are rendered."""
    for name in PAGE_NAMES:
        text = sandbox.http.get(f"{sandbox.url}/docs/{name}/").text
        prose = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", text, flags=re.DOTALL)
        assert not re.search(r"(?<!\$)\{\{|\]\(|^#|\|---", prose, re.MULTILINE), name


def test_an_unknown_page(sandbox: Sandbox) -> None:
    """The error lists the pages that exist."""
    response = sandbox.http.get(f"{sandbox.url}/docs/nothing/")
    error: dict[str, Any] = response.json()["error"]
    assert (response.status_code, error["allowed"]) == (404, list(PAGE_NAMES))


def test_browsers_begin_at_the_root(sandbox: Sandbox) -> None:
    """A browser is redirected to the dashboard, and a program gets links."""
    browser = sandbox.http.get(f"{sandbox.url}/", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (browser.status_code, "/dashboard/" in browser.url) == (200, True)
    assert 'href="/docs/"' in browser.text, "the dashboard has no link to the documentation"
    program = sandbox.http.get(f"{sandbox.url}/")
    assert (program.status_code, program.json()["documentation"]) == (200, f"{sandbox.url}/docs/")


def test_commands_name_the_server_that_serves_them() -> None:
    """Commands contain the public address, also behind a proxy and under a path."""
    with make_server(public_url="http://pay.test:8443/sandbox") as server:
        client = Client(server.app)
        text = client.get("/docs/quick-start/").text
        assert "API=http://pay.test:8443/sandbox" in re.sub("<[^>]*>", "", text)
        assert 'href="/sandbox/docs/webhooks/"' in text
        assert 'href="/sandbox/docs/assets/docs.css"' in text


def test_every_test_id_is_documented() -> None:
    """Each test id is documented, because merchants' browser tests rely on it."""
    folder = Path(payment_sandbox.ui.pages.__file__).parent / "templates"
    documented = read_source("hosted-page")
    test_ids = {
        test_id
        for path in folder.glob("*.html")
        for test_id in re.findall(r'data-testid="([^"]*)"', path.read_text())
    }
    assert len(test_ids) > 40
    for test_id in test_ids:
        fixed = test_id.partition("{{")[0].strip()
        assert not fixed or f"`{fixed}" in documented, test_id


def test_every_flow_is_drawn_under_its_title(sandbox: Sandbox, written_pages: str) -> None:
    """Each flow is drawn on a page, under its own title."""
    names_by_title = dict(re.findall(r"!\[([^\]]+)\]\(flows/([a-z-]+)\.svg\)", written_pages))
    assert {name: title for title, name in names_by_title.items()} == {
        name: flow.title for name, flow in FLOWS.items()
    }
    for name, flow in FLOWS.items():
        drawn = sandbox.http.get(f"{sandbox.url}/docs/flows/{name}.svg")
        assert drawn.headers["Content-Type"].startswith("image/svg+xml")
        assert flow.title in drawn.text
        assert "webhook, attempt 1" in drawn.text
        assert ">completed<" in drawn.text
    assert sandbox.http.get(f"{sandbox.url}/docs/flows/nothing.svg").status_code == 404


def test_search_finds_sections(sandbox: Sandbox) -> None:
    """The results are the sections with the words, those with the words in title or heading first, with links."""
    page = sandbox.http.get(f"{sandbox.url}/docs/search/?q=inspect+project").text
    assert 'href="/docs/reference/#inspect-a-project"' in page
    first = re.search(
        r'<ol class="found">\s*<li><a href="([^"]+)"',
        sandbox.http.get(f"{sandbox.url}/docs/search/?q=bank+QR").text,
    )
    assert first is not None
    assert first[1].startswith("/docs/bank-transfer/")
    assert "/docs/webhooks/" in sandbox.http.get(f"{sandbox.url}/docs/search/?q=retry+webhook").text
    for words in ("nothingatall", "<script>", "x" * 500):
        text = sandbox.http.get(f"{sandbox.url}/docs/search/", params={"q": words}).text
        assert "No section contains most" in text
        assert "<script>alert" not in text
    assert "Enter words" in sandbox.http.get(f"{sandbox.url}/docs/search/").text


def test_search_reads_a_limited_number_of_words() -> None:
    """Only the first words count, because all pages are read for each."""
    known = (
        "order status amount webhook refund customer page payment bank card scenario clock key project server "
        "test method capture void retry"
    )
    assert len(known.split()) == WORDS_MAX
    assert search(known + "".join(f" nothing{number}" for number in range(500))) == search(known) != []


@pytest.mark.parametrize("path", ["/no-such-page/", "/pay/", "/docs/x/y/"])
def test_browsers_get_a_page_for_an_unknown_path(sandbox: Sandbox, path: str) -> None:
    """A browser gets a page with links, and a program gets the error."""
    html = {"Accept": "text/html,*/*;q=0.8"}
    page = sandbox.http.get(f"{sandbox.url}{path}", headers=html)
    assert (page.status_code, "Page not found" in page.text) == (404, True)
    assert "/dashboard/" in page.text
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert sandbox.http.get(f"{sandbox.url}{path}").json()["error"]["status"] == 404
    for api in ("/v1/nothing/", "/control/nothing/"):
        response = sandbox.http.get(f"{sandbox.url}{api}", headers=html)
        assert response.headers["Content-Type"] == "application/json"
