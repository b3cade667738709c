"""A server's metrics since its start, in the Prometheus text format."""

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

from payment_sandbox.projects.registry import Registry
from payment_sandbox.web.statistics import Statistics


def metrics(statistics: Statistics, registry: Registry, commit_count: int) -> bytes:
    """Format the metrics as text, as an entry point in the group ``payment_sandbox.metrics``."""
    collector = CollectorRegistry()
    collector.register(_MetricsCollector(statistics, registry, commit_count))
    return generate_latest(collector)


class _MetricsCollector:
    def __init__(self, statistics: Statistics, registry: Registry, commit_count: int) -> None:
        self._commit_count = commit_count
        self._statistics = statistics
        self._registry = registry

    def collect(self) -> Iterator[Any]:
        """Yield the current metrics."""
        statistics, loaded = self._statistics, self._registry.loaded_projects()
        calls = CounterMetricFamily("sandbox_calls", "Answered calls.", labels=["status"])
        for status, count in sorted(statistics.calls.items()):
            calls.add_metric([str(status or "cut")], count)
        webhooks = CounterMetricFamily(
            "sandbox_webhooks", "Attempts to deliver webhooks.", labels=["outcome"]
        )
        for outcome, count in sorted(statistics.webhooks.items()):
            webhooks.add_metric([outcome], count)
        yield from (calls, webhooks)
        total, seconds = statistics.calls.total(), statistics.call_seconds
        yield SummaryMetricFamily("sandbox_call_seconds", "Duration of calls in seconds.", total, seconds)
        yield CounterMetricFamily("sandbox_commits", "Commits to the database.", self._commit_count)
        yield GaugeMetricFamily("sandbox_projects", "Projects in this server's memory.", len(loaded))
        pending = sum(len(project.epoch.outbox.pending()) for project in loaded)
        yield GaugeMetricFamily("sandbox_webhooks_queued", "Webhooks waiting to be sent.", pending)
