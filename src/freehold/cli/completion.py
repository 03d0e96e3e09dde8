"""`freehold completion`."""

import os
import pwd
from pathlib import Path

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_FREEHOLD_COMPLETE"


@click.command()
@click.argument("shell", required=False, type=click.Choice(SHELLS))
@click.option("--print", "printed", is_flag=True, help="Print the script instead of installing it.")
def command(shell: str | None, printed: bool) -> None:
    """Install completion for your shell, for this user.

    After it, Tab completes commands, options, history entries, sessions, agents and other names. Without SHELL, the
    shell of this user is taken. Nothing but one file is written; remove the file to remove the completion.

    \b
    Examples:
      freehold completion
      freehold completion zsh
      freehold completion bash --print
    """
    chosen = shell or _find_shell()
    script = make_script(chosen)
    if printed:
        click.echo(script)
        return
    path = _find_place(chosen)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script + "\n")
    click.echo(f"Installed completion for {chosen} in {path}")
    click.echo(_describe_next_step(chosen, path))


def _find_shell() -> str:
    name = Path(os.environ.get("SHELL") or _find_login_shell()).name
    if name not in SHELLS:
        raise click.UsageError(
            f"Your shell is {name or 'not known'}. Completion exists for {', '.join(SHELLS)}: freehold completion bash"
        )
    return name


def _find_login_shell() -> str:
    """What the system has for this user: services and some consoles set no SHELL."""
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        return ""


def make_script(shell: str) -> str:
    made = get_completion_class(shell)
    assert made is not None
    completion = made(click.Command("freehold"), {}, "freehold", VARIABLE)
    return (completion.source_template % completion.source_vars()).strip()


def _find_place(shell: str) -> Path:
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return {
        "bash": data / "bash-completion/completions/freehold",
        "zsh": data / "zsh/site-functions/_freehold",
        "fish": configuration / "fish/completions/freehold.fish",
    }[shell]


def _describe_next_step(shell: str, path: Path) -> str:
    if shell == "zsh":
        return (
            "If it is not used by a new shell, add this to ~/.zshrc:\n"
            f"  fpath=({path.parent} $fpath); autoload -Uz compinit && compinit"
        )
    if shell == "bash" and not Path("/usr/share/bash-completion/bash_completion").exists():
        return f"The package bash-completion is not installed. Without it, add this to ~/.bashrc:\n  source {path}"
    return "A new shell uses it."
