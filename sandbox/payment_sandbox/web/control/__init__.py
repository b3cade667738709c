"""The control API: projects, clocks, scenarios, faults and actions."""
