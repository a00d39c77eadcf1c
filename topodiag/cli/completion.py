"""`topodiag completion SHELL`: click's own completion script, for the shell to source."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash, put this in ~/.bashrc: eval "$(topodiag completion bash)"
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"No completion for {shell}.", ctx)
    click.echo(made(ctx.find_root().command, {}, "topodiag", "_TOPODIAG_COMPLETE").source())
