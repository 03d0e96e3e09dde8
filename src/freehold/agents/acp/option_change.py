"""Sets the options of a running agent, and puts it into a mode in which it asks."""

from freehold.agents.acp.json_rpc import AgentError
from freehold.agents.acp.options import AgentOptions, ModePolicy, has_choice
from freehold.agents.acp.program import AgentProgram
from freehold.errors import FreeholdError


async def set_option(
    program: AgentProgram,
    session: str,
    options: AgentOptions,
    policy: ModePolicy,
    name: str,
    value: str | bool,
) -> None:
    """Sets one option. Raises `session.no-option` when the agent does not offer it.

    Raises `session.unasked-mode.permission` when the agent is not known to ask with it.
    """
    known = next((one for one in options.config if one["id"] == name), None)
    is_mode = name == "mode" or (known is not None and known["category"] == "mode")
    choices = known["choices"] if known is not None else options.modes if is_mode else []
    if (choices or is_mode) and not has_choice(choices, value):
        raise _no_option(name, value)
    if (is_mode and not policy.permits(str(value))) or (known is not None and not policy.permits_value(known, value)):
        raise _unasked(name, value)
    if is_mode:
        if not await _change_mode(program, session, options, str(value)):
            raise FreeholdError(
                "session.no-option",
                f"The agent did not change to the mode {value!a:.60}; it is in {options.mode!a:.60}",
            )
    elif known is not None:
        options.read_config((await program.set_option(session, name, value)).get("configOptions"))
        for one in options.config:
            if one["id"] == name:
                one["value"] = value
    elif name == "model" and isinstance(value, str) and has_choice(options.models, value):
        await program.set_model(session, value)
        options.model = value
    else:
        raise _no_option(name, value)


async def enter_asking_mode(
    program: AgentProgram, session: str, options: AgentOptions, policy: ModePolicy, remembered: str | None
) -> None:
    """Puts the agent into the wanted mode, or into one in which it is known to ask. `options` has what came of it.

    `remembered` is the mode of an earlier run, for an agent that does not list its modes when it loads a session.
    """
    offered = [one["id"] for one in options.modes]
    wanted = policy.wanted if policy.wanted is not None and policy.permits(policy.wanted) else None
    may_want = wanted is not None and (wanted in offered or not offered)
    if may_want and (options.mode == wanted or await _change_mode(program, session, options, str(wanted))):
        return
    if options.asks(policy):
        return
    asking = [mode for known in policy.list_modes() for mode in offered if policy.asks_in(mode) and _same(mode, known)]
    if not offered and remembered is not None and policy.asks_in(remembered):
        asking = [remembered]
    for mode in asking:
        if await _change_mode(program, session, options, mode) and options.asks(policy):
            return


async def _change_mode(program: AgentProgram, session: str, options: AgentOptions, mode: str) -> bool:
    """Whether the agent is in this mode then: it accepted it, and reported no other while it did."""
    before, option = options.mode, options.find_mode_option(mode)
    options.mode = None
    try:
        if option is not None:
            answer = await program.set_option(session, option["id"], mode)
            options.read_config(answer.get("configOptions"))
        else:
            await program.set_mode(session, mode)
            if options.mode is None:
                options.read_mode(mode)
    except AgentError as error:
        if error.code != "agent.refused":
            raise
    if options.mode is None:
        options.mode = before
    return options.mode == mode


def _same(mode: str, known: str) -> bool:
    return "".join(filter(str.isalnum, mode.casefold())) == "".join(filter(str.isalnum, known.casefold()))


def _unasked(name: str, value: object) -> FreeholdError:
    return FreeholdError(
        "session.unasked-mode.permission",
        f"The agent is not known to ask before it acts with {name!a:.60} set to {str(value)!a:.60}",
        hint="Add permission rules for what you trust instead (PUT /v1/approvals/policy), or describe the agent in "
        "freehold.toml and grant [security.exceptions.unasked-agent]",
    )


def _no_option(name: str, value: object) -> FreeholdError:
    return FreeholdError("session.no-option", f"The agent does not offer {str(value)!a:.60} for {name!a:.60}")
