"""One trace from the owner's request through gateway, keeper, agent and model, in the names of OpenTelemetry."""

from pathlib import Path

from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, run_freehold
from tests.support.trace_receiver import ReceivedSpan, TraceReceiver, receive_traces

PROMPT = "Please RUN echo the-secret-words"


async def wait_for(receiver: TraceReceiver, *names: str) -> dict[str, ReceivedSpan]:
    """The last span of each of these names."""

    async def found() -> dict[str, ReceivedSpan] | None:
        spans = {span.name: span for span in receiver.spans}
        return spans if set(names) <= set(spans) else None

    spans = await until(found)
    assert spans is not None
    return spans


async def test_a_prompt_is_one_trace_from_request_to_model(tmp_path: Path) -> None:
    """The programs are processes of their own. No prompt, command or path is in any span."""
    with receive_traces() as receiver:
        environment = {"FREEHOLD_OBSERVE_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "200"}
        options = FreeholdOptions(agents=("builtin",), environment=environment)
        async with run_freehold(tmp_path, options) as freehold:
            await until(freehold.is_connected)
            session = await freehold.open("builtin")
            async with freehold.watch(session) as watch:
                await freehold.run_turn(watch, session, PROMPT)
            await freehold.http.put("/v1/files/content", params={"path": "private-name.txt"}, content=b"x")
            await freehold.call("POST", "/v1/history/undo")
            spans = await wait_for(receiver, "invoke_agent builtin", "execute_tool execute", "history undo")
            await wait_for(receiver, "keeper history.undo")
            # The span of a request ends after those in it, and may come with the next batch.
            requests = {spans[name].parent for name in ("invoke_agent builtin", "history undo")}
            await until(lambda: requests <= {span.id for span in receiver.spans})
        everything = receiver.spans
    turn = spans["invoke_agent builtin"]
    by_id = {span.id: span for span in everything}
    prompt = by_id[turn.parent]
    assert prompt.attributes["http.route"] == "/v1/sessions/{session}/prompt"
    assert turn.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert turn.attributes["gen_ai.agent.name"] == "builtin"
    assert turn.attributes["gen_ai.conversation.id"] == session
    assert turn.attributes["freehold.turn"] == 1

    tool = spans["execute_tool execute"]
    assert tool.parent == turn.id
    assert tool.attributes["gen_ai.operation.name"] == "execute_tool"
    assert tool.attributes["gen_ai.tool.name"] == "execute"
    assert tool.attributes["gen_ai.tool.call.id"]

    models = [span for span in everything if span.attributes.get("gen_ai.operation.name") == "chat"]
    assert len(models) >= 2
    assert {model.parent for model in models} == {turn.id}
    for model in models:
        assert model.name == f"chat {model.attributes['gen_ai.request.model']}"
        assert model.kind == 3  # client
        assert model.attributes["gen_ai.provider.name"] in ("anthropic", "local")
    spent = [
        sum(int(model.attributes[f"gen_ai.usage.{kind}_tokens"]) for model in models) for kind in ("input", "output")
    ]
    assert [turn.attributes[f"gen_ai.usage.{kind}_tokens"] for kind in ("input", "output")] == spent
    assert all(spent)

    marks = [span for span in everything if span.program == "freehold-keeper" and span.parent == turn.id]
    assert marks, "the keeper's marks before and after the turn are not in its trace"
    undo = spans["history undo"]
    assert by_id[undo.parent].attributes["http.route"] == "/v1/history/undo"
    (done,) = (span for span in everything if span.name == "keeper history.undo")
    assert (done.program, done.parent, done.trace) == ("freehold-keeper", undo.id, undo.trace)
    assert undo.attributes["freehold.history.paths_changed"] == 1
    assert "secret-words" not in str(everything)
    assert "private-name" not in str(everything)
