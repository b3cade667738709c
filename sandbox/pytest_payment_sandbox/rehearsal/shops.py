"""Explores a shop that has no tests: repeats a purchase in a browser, with one change at a time."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from playwright.sync_api import Browser, ViewportSize

from payment_sandbox.operations.history import history
from payment_sandbox.orders.order import Order
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.web.pictures import draw_sequence, svg
from pytest_payment_sandbox.rehearsal.announced import SETTLE_SECONDS, Sources, advance_to
from pytest_payment_sandbox.rehearsal.books import Books
from pytest_payment_sandbox.rehearsal.buying import BuyScript, Customer, Forms, PurchaseFailed, images_html
from pytest_payment_sandbox.rehearsal.exploring import ChangedSteps, Exploration, Explorer, RunResult
from pytest_payment_sandbox.rehearsal.judging import RunVerdict, Trial, Verdicts, judge, judge_calls_only
from pytest_payment_sandbox.rehearsal.progress import Progress, format_duration
from pytest_payment_sandbox.rehearsal.remembering import StoredVariations, TriedVariations
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from pytest_payment_sandbox.rehearsal.showing import CustomerView, Emails, normalize, read_pages

SEED: Final = 7
VIEWPORT: Final[ViewportSize] = {"width": 960, "height": 540}


class ShopResult(NamedTuple):
    """The results of a purchase's variations, and the data to store for the next exploration."""

    explored: Exploration
    stored: StoredVariations
    is_stopped: bool


class ShopInBrowser:
    """A running shop that uses a project on a server in this process."""

    def __init__(self, url: str, buy: BuyScript, project: Project, sandbox: str, sources: Sources) -> None:
        self.url = url
        self._buy = buy
        self._project = project
        self._sandbox = sandbox
        self._sources = sources
        self._forms: Forms = {}
        self._verdicts: Verdicts = {}
        self._baseline: RunVerdict | None = None
        self._problems: set[str] = set()

    def explore(
        self,
        browser: Browser,
        budget_seconds: float,
        only: Sequence[ChangedSteps],
        progress: Progress,
        stored: StoredVariations | None = None,
    ) -> ShopResult:
        """Make the unchanged purchase, then its variations until the end of the budget.

        Raises:
            PurchaseFailed: the unchanged purchase fails, or the shop does not use the sandbox.
        """
        started_seconds = monotonic_seconds()
        until_seconds = started_seconds + budget_seconds
        progress.write_line(f"making the unchanged purchase in {self.url}, following {self._buy.file}")
        baseline = self._run_unchanged(browser)
        tried = TriedVariations(baseline, stored)
        remaining = format_duration(until_seconds - monotonic_seconds())
        purchase_seconds = monotonic_seconds() - started_seconds
        progress.write_line(
            f"changing one thing at a time; a purchase takes {purchase_seconds:.1f} s, {remaining} left"
            + (f"; {tried.count} variations were tried before" if tried.count else "")
        )

        def run(variation: ChangedSteps) -> RunResult:
            result = tried.run(variation, lambda changes: self._run(browser, changes)[0])
            self._problems |= {problem.kind for problem in result.verdict.problems[:1]}
            progress.record(len(self._problems), until_seconds)
            return result

        explorer = Explorer(run, lambda: monotonic_seconds() < until_seconds, seed=SEED)
        try:
            explored = tried.play_only(explorer, only) if only else explorer.explore(tried.baseline)
        except KeyboardInterrupt:
            return ShopResult(explorer.partial_result([], 0), tried.results_json, True)
        return ShopResult(explored, tried.results_json, False)

    def _run_unchanged(self, browser: Browser) -> RunResult:
        result, failure = self._run(browser, ())
        hint = f"the shop has to use SANDBOX_URL={self._sandbox} with the key {self._project.masking.api_key}"
        if not result.steps and (failure is None or self._forms):
            problem = failure or f"the customer has followed {self._buy.file}"
            raise PurchaseFailed(f"{problem}, but the shop made no call to the sandbox: {hint}")
        if failure is not None:
            raise PurchaseFailed(failure)
        self._baseline = result.verdict
        return result

    def _run(self, browser: Browser, variation: ChangedSteps) -> tuple[RunResult, str | None]:
        project = self._project
        project.reset()
        customer = Customer(browser.new_context(viewport=VIEWPORT), self._buy, self.url, self._sandbox)
        run = RehearsedRun(project, variation, visit=lambda order, tabs: self._visit(customer, order, tabs))
        if self._baseline is not None:
            run.calls.set_limit(self._baseline.most_calls)
        project.rehearse(run)
        failure = None
        try:
            try:
                customer.buy(run.vary_submission, self._forms)
            except PurchaseFailed as failed:
                failure = str(failed)
                customer.take_screenshot()
            return self._judge(customer, run, variation, failure), failure
        finally:
            with suppress(Exception):  # Ctrl-C has stopped the browser
                customer.close()

    def _judge(
        self, customer: Customer, run: RehearsedRun, variation: ChangedSteps, failure: str | None
    ) -> RunResult:
        project = self._project
        project.settle(SETTLE_SECONDS)
        trial = Trial(
            run, variation, failure, self._baseline, [], self._verdicts, lambda: self._read_view(customer)
        )
        try:
            verdict = judge(trial, lambda until: advance_to(project, until), self._find_books())
        except Exception as error:
            if not variation:
                raise PurchaseFailed(f"the purchase could not be judged: {error}") from error
            verdict = judge_calls_only(run, error)
        timeline = picture = ""
        if verdict.problems:
            timeline_entries = list(history(project.epoch))
            lines = [
                f"{timeline_entry.at.isoformat()}  {timeline_entry.label}"
                for timeline_entry in timeline_entries
            ]
            timeline = "\n".join([*lines, *(failure or "").splitlines()])
            picture = images_html(customer.screenshots) + svg(draw_sequence(timeline_entries), is_file=True)
        return RunResult(verdict, run.steps, run.applied, timeline, picture, has_return=True)

    def _find_books(self) -> Books | None:
        source = self._sources.books
        if source is None:
            return None
        own = {"SANDBOX_URL": self._sandbox, "SANDBOX_API_KEY": self._project.masking.api_key or ""}
        return lambda: source.read_entries(self._project, own)

    def _read_view(self, customer: Customer) -> CustomerView:
        is_first = self._baseline is None
        pages = read_pages(self._project, customer.read_page, self._sources.pages, is_first=is_first)
        # sale numbers differ between runs
        normalized_pages = [page._replace(path=normalize(page.path)) for page in pages]
        return CustomerView(normalized_pages, Emails((), 0))

    def _visit(self, customer: Customer, order: Order, tabs: int) -> None:
        if order.return_url:
            parts = urlsplit(order.return_url)
            ids = {"order_id": order.id, "project_id": self._project.project_id}
            query = urlencode({**dict(parse_qsl(parts.query)), **ids})
            customer.return_to_shop(urlunsplit(parts._replace(query=query)), tabs)
