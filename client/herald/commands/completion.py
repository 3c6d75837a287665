"""`herald completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from herald.commands.common import Command, Target, domain_options
from herald.commands.output import data

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command, short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@domain_options
def command(target: Target, shell: str) -> None:
    """Print the script that completes commands and options of herald in SHELL. Install it by one line:

    \b
    echo 'eval "$(herald completion bash)"' >> ~/.bashrc
    echo 'eval "$(herald completion zsh)"' >> ~/.zshrc
    herald completion fish > ~/.config/fish/completions/herald.fish
    """
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - one of SHELLS
    script = found(click.get_current_context().find_root().command, {}, "herald", "_HERALD_COMPLETE").source()
    if target.json:
        target.show({"shell": shell, "script": script}, "")
    else:
        data(script)
