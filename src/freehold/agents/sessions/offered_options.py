"""The options and slash commands of an agent as it last reported them, also while it is not running."""

from dataclasses import dataclass

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.store import SessionStore

MAX_OTHER_SESSIONS = 20
"""Sessions of the same agent to look at when this one has no report yet."""


@dataclass(frozen=True)
class OfferedOptions:
    """`own` is false when the agent reported this in another session: the chosen values are not those of this one.

    `chosen_model` is the name of the model that the owner chose among the agent's own. It is what the agent uses,
    whatever model the session has.
    """

    options: Json | None
    commands: list[Json]
    own: bool
    chosen_model: str | None = None


def read_offered_options(store: SessionStore, session: str) -> OfferedOptions:
    """Blocks. Raises `session.not-found`."""
    row = store.get(session)
    options = _last_data(store, session, "options")
    commands = _last_data(store, session, "commands")
    if options is not None:
        return OfferedOptions(options, _list_commands(commands), True, _find_model(row.chosen, options, own=True))
    for other in store.list_of_agent(row.agent, limit=MAX_OTHER_SESSIONS + 1):
        options = _last_data(store, other, "options")
        if other != session and options is not None:
            commands = commands or _last_data(store, other, "commands")
            model = _find_model(row.chosen, options, own=False)
            return OfferedOptions(options, _list_commands(commands), False, model)
    return OfferedOptions(None, _list_commands(commands), True)


def _find_model(chosen: Json, options: Json, *, own: bool) -> str | None:
    """None while no option of the agent chose its model. The agent may have taken another since: then that one."""
    lists = {one["id"]: (one["value"], one["choices"]) for one in options["config"] if one["category"] == "model"}
    for name, (current, choices) in {"model": (options["model"], options["models"]), **lists}.items():
        if name in chosen:
            value = current if own and current is not None else chosen[name]
            return next((str(one["name"]) for one in choices if one["id"] == value), str(value))
    return None


def _last_data(store: SessionStore, session: str, kind: str) -> Json | None:
    event = store.find_last_event(session, kind)
    return None if event is None else event.data


def _list_commands(data: Json | None) -> list[Json]:
    return [] if data is None else list(data["commands"])
