"""A project's state besides its records: what it was told, and what its clock and counters show."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project


def config_of(project: "Project") -> dict[str, Any]:
    """What somebody chose: settings, scenario and faults."""
    return {
        "settings": project.base_settings.as_mapping(),
        "scenario": dict(project.scenario.document),
        "faults": dict(project.faults.document),
    }


def running_of(project: "Project") -> dict[str, Any]:
    """What changes by itself: clock, counters, random state, webhooks that wait for others."""
    return {
        "now": project.now(),
        "clock_mode": project.clock.mode,
        "clock_rate": project.clock.rate,
        "rule_uses": tuple(project.rule_uses.items()),
        "scenario_faults": project.scenario_faults.uses,
        "fault_uses": project.faults.uses,
        "seed": project.ids.seed,
        "id_counts": dict(project.ids.counts),
        "resets": project.resets,
        "sequence": project.timeline.sequence,
        "deliveries_dropped": project.store.deliveries_dropped,
        "swapped": tuple(project.swapped),
    }
