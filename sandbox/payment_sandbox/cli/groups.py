"""Groups of commands that name the nearest command for a wrong one."""

import click


class Group(click.Group):
    """A group of commands. Its own options, such as those of ``clock``, work without a command, too."""

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was perhaps meant."""
        try:
            return super().resolve_command(context, arguments)
        except click.UsageError as error:
            from payment_sandbox.forms.base import did_you_mean, nearest_word  # here, so that --help is fast

            known = self.list_commands(context)
            nearest = nearest_word(arguments[0], known)
            way_on = did_you_mean(nearest) or f"; there are: {', '.join(known)}"
            raise click.UsageError(f"there is no command {arguments[0]!r}{way_on}", context) from error
