"""The control API: projects, clocks, agenda, actions and scenarios."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
import requests

from payment_sandbox.serving.server import Server
from payment_sandbox.version import __version__
from tests.support.driver import START, Sandbox, by, card, details, refused, violations
from tests.support.shop import Received, Shop


def keyed(server: Server, key: str, path: str) -> requests.Response:
    """Read with a key."""
    return requests.get(server.url + path, auth=(key, ""), timeout=5)


@pytest.mark.rule("CTL-05")
def test_health_needs_no_key(server: Server) -> None:
    """Fixtures wait for it."""
    answer = requests.get(f"{server.url}/health/", timeout=5)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "version": __version__})


@pytest.mark.rule("CTL-04")
def test_a_server_starts_with_a_project(server: Server) -> None:
    """Its key is the same everywhere, so that a newcomer needs no set-up."""
    shown = keyed(server, "sandbox-key", "/control/project/").json()
    assert (shown["settings"]["mode"], shown["clock"]["mode"]) == ("test", "running")


@pytest.mark.rule("CTL-06")
def test_a_project_is_made_from_its_settings(server: Server) -> None:
    """The answer holds ids, settings and, this once, the key."""
    settings = {"mode": "live", "webhook_url": "https://shop.example/hook", "name": "Shop", "seed": 7}
    answer = requests.post(f"{server.url}/control/projects/", json=settings, timeout=5)
    made = answer.json()
    assert answer.status_code == 201
    assert {key: made["settings"][key] for key in settings} == settings
    shown = keyed(server, made["api_key"], "/control/project/").json()
    assert (shown["project_id"], shown["merchant_id"]) == (made["project_id"], made["merchant_id"])
    assert made["api_key"] not in str(shown)
    listed = requests.get(f"{server.url}/control/projects/", timeout=5)
    assert made["project_id"] in listed.text
    assert made["api_key"] not in listed.text


def test_a_project_needs_no_settings(server: Server) -> None:
    """An empty body and an empty object give the defaults."""
    bodies: list[dict[str, str] | None] = [None, {}]
    for body in bodies:
        answer = requests.post(f"{server.url}/control/projects/", timeout=5, json=body)
        assert answer.json()["settings"]["mode"] == "test"


@pytest.mark.rule("CTL-01")
def test_wrong_settings_are_refused_with_all_violations(sandbox: Sandbox) -> None:
    """On creation and on change; nothing changes."""
    wrong = {
        "mode": "demo",
        "webhook_url": "ftp://x",
        "payment_methods": ["credit-card", "cash"],
        "cards_approved": "yes",
        "aliases": {"credit-card": "wallet-qr", "a b": "wallet-qr", "ok": "cash"},
        "unknown_fields": "keep",
        "seed": -1,
        "nmae": "x",
    }
    expected = {
        "mode", "webhook_url", "payment_methods[1]", "cards_approved", "unknown_fields", "seed", "nmae",
    }  # fmt: skip
    created = violations(sandbox.post("/control/projects/", {**wrong, "clock": "stopped"}))
    assert expected | {"clock"} <= created.keys()
    assert any(path.startswith("aliases") for path in created)
    assert "did you mean 'name'?" in created["nmae"]
    before = sandbox.get("/control/project/").json()
    assert expected <= violations(sandbox.patch("/control/project/", wrong)).keys()
    assert "clock" in violations(sandbox.patch("/control/project/", {"mode": "live", "clock": "running"}))
    assert sandbox.get("/control/project/").json() == before
    assert sandbox.patch("/control/project/", []).status_code == 400


@pytest.mark.rule("CTL-07")
def test_settings_can_be_changed_one_by_one(sandbox: Sandbox) -> None:
    """The others stay; a webhook address can be taken away."""
    sandbox.settings(webhook_url="https://shop.example/", name="Shop")
    sandbox.settings(mode="live", webhook_url=None)
    settings = sandbox.get("/control/project/").json()["settings"]
    assert (settings["mode"], settings["name"], settings["webhook_url"]) == ("live", "Shop", None)


@pytest.mark.rule("CTL-07")
def test_a_deleted_projects_key_is_refused(watched: Sandbox, shop: Shop) -> None:
    """For both APIs, and its pending work is dropped."""
    shop.answer = lambda received: 500
    watched.place(by("bank-transfer"))
    watched.settle()
    assert watched.delete("/control/project/").status_code == 200
    assert watched.get("/control/project/").status_code == 401
    assert watched.create().status_code == 401


@pytest.mark.rule("CTL-08")
def test_projects_with_the_same_seed_never_see_each_other(project: Callable[..., Sandbox]) -> None:
    """Their orders have the same ids and are not the same orders; answers differ in the project only."""
    one, other = project(seed=42), project(seed=42)
    orders = [sandbox.place(card(), description=str(sandbox.key)) for sandbox in (one, other)]
    assert orders[0]["id"] == orders[1]["id"]
    one.pay(orders[0])
    assert (one.read(orders[0])["status"], other.read(orders[1])["status"]) == ("completed", "new")
    one.advance("P1D")
    assert other.now() == START


def test_same_seed_and_requests_give_the_same_bytes(project: Callable[..., Sandbox]) -> None:
    """But for the project's own identifiers, in which the addresses differ too."""

    def play(sandbox: Sandbox) -> str:
        order = sandbox.place(by("bank-redirect-nl"), customer={"country": "NL"})
        sandbox.pay(order)
        sandbox.advance("PT1H")
        sandbox.place(by("bank-transfer"))
        answer = sandbox.get(f"/v1/orders/{order['id']}/").text
        return answer.replace(sandbox.project["project_id"], "P").replace(sandbox.project["merchant_id"], "M")

    assert play(project(seed=42)) == play(project(seed=42)) != play(project(seed=43))


@pytest.mark.rule("CTL-09")
def test_a_reset_is_a_fresh_start(watched: Sandbox, shop: Shop) -> None:
    """Orders, vault, webhooks, journal, scenario, clock and identifiers are as at the start."""
    watched.scenario({"then": {"customer": "pays", "after": "PT1M"}})
    token_order = watched.pay(watched.place(details(one_click_type="first")))
    first = watched.place(card())
    watched.advance("PT1H")
    assert watched.post("/control/reset/").status_code == 200
    assert watched.get(f"/v1/orders/{first['id']}/").status_code == 404
    assert watched.now() == START
    assert watched.webhooks() == watched.agenda() == []
    assert watched.get("/control/scenario/").json()["name"] == "default"
    assert watched.get("/control/journal/?count=1").json() == {"count": 1}
    token = token_order["transactions"][0]["payment_method_details"]["vault_token"]
    used = watched.create(details(one_click_type="one-click", vault_token=token, cvc="123"))
    assert used.status_code == 400
    assert watched.get("/control/project/").json()["settings"]["webhook_url"] == shop.url


def test_a_reset_discards_late_results(watched: Sandbox, shop: Shop) -> None:
    """A webhook that was on its way does not turn up afterwards."""
    arrived, go_on = Event(), Event()

    def answer_late(received: Received) -> int:
        arrived.set()
        return 500 if go_on.wait(4) else 200

    shop.answer = answer_late
    watched.place(by("bank-transfer"))
    assert arrived.wait(4)
    watched.post("/control/reset/")
    watched.place(by("bank-transfer"))  # the same seed: the same ids as before the reset
    go_on.set()
    watched.settle()
    (delivery,) = watched.webhooks()
    assert len(delivery["attempts"]) == 1


def test_a_reset_ends_an_advance(watched: Sandbox, shop: Shop) -> None:
    """The advance answers, and the project is fresh."""
    order = watched.place(card())
    shop.answer = lambda received: watched.post("/control/reset/").status_code
    watched.advance("P1D")
    assert watched.now() == START
    assert watched.get(f"/v1/orders/{order['id']}/").status_code == 404


@pytest.mark.rule("CTL-12")
def test_a_frozen_clock_stands(sandbox: Sandbox) -> None:
    """Until it is moved; forward only."""
    assert sandbox.get("/control/clock/").json() == {"now": START, "mode": "frozen", "rate": 1.0}
    later = sandbox.patch("/control/clock/", {"now": "2026-03-02T12:00:00+01:00"}).json()
    assert later["now"] == "2026-03-02T11:00:00.000000+00:00"
    assert set(violations(sandbox.patch("/control/clock/", {"now": START}))) == {"now"}
    assert set(violations(sandbox.post("/control/clock/advance/", {"to": START}))) == {"to"}
    assert sandbox.now() == later["now"]


@pytest.mark.rule("CTL-12")
def test_putting_the_clock_forward_does_what_is_due(watched: Sandbox, shop: Shop) -> None:
    """Each at its own time, first webhook attempts included, without an advance."""
    order = watched.place(card())
    watched.patch("/control/clock/", {"now": "2026-03-01T13:00:00Z"})
    assert watched.read(order)["modified"] == "2026-03-01T12:30:00.000000+00:00"
    assert shop.orders() == [order["id"]]


@pytest.mark.rule("CTL-12")
def test_a_clock_can_run_at_a_rate(watched: Sandbox, shop: Shop) -> None:
    """A day a second and more: the expiry comes by itself, and its webhook with it."""
    delivered = Event()
    shop.tell(delivered)
    order = watched.place(card())
    running = watched.patch("/control/clock/", {"mode": "running", "rate": 86_400}).json()
    assert (running["mode"], running["rate"]) == ("running", 86_400)
    assert delivered.wait(5)
    found = watched.read(order)
    assert (found["status"], found["modified"]) == ("expired", "2026-03-01T12:30:00.000000+00:00")
    frozen = watched.patch("/control/clock/", {"mode": "frozen"}).json()
    assert frozen["now"] > "2026-03-01T12:30"
    assert watched.now() == frozen["now"]


def test_a_running_clock_can_be_advanced(project: Callable[..., Sandbox]) -> None:
    """It goes on from where the advance ended."""
    sandbox = project(clock="running")
    order = sandbox.place(card())
    assert [event["kind"] for event in sandbox.advance("PT30M")] == ["expiry"]
    assert sandbox.read(order)["status"] == "expired"
    assert sandbox.now() > sandbox.read(order)["modified"]


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, {""}),
        ({"mode": "stopped"}, {"mode"}),
        ({"mode": "running", "rate": 0}, {"rate"}),
        ({"mode": "running", "rate": "fast"}, {"rate"}),
        ({"mode": "running", "rate": True}, {"rate"}),
        ({"mode": "running", "rate": 10**7}, {"rate"}),
        ({"mode": "frozen", "rate": 2}, {"rate"}),
        ({"now": "tomorrow"}, {"now"}),
        ({"mod": "frozen"}, {"mod", ""}),
    ],
)
def test_a_wrong_change_of_clock_is_refused(sandbox: Sandbox, body: dict[str, Any], paths: set[str]) -> None:
    """By the path of what is wrong."""
    assert set(violations(sandbox.patch("/control/clock/", body))) == paths


@pytest.mark.rule("CTL-13", "CTL-17")
def test_an_advance_runs_everything_due_in_order(sandbox: Sandbox) -> None:
    """By a period; ties in the order they were put down; as the agenda had said."""
    orders = [sandbox.place(card(expiration_period=f"PT{minutes}M")) for minutes in (20, 10, 20, 30)]
    agenda = sandbox.agenda()
    assert [item["order_id"] for item in agenda] == [orders[n]["id"] for n in (1, 0, 2, 3)]
    answer = sandbox.post("/control/clock/advance/", {"by": "PT20M"}).json()
    assert (answer["from"], answer["to"]) == (START, "2026-03-01T12:20:00.000000+00:00")
    assert answer["events"] == agenda[:3]
    assert "stopped" not in answer
    assert sandbox.read(orders[1])["modified"] == "2026-03-01T12:10:00.000000+00:00"
    assert sandbox.agenda() == agenda[3:]


@pytest.mark.rule("CTL-13")
def test_an_advance_can_go_to_the_next_event_or_until_idle(sandbox: Sandbox) -> None:
    """Next runs all that is due at that time; idle runs all there is, and stays where there is none."""
    for period in ("PT10M", "PT10M", "PT20M"):
        sandbox.place(card(expiration_period=period))
    assert len(sandbox.advance(until="next")) == 2
    assert sandbox.now() == "2026-03-01T12:10:00.000000+00:00"
    assert len(sandbox.advance(until="idle")) == 1
    assert sandbox.now() == "2026-03-01T12:20:00.000000+00:00"
    for until in ("next", "idle"):
        assert sandbox.advance(until=until) == []
    assert sandbox.now() == "2026-03-01T12:20:00.000000+00:00"


def test_what_no_longer_applies_is_neither_due_nor_run(sandbox: Sandbox) -> None:
    """A paid order's expiry is gone from the agenda, and time does not stop for it."""
    sandbox.pay(sandbox.place(card()))
    assert sandbox.agenda() == sandbox.advance(until="next") == []
    assert sandbox.now() == START


@pytest.mark.rule("CTL-16")
def test_max_events_stops_an_advance(sandbox: Sandbox) -> None:
    """It says where, and the next one goes on."""
    for minutes in range(10, 15):
        sandbox.place(card(expiration_period=f"PT{minutes}M"))
    stopped = sandbox.post("/control/clock/advance/", {"by": "PT1H", "max_events": 2}).json()
    assert (stopped["stopped"], len(stopped["events"]), stopped["to"][14:16]) == (True, 2, "11")
    rest = sandbox.post("/control/clock/advance/", {"to": "2026-03-01T13:00:00Z", "max_events": 3}).json()
    assert ("stopped" in rest, len(rest["events"]), rest["to"][11:16]) == (False, 3, "13:00")


@pytest.mark.rule("CTL-15")
def test_a_second_advance_meanwhile_is_refused(watched: Sandbox, shop: Shop) -> None:
    """The first is held up by a shop that thinks; the clock cannot be put forward either."""
    arrived, go_on = Event(), Event()

    def think(received: Received) -> int:
        arrived.set()
        return 200 if go_on.wait(4) else 500

    shop.answer = think
    watched.place(card())
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(watched.advance, "PT1H")
        assert arrived.wait(4)
        second = Sandbox.__new__(Sandbox)
        second.__dict__.update(watched.__dict__, http=requests.Session())
        refused(second.post("/control/clock/advance/", {"by": "PT1H"}), 409, "ClockBusy")
        refused(second.patch("/control/clock/", {"mode": "running"}), 409, "ClockBusy")
        assert second.now() == "2026-03-01T12:30:00.000000+00:00"
        go_on.set()
        assert [event["kind"] for event in first.result()] == ["expiry", "webhook"]
        second.http.close()


@pytest.mark.parametrize(
    "body",
    [{}, {"by": "PT1M", "to": "2027-01-01T00:00:00Z"}, {"by": "-PT1M"}, {"by": 60}, {"until": "later"},
     {"by": "PT1M", "max_events": 0}, {"by": "PT1M", "steps": 1}, []],
)  # fmt: skip
def test_a_wrong_advance_is_refused(sandbox: Sandbox, body: Any) -> None:
    """And the clock stays."""
    violations(sandbox.post("/control/clock/advance/", body))
    assert sandbox.now() == START


def test_an_advance_ends_at_the_calendars_end(sandbox: Sandbox) -> None:
    """A period that leaves the calendar is no crash."""
    sandbox.place(card(expiration_period="P99999Y"))
    sandbox.advance("P99999Y")
    assert sandbox.now().startswith("9999-12-31T23:59:59")


@pytest.mark.rule("CTL-20")
def test_an_impossible_action_names_the_possible_ones(sandbox: Sandbox) -> None:
    """In a sentence and in allowed; nothing changes."""
    order = sandbox.place(card())
    error = refused(sandbox.act(order, "bank credit"), 409, "ActionNotPossible")
    assert error["allowed"] == ["visit", "pay", "cancel", "fail"]
    assert "customer pay" in error["value"]
    assert sandbox.read(order) == order
    hosted = sandbox.place()
    assert refused(sandbox.act(hosted, "customer pay"), 409, "ActionNotPossible")["allowed"] == [
        "visit",
        "choose",
    ]


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, {"actor", "action"}),
        ({"actor": "shop", "action": "pay"}, {"actor"}),
        ({"actor": "bank", "action": "pay"}, {"action"}),
        ({"actor": "customer", "action": "pay", "card": "gold", "amount": 0}, {"card", "amount"}),
        ({"actor": "customer", "action": "pay", "colour": "red"}, {"colour"}),
    ],
)
def test_a_wrong_action_is_refused(sandbox: Sandbox, body: dict[str, Any], paths: set[str]) -> None:
    """All violations at once."""
    answer = sandbox.post(f"/control/orders/{sandbox.place(card())['id']}/act/", body)
    assert set(violations(answer)) == paths


def test_a_choice_is_checked(sandbox: Sandbox) -> None:
    """A method must be named and offered, an issuer must be in the list."""
    order = sandbox.place()
    assert set(violations(sandbox.act(order, "customer choose"))) == {"payment_method"}
    answer = sandbox.act(order, "customer choose", payment_method="bank-redirect-nl", issuer_id="NOBANK")
    assert set(violations(answer)) == {"issuer_id"}
    assert sandbox.read(order) == order


@pytest.mark.rule("CTL-25")
def test_the_journal_can_be_filtered_and_counted(sandbox: Sandbox) -> None:
    """By method, path, status and order; the final slash does not matter."""
    order = sandbox.place(card())
    sandbox.read(order)
    sandbox.create(amount=0)
    items = sandbox.get("/control/journal/").json()["items"]
    assert [(item["method"], item["path"], item["status"]) for item in items] == [
        ("POST", "/v1/orders/", 201),
        ("GET", f"/v1/orders/{order['id']}/", 200),
        ("POST", "/v1/orders/", 400),
    ]
    assert items[0]["at"] == START
    assert items[0]["order_id"] == order["id"]
    assert items[0]["request"]["transactions"] == [{"payment_method": "credit-card"}]
    assert items[0]["response"] == order
    assert items[1]["request"] is None

    def count(query: str) -> int:
        found: int = sandbox.get(f"/control/journal/?count=1&{query}").json()["count"]
        return found

    assert [count("method=GET"), count("path=/v1/orders"), count("status=400")] == [1, 2, 1]
    assert count(f"order_id={order['id']}") == 2
    assert count(f"order_id={order['id']}&method=GET&path=/v1/orders/{order['id']}") == 1


def test_the_journal_names_the_rule_of_a_refusal(sandbox: Sandbox) -> None:
    """By its id in the ledger."""
    order = sandbox.place(card(capture_mode="manual"))
    sandbox.take(order, "captures")
    assert sandbox.get("/control/journal/?status=409").json()["items"][0]["rule"] == "CAP-02"


@pytest.mark.rule("CTL-19")
def test_a_scenario_can_be_read_switched_and_left(sandbox: Sandbox) -> None:
    """By name, by whole document, back to the default."""
    assert sandbox.get("/control/scenario/").json()["name"] == "default"
    document = {
        "name": "mine",
        "description": "x",
        "rules": [{"then": {"customer": "pays", "after": "PT1M"}}],
    }
    assert sandbox.put("/control/scenario/", document).json() == document
    assert sandbox.get("/control/scenario/").json() == document
    assert sandbox.put("/control/scenario/", {"name": "default"}).json()["name"] == "default"
    sandbox.put("/control/scenario/", document)
    assert sandbox.delete("/control/scenario/").json()["name"] == "default"
    assert set(violations(sandbox.put("/control/scenario/", {"name": "no-such"}))) == {"name"}


@pytest.mark.rule("SCN-02")
def test_the_first_matching_rule_decides_and_is_spent(sandbox: Sandbox) -> None:
    """Twice declined, then the next rule, then nobody acts."""
    sandbox.scenario(
        {
            "when": {"payment_method": "credit-card"},
            "times": 2,
            "then": {"customer": "fails", "after": "PT1M"},
        },
        {
            "when": {"payment_method": ["credit-card", "wallet-qr"]},
            "times": 1,
            "then": {"customer": "pays", "after": "PT1M"},
        },
    )
    orders = [sandbox.place(card()) for _ in range(4)]
    sandbox.advance("PT1M")
    assert [sandbox.read(order)["status"] for order in orders] == ["error", "error", "completed", "new"]


def test_a_refused_creation_spends_no_rule(sandbox: Sandbox) -> None:
    """The use counts only when the order is there."""
    sandbox.scenario({"times": 1, "then": {"customer": "pays", "after": "PT1M"}})
    sandbox.create(card(), amount=0)
    order = sandbox.place(card())
    sandbox.advance("PT1M")
    assert sandbox.read(order)["status"] == "completed"


@pytest.mark.rule("SCN-03")
def test_a_rule_can_name_the_attempt(sandbox: Sandbox) -> None:
    """The first attempt on an order fails, the second is paid."""
    sandbox.scenario(
        {"when": {"attempt": 1}, "then": {"customer": "fails", "after": "PT1M"}},
        {"when": {"attempt": 2}, "then": {"customer": "pays", "after": "PT1M"}},
    )
    order = sandbox.place()
    for status in ("processing", "completed"):
        sandbox.acted(order, "customer choose", payment_method="credit-card")
        sandbox.advance("PT1M")
        assert sandbox.read(order)["status"] == status


@pytest.mark.rule("SCN-04")
@pytest.mark.parametrize(
    ("when", "fields", "matches"),
    [
        ({"amount": 1000}, {"amount": 1000}, True),
        ({"amount": 1000}, {"amount": 1001}, False),
        ({"amount": {"gte": 1000, "lt": 5000}}, {"amount": 1000}, True),
        ({"amount": {"gte": 1000, "lt": 5000}}, {"amount": 5000}, False),
        ({"amount": {"gt": 1000, "lte": 5000}}, {"amount": 1000}, False),
        ({"amount": {"gt": 1000, "lte": 5000}}, {"amount": 5000}, True),
        ({"customer": {"email_address": "*@example.com", "country": "NL"}},
         {"customer": {"email_address": "jan@example.com", "country": "NL"}}, True),
        ({"customer": {"email_address": "*@example.com"}}, {"customer": {"email_address": "jan@example.org"}}, False),
        ({"customer": {"email_address": "*"}}, {}, True),
        ({"customer": {"email_address": "?*"}}, {}, False),
        ({"merchant_order_id": "retry-*"}, {"merchant_order_id": "retry-7"}, True),
        ({"merchant_order_id": "retry-*"}, {"merchant_order_id": "RETRY-7"}, False),
        ({"merchant_order_id": "retry-*"}, {}, False),
        ({"payment_method": "wallet-qr"}, {}, False),
        ({"refund": True}, {}, False),
    ],
)  # fmt: skip
def test_all_conditions_of_a_rule_must_hold(
    sandbox: Sandbox, when: dict[str, Any], fields: dict[str, Any], matches: bool
) -> None:
    """Amounts in ranges, globs on customer and merchant_order_id."""
    sandbox.scenario({"when": when, "then": {"customer": "pays", "after": "PT1M"}})
    order = sandbox.place(card(), **fields)
    sandbox.advance("PT1M")
    assert (sandbox.read(order)["status"] == "completed") == matches


def test_a_rule_can_name_a_method_by_its_alias(project: Callable[..., Sandbox]) -> None:
    """Under either name the rule matches the attempt."""
    sandbox = project(aliases={"plastic": "credit-card"})
    for name in ("plastic", "credit-card"):
        sandbox.scenario({"when": {"payment_method": name}, "then": {"customer": "pays"}})
        order = sandbox.place({"payment_method": "plastic"})
        sandbox.settle()
        assert sandbox.read(order)["status"] == "completed"


@pytest.mark.rule("SCN-05")
def test_attempts_under_way_keep_their_scenario(sandbox: Sandbox) -> None:
    """A switch decides what begins afterwards."""
    sandbox.scenario({"then": {"customer": "pays", "after": "PT10M"}})
    before = sandbox.place(card())
    sandbox.scenario({"then": {"customer": "fails", "after": "PT5M"}})
    after = sandbox.place(card())
    sandbox.advance("PT10M")
    assert [sandbox.read(order)["status"] for order in (before, after)] == ["completed", "error"]


@pytest.mark.rule("SCN-07")
def test_a_scenarios_settings_hold_while_it_is_active(sandbox: Sandbox) -> None:
    """Then the project's own hold again; a wrong one refuses the whole scenario."""
    sandbox.scenario(settings={"mode": "live"})
    assert sandbox.place(by("bank-redirect-be"))["flags"] == []
    sandbox.delete("/control/scenario/")
    assert sandbox.create(by("bank-redirect-be")).status_code == 400
    answer = sandbox.put("/control/scenario/", {"name": "x", "settings": {"mode": "demo", "colour": 1}})
    assert set(violations(answer)) == {"settings.mode", "settings.colour"}
    assert sandbox.get("/control/scenario/").json()["name"] == "default"


@pytest.mark.rule("SCN-09")
@pytest.mark.parametrize(
    ("credit", "status"),
    [
        ({"after": "P2D"}, "completed"),
        ({"after": "P2D", "amount": 999}, "processing"),
        ({"after": "P2D", "amount": 2000}, "completed"),
        ("never", "processing"),
    ],
)
def test_a_scenario_decides_a_transfer(live: Sandbox, credit: Any, status: str) -> None:
    """When the money comes, and how much of it."""
    live.scenario({"when": {"payment_method": "bank-transfer"}, "then": {"credit": credit}})
    order = live.place(by("bank-transfer"))
    live.advance("P2D")
    assert live.read(order)["status"] == status


def test_what_is_due_now_happens_without_an_advance(watched: Sandbox, shop: Shop) -> None:
    """A customer who pays at once does so when the response is out, on a frozen clock too."""
    paid = Event()
    shop.tell(paid, after=2)
    watched.scenario({"then": {"customer": "pays"}})
    order = watched.place(card())
    assert order["status"] == "new"
    assert paid.wait(5)
    assert watched.read(order)["status"] == "completed"


@pytest.mark.rule("SCN-01")
@pytest.mark.parametrize(
    ("document", "paths"),
    [
        ({}, {"name"}),
        ({"name": "Bad Name"}, {"name"}),
        ({"name": "x", "rulez": []}, {"rulez"}),
        ({"name": "x", "rules": [{"when": {}}]}, {"rules[0].then"}),
        ({"name": "x", "rules": [{"then": {}}]}, {"rules[0].then"}),
        ({"name": "x", "rules": [{"then": {"customer": "payz"}}]}, {"rules[0].then.customer"}),
        ({"name": "x", "rules": [{"then": {"custmer": "pays", "card": "frictionless"}}]}, {"rules[0].then", "rules[0].then.custmer"}),
        ({"name": "x", "rules": [{"then": {"customer": "pays"}, "when": {"payment_method": "cash"}}]},
         {"rules[0].when.payment_method"}),
        ({"name": "x", "rules": [{"then": {"customer": "pays", "after": "soon"}, "times": 0}]},
         {"rules[0].then.after", "rules[0].times"}),
        ({"name": "x", "rules": [{"then": {"customer": "pays"}, "when": {"amount": {"above": 5}}}]},
         {"rules[0].when.amount.above"}),
        ({"name": "x", "webhooks": [{"then": {"drop": True, "answer": 500}}]}, {"webhooks[0].then"}),
        ({"name": "x", "webhooks": [{"then": {"answer": 99}, "when": {"attempt": 11}}]},
         {"webhooks[0].then.answer", "webhooks[0].when.attempt"}),
        ([], {""}),
    ],
)  # fmt: skip
def test_a_wrong_scenario_is_refused_whole(sandbox: Sandbox, document: Any, paths: set[str]) -> None:
    """Every violation at its path; the active scenario stays."""
    assert set(violations(sandbox.put("/control/scenario/", document))) == paths
    assert sandbox.get("/control/scenario/").json()["name"] == "default"


def test_a_misspelled_key_gets_a_hint(sandbox: Sandbox) -> None:
    """The nearest known word is named."""
    found = violations(
        sandbox.put("/control/scenario/", {"name": "x", "rules": [{"then": {"custmer": "pays"}}]})
    )
    assert "did you mean 'customer'?" in found["rules[0].then.custmer"]


@pytest.mark.rule("CTL-28")
def test_the_description_is_served_and_valid(server: Server) -> None:
    """OpenAPI 3.1 of both APIs, with every route that there is."""
    from openapi_spec_validator import OpenAPIV31SpecValidator

    described = requests.get(f"{server.url}/openapi.json", timeout=10).json()
    assert described["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(described).validate()
    routes = {rule.rule.replace("<", "{").replace(">", "}") for rule in server.app.url_map.iter_rules()}
    assert routes - described["paths"].keys() == {"/openapi.json"}


def test_every_example_of_the_description_is_valid(sandbox: Sandbox) -> None:
    """The examples do what they show, each on an order that allows it."""
    described = sandbox.get("/openapi.json").json()
    example = described["paths"]["/v1/orders/"]["post"]["requestBody"]["content"]["application/json"][
        "example"
    ]
    order = sandbox.post("/v1/orders/", example)
    assert order.status_code == 201
    assert "Sandbox-Ignored-Fields" not in order.headers
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if "requestBody" in operation and "/transactions/" not in path:
                body = operation["requestBody"]["content"]["application/json"]["example"]
                here = path.replace("{order_id}", order.json()["id"]).replace("{qr_id}", "x")
                answer = sandbox.call(method.upper(), here, body)
                assert answer.status_code != 400, (path, answer.text)


def test_the_keys_of_an_order_are_those_of_its_description() -> None:
    """What an update takes as read-only is what the description promises, no more and no less."""
    from payment_sandbox.web.answers.records import ORDER_KEYS
    from payment_sandbox.web.merchant.shapes import OrderShape

    assert OrderShape().fields.keys() == ORDER_KEYS


def test_a_running_clock_never_makes_an_advance_find_it_busy(project: Callable[..., Sandbox]) -> None:
    """What comes due by itself and an advance get along, two hundred times."""
    sandbox = project(clock="running")
    sandbox.scenario({"then": {"customer": "pays"}})
    for _ in range(200):
        sandbox.place(card())
        sandbox.settle()
    assert {item["status"] for item in sandbox.get("/control/journal/?status=201").json()["items"]} == {201}
