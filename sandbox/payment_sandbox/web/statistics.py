"""Metrics of a server since its start, in the text format of Prometheus."""

from collections import Counter
from collections.abc import Iterator
from threading import Lock
from typing import Any

from payment_sandbox.loading import LOADING
from payment_sandbox.projects.registry import Registry


class Statistics:
    """Thread-safe counters of calls and webhooks."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.calls: Counter[int] = Counter()  # by status; 0 for a cut connection
        self.call_seconds = 0.0
        self.webhooks: Counter[str] = Counter()  # by outcome

    def answered(self, status: int, seconds: float) -> None:
        """Count a call."""
        with self._lock:
            self.calls[status] += 1
            self.call_seconds += seconds

    def attempted(self, status: int | None) -> None:
        """Count a webhook attempt; None means that it got no answer."""
        outcome = "unanswered" if status is None else "delivered" if 200 <= status < 300 else "refused"
        with self._lock:
            self.webhooks[outcome] += 1


def metrics(statistics: Statistics, registry: Registry, commits: int) -> bytes:
    """Format the metrics as text.

    Raises:
        ModuleNotFoundError: the extra ``metrics`` is not installed.
    """
    with LOADING:
        from prometheus_client import CollectorRegistry, generate_latest

    collected = CollectorRegistry()
    collected.register(_Figures(statistics, registry, commits))
    return generate_latest(collected)


class _Figures:
    def __init__(self, statistics: Statistics, registry: Registry, commits: int) -> None:
        self._commits = commits
        self._statistics = statistics
        self._registry = registry

    def collect(self) -> Iterator[Any]:
        """Yield the current metrics."""
        with LOADING:
            from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

        counted, loaded = self._statistics, self._registry.loaded()
        calls = CounterMetricFamily("sandbox_calls", "Calls that were answered.", labels=["status"])
        for status, count in sorted(counted.calls.items()):
            calls.add_metric([str(status or "cut")], count)
        webhooks = CounterMetricFamily(
            "sandbox_webhooks", "Attempts to deliver webhooks.", labels=["outcome"]
        )
        for outcome, count in sorted(counted.webhooks.items()):
            webhooks.add_metric([outcome], count)
        yield from (calls, webhooks)
        total, seconds = counted.calls.total(), counted.call_seconds
        yield SummaryMetricFamily("sandbox_call_seconds", "How long calls took.", total, seconds)
        yield CounterMetricFamily("sandbox_commits", "Commits to the database.", self._commits)
        yield GaugeMetricFamily("sandbox_projects", "Projects in this server's memory.", len(loaded))
        pending = sum(len(project.epoch.outbox.pending()) for project in loaded)
        yield GaugeMetricFamily("sandbox_webhooks_queued", "Webhooks that wait to be sent.", pending)
