"""`freehold agents test`: an agent that works passes, whichever model API it uses."""

from pathlib import Path

import pytest

from freehold.agents.acp.json_rpc import AgentError
from freehold.agents.catalogue.registry import find_agent
from freehold.agents.catalogue.trial import AgentTrial, try_agent
from freehold.computer import Computer
from freehold.manifest import load_manifest

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENT = """
import json, os, sys, urllib.request

WANTED = sys.argv[1]

def ask():
    if os.environ.get("FREEHOLD_MODEL_KIND") != WANTED:
        raise SystemExit("this agent cannot use " + os.environ.get("FREEHOLD_MODEL_KIND", "nothing"))
    body = {"model": os.environ["FREEHOLD_MODEL"], "messages": [{"role": "user", "content": "SAY it works"}]}
    address = os.environ["FREEHOLD_MODEL_URL"] + "/chat/completions"
    request = urllib.request.Request(address, json.dumps(body).encode(), {"content-type": "application/json"})
    answer = json.load(urllib.request.urlopen(request))
    return body["model"] + ": " + answer["choices"][0]["message"]["content"]

for line in sys.stdin:
    message = json.loads(line)
    method, result = message["method"], {}
    if method == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}}
    elif method == "session/new":
        modes = [{"id": "yolo", "name": "Yolo"}, {"id": "default", "name": "Default"}]
        result = {"sessionId": "s", "modes": {"currentModeId": "yolo", "availableModes": modes}}
    elif method == "session/prompt":
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ask()}}
        said = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
        print(json.dumps(said), flush=True)
        result = {"stopReason": "end_turn"}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def run_trial(computer: Computer, workspace: Path, folder: Path, api: str, manifest: str = "") -> AgentTrial:
    (workspace / "picky.py").write_text(AGENT)
    (folder / "freehold.toml").write_text(f'[agents.picky]\ncommand = "python3 /workspace/picky.py {api}"\n{manifest}')
    loaded = load_manifest(folder / "freehold.toml", {}, home=folder).manifest
    return await try_agent(computer, find_agent(loaded, "picky"), loaded)


@pytest.mark.parametrize("api", ["openai", "openai-compatible"])
async def test_without_a_provider_each_api_is_tried(
    computer: Computer, workspace: Path, tmp_path: Path, api: str
) -> None:
    trial = await run_trial(computer, workspace, tmp_path, api)
    assert (trial.words, trial.kind) == ("scripted: it works", api)
    assert (trial.mode, trial.asks) == ("default", True)


async def test_the_api_and_the_model_of_the_agents_provider_are_used(
    computer: Computer, workspace: Path, tmp_path: Path
) -> None:
    models = (
        'model = "mine"\n'
        '[models.other]\nkind = "anthropic"\nbase_url = "http://127.0.0.1:1"\n'
        '[models.mine]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:1"\nmodel = "small"\n'
    )
    trial = await run_trial(computer, workspace, tmp_path, "openai-compatible", models)
    assert (trial.words, trial.kind) == ("small: it works", "openai-compatible")


async def test_an_agent_that_can_use_none_fails_with_its_own_reason(
    computer: Computer, workspace: Path, tmp_path: Path
) -> None:
    with pytest.raises(AgentError, match="cannot use"):
        await run_trial(computer, workspace, tmp_path, "none")
