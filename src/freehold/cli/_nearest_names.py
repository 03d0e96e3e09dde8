"""A group of commands that names the nearest ones when there is none of the name that was typed."""

from typing import Self

import click

MAX_SUGGESTIONS = 3
MIN_LIKENESS = 0.4


class SuggestingGroup(click.Group):
    """So are the groups that are its commands."""

    @classmethod
    def of(cls, group: click.Group) -> Self:
        """The same group, with suggestions."""
        made = cls()
        vars(made).update(vars(group))
        return made

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return with_suggestions(super().get_command(ctx, cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-") and not ctx.resilient_parsing:
            where = f" in {ctx.command_path}" if ctx.parent is not None else ""
            near = self._find_nearest(ctx, word)
            suggestion = f" Did you mean {_join_words(near)}?" if near else ""
            ctx.fail(
                f"There is no command '{word}'{where}.{suggestion} To list the commands: {ctx.command_path} --help"
            )
        return super().resolve_command(ctx, args)

    def _find_nearest(self, ctx: click.Context, word: str) -> list[str]:
        import difflib

        shown = [
            name
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None and not command.hidden
        ]
        return difflib.get_close_matches(word, shown, MAX_SUGGESTIONS, MIN_LIKENESS)


def with_suggestions(command: click.Command | None) -> click.Command | None:
    """A group as one that suggests. Every other command stays as it is."""
    return SuggestingGroup.of(command) if type(command) is click.Group else command


def _join_words(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
