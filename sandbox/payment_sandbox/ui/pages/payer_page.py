"""The payer's current page: its order, attempt and language, and the next page."""

import hmac
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit, urlunsplit

from flask import Response, render_template, url_for
from werkzeug.urls import iri_to_uri

from payment_sandbox.methods import METHODS_BY_NAME, behaviour_of
from payment_sandbox.methods.messages import translate_reason
from payment_sandbox.operations.act import METHOD_CHANGED
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.journal import RETURN, VIA_PAGE, VISIT
from payment_sandbox.projects.project import Project
from payment_sandbox.ui.pages import language
from payment_sandbox.ui.pages.language import Language
from payment_sandbox.web.answers.page_urls import dashboard_path
from payment_sandbox.web.browsers import HTML, redirect
from payment_sandbox.web.call import Call

LANGUAGE_COOKIE: Final = "payment_language"
TOKEN_FIELD: Final = "token"
INVOICE: Final = "invoice"  # a kind of page that stays after acceptance and explains the next steps


class PayerPage(NamedTuple):
    """The requested page, with its project, order, attempt and language."""

    call: Call
    project: Project
    order: Order
    attempt: Transaction | None
    language: Language

    def reload(self) -> "PayerPage":
        """Return the same page with the current order and attempt."""
        order = self.project.find_order(self.order.id)
        attempt = order.transaction(self.attempt.id) if self.attempt is not None else None
        return self._replace(order=order, attempt=attempt)

    @property
    def merchant(self) -> str:
        """The name of the merchant."""
        return self.project.settings.name or self.language.say("the_shop")

    @property
    def method_label(self) -> str:
        """The name of the attempt's payment method."""
        assert self.attempt is not None, "only the page of an attempt has a method"
        return self.language.label(METHODS_BY_NAME[self.attempt.method].capabilities.labels)

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the currently possible actions on the attempt."""
        if self.attempt is None:
            return ()
        terms = self.project.epoch.terms(self.project.now())
        return tuple(behaviour_of(self.attempt).actions(self.attempt, terms))

    @property
    def has_attempt_ended(self) -> bool:
        """Whether the attempt has ended, so that its page only redirects."""
        if self.attempt is None or self.attempt.is_open:
            return False
        is_invoice = METHODS_BY_NAME[self.attempt.method].capabilities.page == INVOICE
        return not (is_invoice and self.attempt.status == TransactionStatus.ACCEPTED)

    @property
    def can_choose_method(self) -> bool:
        """Whether the payer can still choose another method (SET-18)."""
        return self.order.is_hosted and self.order.is_open

    @property
    def token(self) -> str:
        """The anti-forgery token of this page's forms."""
        scope = f"{self.project.project_id}/{self.order.id}/{self.attempt.id if self.attempt else ''}"
        return hmac.new(self.call.site.forgery_secret, scope.encode(), "sha256").hexdigest()

    def is_own_post(self) -> bool:
        """Whether the post has this page's token."""
        return hmac.compare_digest(self.call.request.form.get(TOKEN_FIELD, "").encode(), self.token.encode())

    def url(self, endpoint: str, **more: Any) -> str:
        """Return the URL of one of this order's pages."""
        ids: dict[str, Any] = {"project_id": self.project.project_id, "order_id": self.order.id}
        if self.attempt is not None and endpoint not in ("get_order_page", "get_result", "get_back"):
            ids["transaction_id"] = self.attempt.id
        return url_for(f"pages.{endpoint}", **ids, **more)

    @property
    def shop_url(self) -> str | None:
        """The merchant's URL for the customer with order_id and project_id (FLOW-14, FLOW-15), or None."""
        if self.order.landing_url is None:
            return None
        parts = urlsplit(self.order.landing_url)
        added = urlencode({"order_id": self.order.id, "project_id": self.project.project_id})
        query = f"{parts.query}&{added}" if parts.query else added
        return iri_to_uri(urlunsplit(parts._replace(query=query)))

    @property
    def back_url(self) -> str | None:
        """The link back to the shop, through a page of the sandbox that records the return."""
        return self.url("get_back") if self.order.landing_url is not None else None

    @property
    def state(self) -> int:
        """A number that grows with each change of the order and each attempt to deliver its webhooks."""
        webhooks = self.project.epoch.store.deliveries_of(self.order.id)
        return self.order.version + sum(len(webhook.attempts) for webhook in webhooks)

    @property
    def dashboard_url(self) -> str:
        """The URL of the order on the dashboard."""
        return dashboard_path(self.project, self.order)

    @property
    def next_url(self) -> str:
        """The payer's next URL: the attempt's page, the order's page, the shop, or the result (FLOW-16)."""
        if self.attempt is None:
            return self.url("get_order_page")
        if not self.has_attempt_ended:
            return self.url("get_payment")
        if not self.can_choose_method:
            return self.shop_url or self.url("get_result")
        notice: str = self.attempt.status
        if notice == TransactionStatus.CANCELLED and not self.attempt.has_page:
            notice = "declined"  # a screening declined it before the page existed
        elif notice == TransactionStatus.CANCELLED and self.attempt.reason == METHOD_CHANGED:
            notice = "elsewhere"
        return self.url("get_order_page", notice=notice, of=self.attempt.id)


def find_page(call: Call, project_id: str, order_id: str, transaction_id: str | None = None) -> PayerPage:
    """Find the page at a URL, whose ids cannot be guessed.

    Raises:
        Unknown: there is no such order, or no such attempt with a page.
    """
    project = find_project(call, project_id)
    order = project.epoch.store.order(order_id)
    if order is None or order.is_refund or (transaction_id is None and not order.has_page):
        raise Unknown("this page does not exist")
    attempt = order.transaction(transaction_id) if transaction_id is not None else None
    # a pending attempt has the waiting page of its screening
    is_shown = attempt is not None and (attempt.has_page or attempt.status == TransactionStatus.PENDING)
    if transaction_id is not None and not is_shown:
        raise Unknown("this page does not exist")
    return PayerPage(call, project, order, attempt, chosen_language(call, order))


def find_project(call: Call, project_id: str) -> Project:
    """Return the project in a URL, after running its due events.

    Raises:
        Unknown: there is no such project.
    """
    project = call.site.registry.find_by_id(project_id)
    if project is None:
        raise Unknown("this page does not exist")
    call.project = project
    call.catch_up()
    return project


def chosen_language(call: Call, order: Order | None) -> Language:
    """Return the language of the page for this request."""
    requested = call.request.args.get("language") or call.request.cookies.get(LANGUAGE_COOKIE)
    locale = order.page_locale if order is not None else None
    return language.choose(requested, locale, list(call.request.accept_languages.values()))


def show(page: PayerPage, template: str, status: int = 200, **more: object) -> Response:
    """Render a page."""
    project, now = page.project, page.project.now()
    body = render_template(
        f"{template}.html",
        page=page,
        say=page.language.say,
        language=page.language,
        languages=language.LANGUAGE_NAMES,
        notice=_attempt_notice(page),
        now=now,
        is_running=project.epoch.state.clock.running,
        **{"panel": None, "look": "pay", **more},
    )
    return Response(body, status=status, content_type=HTML)


class AttemptNotice(NamedTuple):
    """A notice about the previous attempt: its text, its reason, and the next URL."""

    text: str
    reason: str | None = None
    url: str | None = None


def _attempt_notice(page: PayerPage) -> AttemptNotice | None:
    key = f"notice_{page.call.request.args.get('notice', '')}"
    if key not in language.phrases(language.DEFAULT_TAG):
        return None
    say = page.language.say
    attempt = page.order.transaction(page.call.request.args.get("of", ""))
    newest = page._replace(attempt=page.order.last_transaction)
    if key == "notice_elsewhere":
        if newest.attempt is None or newest.has_attempt_ended:
            return AttemptNotice(say("notice_stale"))
        return AttemptNotice(say(key, method=newest.method_label), url=newest.url("get_payment"))
    if attempt is None or attempt.reason in (None, METHOD_CHANGED):
        return AttemptNotice(say(key))
    return AttemptNotice(say(key), translate_reason(str(attempt.reason), page.language.tag))


def record_visit(page: PayerPage) -> None:
    """Record another visit by the customer."""
    with page.project.edit() as edit:
        transaction_id = page.attempt.id if page.attempt is not None else None
        edit.record_action(Action(CUSTOMER, VISIT), VIA_PAGE, page.order.id, transaction_id)


def redirect_to_next(page: PayerPage) -> Response:
    """Redirect the payer to the next page, and record a return to the shop."""
    address = page.next_url
    return return_to_shop(page) if address == page.shop_url else redirect(address)


def return_to_shop(page: PayerPage) -> Response:
    """Redirect the payer to the shop, and record the return.

    Raises:
        Unknown: the order has no return_url.
    """
    if page.shop_url is None:
        raise Unknown("this order has no return_url")
    with page.project.edit() as edit:
        edit.record_action(Action(CUSTOMER, RETURN), VIA_PAGE, page.order.id)
    return redirect(page.shop_url)
