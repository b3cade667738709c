"""Explores a shop without tests: repeats a purchase in a browser, with one change at a time."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from playwright.sync_api import Browser, ViewportSize

from payment_sandbox.operations.history import history
from payment_sandbox.orders.order import Order
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.web.pictures import sequence, svg
from pytest_payment_sandbox.rehearsal.announced import SETTLE_SECONDS, Outside, advanced_to
from pytest_payment_sandbox.rehearsal.books import Books
from pytest_payment_sandbox.rehearsal.buying import Buy, BuyFails, Customer, as_images
from pytest_payment_sandbox.rehearsal.exploring import ChangedSteps, Explored, Explorer, Ran
from pytest_payment_sandbox.rehearsal.judging import Ends, Judged, Trial, judge, not_judged
from pytest_payment_sandbox.rehearsal.progress import Progress, duration
from pytest_payment_sandbox.rehearsal.remembering import Remembered, TriedVariations
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from pytest_payment_sandbox.rehearsal.showing import Mails, Showing, normalized, pages_of

SEED: Final = 7
VIEWPORT: Final[ViewportSize] = {"width": 960, "height": 540}


class ExploredShop(NamedTuple):
    """The results of a purchase's variations, and the data to store for the next exploration."""

    explored: Explored
    remembered: Remembered
    is_stopped: bool


class ShopInBrowser:
    """A running shop that uses a project on a server in this process."""

    def __init__(self, url: str, buy: Buy, project: Project, sandbox: str, outside: Outside) -> None:
        self.url = url
        self._buy = buy
        self._project = project
        self._sandbox = sandbox
        self._outside = outside
        self._forms: dict[int, bool] = {}
        self._ends: Ends = {}
        self._baseline: Judged | None = None
        self._problems: set[str] = set()

    def explore(
        self,
        browser: Browser,
        budget_seconds: float,
        only: Sequence[ChangedSteps],
        progress: Progress,
        remembered: Remembered | None = None,
    ) -> ExploredShop:
        """Make the unchanged purchase, then its variations until the end of the budget.

        Raises:
            BuyFails: the unchanged purchase fails, or the shop does not use the sandbox.
        """
        begun = monotonic_seconds()
        until_seconds = begun + budget_seconds
        progress.say(f"makes the unchanged purchase in {self.url}, following {self._buy.file}")
        baseline = self._as_it_is(browser)
        tried = TriedVariations(baseline, remembered)
        left = duration(until_seconds - monotonic_seconds())
        progress.say(
            f"changes one thing at a time; a purchase takes {monotonic_seconds() - begun:.1f} s, {left} left"
            + (f"; {tried.count} variations were tried before" if tried.count else "")
        )

        def run(variation: ChangedSteps) -> Ran:
            ran = tried.run(variation, lambda changes: self._run(browser, changes)[0])
            self._problems |= {problem.kind for problem in ran.judged.problems[:1]}
            progress.note(len(self._problems), until_seconds)
            return ran

        explorer = Explorer(run, lambda: monotonic_seconds() < until_seconds, seed=SEED)
        try:
            explored = tried.only(explorer, only) if only else explorer.explore(tried.baseline)
        except KeyboardInterrupt:
            return ExploredShop(explorer.so_far([], 0), tried.remembered, True)
        return ExploredShop(explored, tried.remembered, False)

    def _as_it_is(self, browser: Browser) -> Ran:
        ran, failure = self._run(browser, ())
        hint = f"the shop has to use SANDBOX_URL={self._sandbox} with the key {self._project.masking.api_key}"
        if not ran.steps and (failure is None or self._forms):
            problem = failure or f"the customer has followed {self._buy.file}"
            raise BuyFails(f"{problem}, but the shop made no call to the sandbox: {hint}")
        if failure is not None:
            raise BuyFails(failure)
        self._baseline = ran.judged
        return ran

    def _run(self, browser: Browser, variation: ChangedSteps) -> tuple[Ran, str | None]:
        project = self._project
        project.reset()
        customer = Customer(browser.new_context(viewport=VIEWPORT), self._buy, self.url, self._sandbox)
        run = RehearsedRun(project, variation, visit=lambda order, tabs: self._returns(customer, order, tabs))
        if self._baseline is not None:
            run.calls.limit(self._baseline.most_calls)
        project.rehearse(run)
        failure = None
        try:
            try:
                customer.buys(run.press, self._forms)
            except BuyFails as failed:
                failure = str(failed)
                customer.picture()
            return self._judged(customer, run, variation, failure), failure
        finally:
            with suppress(Exception):  # Ctrl-C has stopped the browser
                customer.close()

    def _judged(
        self, customer: Customer, run: RehearsedRun, variation: ChangedSteps, failure: str | None
    ) -> Ran:
        project = self._project
        project.settle(SETTLE_SECONDS)
        trial = Trial(run, variation, failure, self._baseline, [], self._ends, lambda: self._look(customer))
        try:
            judged = judge(trial, lambda until: advanced_to(project, until), self._books())
        except Exception as error:
            if not variation:
                raise BuyFails(f"the purchase could not be judged: {error}") from error
            judged = not_judged(run, error)
        timeline = picture = ""
        if judged.problems:
            happenings = list(history(project.epoch))
            lines = [f"{happening.at.isoformat()}  {happening.label}" for happening in happenings]
            timeline = "\n".join([*lines, *(failure or "").splitlines()])
            picture = as_images(customer.pictures) + svg(sequence(happenings), is_file=True)
        return Ran(judged, run.steps, run.happened, timeline, picture, has_return=True)

    def _books(self) -> Books | None:
        elsewhere = self._outside.books
        if elsewhere is None:
            return None
        own = {"SANDBOX_URL": self._sandbox, "SANDBOX_API_KEY": self._project.masking.api_key or ""}
        return lambda: elsewhere.of(self._project, own)

    def _look(self, customer: Customer) -> Showing:
        pages = pages_of(self._project, customer.sees, self._outside.pages, is_first=self._baseline is None)
        alike = [page._replace(path=normalized(page.path)) for page in pages]  # numbers of sales differ
        return Showing(alike, Mails((), 0))

    def _returns(self, customer: Customer, order: Order, tabs: int) -> None:
        if order.return_url:
            parts = urlsplit(order.return_url)
            ids = {"order_id": order.id, "project_id": self._project.project_id}
            query = urlencode({**dict(parse_qsl(parts.query)), **ids})
            customer.returns(urlunsplit(parts._replace(query=query)), tabs)
