"""`topodiag completion SHELL`: the completion script for the shell to source, and what bash needs besides."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from topodiag.cli.options import Command


class ColonBash(BashComplete):
    """Bash takes a colon for the end of a word: `fixture:dgx` arrives in three parts, and only the last is replaced."""

    prefix = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in (*args, incomplete):
            if words and (word == ":" or words[-1].endswith(":")):
                words[-1] += word
            else:
                words.append(word)
        *before, last = words
        head, colon, _ = last.rpartition(":")
        self.prefix = head + colon
        return before, last

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type},{item.value.removeprefix(self.prefix)}"


add_completion_class(ColonBash)


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell, for its start-up file.

    \b
    bash, in ~/.bashrc        eval "$(topodiag completion bash)"
    zsh, in ~/.zshrc          eval "$(topodiag completion zsh)"
    fish, in config.fish      topodiag completion fish | source
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    shell_class = get_completion_class(shell)
    if shell_class is None:
        raise click.UsageError(f"No completion for {shell}.", ctx)
    click.echo(shell_class(ctx.find_root().command, {}, "topodiag", "_TOPODIAG_COMPLETE").source())
