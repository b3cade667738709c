"""What the shell completes by itself."""

import click


def scenario_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the ready-made scenarios."""
    from payment_sandbox.scenarios.catalogue import ready_folder, scenario_files

    return [path.stem for path in scenario_files(ready_folder()) if path.stem.startswith(begun)]
