"""The common parts of all dashboard pages: access, headers and page frame."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from flask import Response, current_app, render_template

from payment_sandbox.judge.standing import format_moment_of_day
from payment_sandbox.kernel.patterns import FORBIDDEN_CHARACTER, UUID
from payment_sandbox.kernel.times import describe_period
from payment_sandbox.operations.agenda import applies, event
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.refusals import Invalid, Refusal, Unknown
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.sentences import fault_in_words
from payment_sandbox.ui.dashboard.notices import (
    NOTICE_PARAMETER,
    format_optional_euros,
    notice_for,
    refusal_notice,
    with_notice,
    without_notice,
)
from payment_sandbox.ui.dashboard.reviewing import current_review
from payment_sandbox.ui.dashboard.signing_in import (
    FOREIGN_FORM,
    OLD_FORM,
    OTHER_FORM,
    form_problem,
    form_token,
    is_open,
    may_see,
    visible_projects,
)
from payment_sandbox.ui.templates import asset_answer
from payment_sandbox.web.answers.page_urls import base_path
from payment_sandbox.web.auth import redirect_without_secrets, refuse_cross_site
from payment_sandbox.web.bodies import BODY_BYTES_MAX, STATE_BYTES_MAX, body_length
from payment_sandbox.web.browsers import HTML, PAGE_HEADERS, csp_headers, is_browser, redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.releasing import release_webhooks
from payment_sandbox.web.routes import stated

PATH_MARKS: Final = frozenset("[._")  # characters that indicate a field path rather than a word
WRONG_FORMS: Final = (OLD_FORM, OTHER_FORM, FOREIGN_FORM)
INVALID_QUERY_REMARKS: Final = {
    "before": "The requested page of the list no longer exists; this is the first page.",
    "show": "This filter does not exist; the list shows everything.",
}
AGENDA_SHOWN_MAX: Final = 5
MENU_MAX: Final = 12
REFRESH_MS_MIN: Final = 300
REFRESH_MS_MAX: Final = 10_000
REFRESH_MS_PER_WATCHER: Final = 25
REFRESH_PER_TIME_TAKEN: Final = 20
LOAD_PARTS: Final = 4
"""The open pages of a project keep a processor busy for at most one of these parts of the time."""
SNAPSHOT_FORM: Final = "dashboard.post_snapshot"
HEADERS: Final = {**PAGE_HEADERS, **csp_headers("'self'")}
VIEW_FACTS: Final[Mapping[str, Any]] = {
    "group": "dashboard",
    "media_type": "text/html",
    "errors": (403, 404),
    "without_body": (303,),
}
FORM_FACTS: Final[Mapping[str, Any]] = {
    "group": "dashboard",
    "media_type": "text/html",
    "errors": (400, 403, 404, 409),
    "status": 303,
}
VIEW_TITLES: Final = {
    "orders": "Orders",
    "requests": "Requests",
    "mistakes": "Mistakes",
    "simulate": "Simulate",
    "settings": "Settings",
}


class SignInRequired(Exception):
    """The project requires a sign-in."""


def format_clock(at: datetime | str) -> str:
    """Format a time to the second."""
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return f"{moment.day} {moment:%b %Y %H:%M:%S}"


def format_day(at: str) -> str:
    """Format the day of a time, with the weekday."""
    moment = datetime.fromisoformat(at)
    return f"{moment:%A} {moment.day} {moment:%B %Y}"


def format_moment_text(at: str, now: datetime) -> str:
    """Format the time of day of an event, with the day unless it is today."""
    return format_moment_of_day(datetime.fromisoformat(at), now)


def capitalize_sentence(text: str) -> str:
    """Capitalize the first word of a text, unless it is the path of a field."""
    first = text.partition(" ")[0]
    return text if PATH_MARKS.intersection(first) else f"{text[:1].upper()}{text[1:]}"


def shorten_ids(path: str) -> str:
    """Shorten the ids in a path to their first characters."""
    return UUID.sub(r"\1…", path)


def format_evidence(line: str) -> str:
    """Format a call or an attempt in a finding, without fractions of seconds and with short ids."""
    at, _, what = line.partition("  ")
    return f"{format_clock(at)}  {shorten_ids(what).replace(' -> ', ' → ')}" if what else shorten_ids(line)


FILTERS: Final[Mapping[str, Callable[..., str]]] = {
    "euros": format_optional_euros,
    "clock": format_clock,
    "day": format_day,
    "moment_of_day": format_moment_text,
    "sentence": capitalize_sentence,
    "short": shorten_ids,
    "evidence": format_evidence,
}


def find_project(call: Call) -> Project:
    """Find the project of a page.

    Raises:
        SignInRequired: the browser has not signed in.
        Unknown: there is no such project.
    """
    project = call.site.registry.find_by_id(call.values["project_id"])
    if project is None or not may_see(call, project):
        if is_open(call):
            raise Unknown("there is no such project")
        raise SignInRequired
    return project


def enter(call: Call, project_id: str, *, catches_up: bool = True) -> Project:
    """Find the project of a page, and run its due events.

    Raises:
        SignInRequired: the browser has not signed in.
        Unknown: there is no such project.
        RequestRefused: 403, the form does not belong to the project; 400, the form has invalid characters.
    """
    project = find_project(call)
    if call.request.method == "POST":
        refuse_wrong_form(call, project_id)
    project.note_use()
    call.project = project  # from here on, the project's page shows what is refused
    call.real_at = project.services.real.wall_now()
    if catches_up:
        call.catch_up()
    return project


def refuse_wrong_form(call: Call, project_id: str) -> None:
    """Refuse a form with the token of another project or page, or with invalid characters.

    Raises:
        RequestRefused: 403 or 400.
    """
    problem = form_problem(call, project_id)
    if problem:
        raise RequestRefused(403, problem)
    for values in call.request.form.listvalues():
        if any(FORBIDDEN_CHARACTER.search(value) for value in values):
            raise RequestRefused(400, "the form has a lone surrogate or a NUL character")


def order_name(project: Project, order_id: str | None) -> str:
    """Return the display name of an order: the shop's number, masked, or the first characters of its id."""
    order = project.epoch.store.order(order_id or "")
    if order is not None and order.refund_of_order_id is not None:
        return f"Refund {euros(order.amount_cents)} of {order_name(project, order.refund_of_order_id)}"
    number = order.merchant_order_id if order is not None else None
    return project.masking.mask_text(number) if number else (order_id or "")[:8]


def url(project: Project, path: str = "", **query: str | None) -> str:
    """Build the path of a page of a project."""
    given = {name: value for name, value in query.items() if value}
    base = base_path(project)
    return f"{base}/dashboard/{project.project_id}/{path}{'?' if given else ''}{urlencode(given)}"


def show(
    call: Call, template: str, project: Project, view: str, status: int = 200, /, **more: object
) -> Response:
    """Render a page of a project in the frame."""
    known, epoch = current_review(project), project.epoch
    due = (due for due in epoch.timeline.in_order() if applies(epoch, due))
    took = project.services.real.wall_now() - call.real_at if call.real_at is not None else timedelta()
    took_ms, watchers = took / timedelta(milliseconds=1), project.events.watchers
    by_time = max(REFRESH_PER_TIME_TAKEN, LOAD_PARTS * watchers) * took_ms
    offset = project.now() - project.services.real.wall_now()
    # only the newest projects, because test suites create thousands
    others = (other for other in reversed(visible_projects(call)) if other is not project)
    body = render_template(
        f"dashboard/{template}.html",
        project=project,
        projects=[project, *islice(others, MENU_MAX)],
        url=lambda path="", **query: url(project, path, **query),
        order_name=lambda order_id: order_name(project, order_id),
        view=view,
        views=VIEW_TITLES,
        token=form_token(call, project.project_id),
        is_open=is_open(call),
        state=project.epoch.state,
        settings=project.settings,
        now=project.now(),
        tomorrow=project.now() + timedelta(days=1),
        agenda=[event(entry) for entry in islice(due, AGENDA_SHOWN_MAX)],
        counts={"mistakes": len(known.mistakes)},
        ahead=f"{describe_period(abs(offset))} {'ahead' if offset > timedelta() else 'behind'}"
        if abs(offset) >= timedelta(minutes=1)
        else "",
        events_so_far=project.epoch.advance_log,
        active_faults=project.epoch.state.faults.active_count,
        notice=notice_for(project, call.request.args.get(NOTICE_PARAMETER)),
        current_page=without_notice(call.request.full_path.rstrip("?")),
        refresh_ms=min(
            REFRESH_MS_MAX, max(REFRESH_MS_MIN, REFRESH_MS_PER_WATCHER * watchers, round(by_time))
        ),
        event=project.events.number,
        **more,
    )
    return Response(body, status=status, content_type=HTML)


def form_page(call: Call) -> str:
    """Return the address of the page that a form came from; empty if the form does not contain it."""
    return own_path(call, call.request.form.get("back", ""))


def valid_query(args: Mapping[str, str], **is_known: Callable[[str], object]) -> tuple[dict[str, str], str]:
    """Return a list's query with invalid values removed, and a remark about them."""
    wrong = [name for name, knows in is_known.items() if args.get(name) and not knows(args[name])]
    valid = {name: value for name, value in args.items() if value and name not in wrong}
    return valid, " ".join(INVALID_QUERY_REMARKS[name] for name in wrong if name in INVALID_QUERY_REMARKS)


def own_path(call: Call, address: str) -> str:
    """Return the address of a dashboard page, or an empty string for any other, to prevent open redirects."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    if not address.isprintable():
        return ""
    is_own = (
        not parts.scheme and not parts.netloc and parts.path.startswith(f"{call.site.base_path}/dashboard/")
    )
    return address if is_own and "\\" not in address else ""


def answer_error(call: Call, error: Exception) -> Response:
    """Answer refusals with a page for browsers and with JSON for other clients, or with the sign-in page."""
    if isinstance(error, SignInRequired):
        home, is_page = f"{call.site.base_path}/dashboard/", call.request.method == "GET"
        requested = call.request.full_path.rstrip("?") if is_page else home
        return redirect(f"{home}sign-in/?{urlencode({'next': requested})}")
    answer = answer_for(call, error)
    if not isinstance(error, Refusal | Invalid | RequestRefused) or not is_browser(call.request):
        return answer
    shown, project, back = answer.get_json()["error"], call.owner, form_page(call)
    if call.request.method == "POST" and project is not None and back:  # the form shows input and reason
        return redirect(with_notice(project, back, refusal_notice(project, shown, call.request.form)))
    details = {
        "error": shown,
        "is_wrong_form": shown["value"] in WRONG_FORMS,
        "back": call.request.referrer or f"{call.site.base_path}/dashboard/",
    }
    if project is not None and call.request.method == "GET":
        return show(call, "dashboard_refused", project, "", answer.status_code, **details)
    body = render_template("dashboard/dashboard_refused.html", **details)
    return Response(body, status=answer.status_code, content_type=HTML)


def admit_call(call: Call) -> Response | None:
    """Refuse calls from other sites' pages and large forms; redirect without secrets.

    Raises:
        RequestRefused: 403 or 413.
    """
    environment = current_app.jinja_env
    if "euros" not in environment.filters:
        environment.filters.update(FILTERS)
        environment.globals["fault_name"] = fault_in_words
    refuse_cross_site(call)
    redirected = redirect_without_secrets(call)
    # a longer form would be parsed incompletely
    bytes_max = STATE_BYTES_MAX if call.request.endpoint == SNAPSHOT_FORM else BODY_BYTES_MAX
    if redirected is None and body_length(call.request) > bytes_max:
        raise RequestRefused(413, f"a form must not exceed {bytes_max} bytes")
    return redirected


def finish_call(call: Call, response: Response) -> Response:
    """Release the webhooks of an action, and add the headers."""
    response = release_webhooks(call, response)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


@stated(group="dashboard", media_type="text/css", errors=(404,))
def get_asset(call: Call, name: str) -> Response:
    """Get a stylesheet, a script or an icon."""
    return asset_answer("dashboard", ("dashboard.css", "dashboard.js", "icon.svg"), name)
