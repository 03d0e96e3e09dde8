"""A scripted ACP agent: its prompt is a JSON list of steps. Runs inside the computer with the standard library only."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]
asked = 0
sessions: dict[str, list[str]] = {}


class Refusal(Exception):
    """The prompt is answered with this error."""


def send(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session: str, **body: object) -> None:
    send({"method": "session/update", "params": {"sessionId": session, "update": body}})


def read() -> Json:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: Json = json.loads(line)
    return message


def wait_answer(number: object) -> Json:
    while True:
        message = read()
        if message.get("id") == number and "method" not in message:
            return message
        if message.get("method") == "session/cancel":
            return {"result": {"outcome": {"outcome": "cancelled"}}}


def ask(session: str, params: Json, during: list[Json]) -> str:
    global asked
    asked += 1
    number = f"q{asked}"
    send({"id": number, "method": "session/request_permission", "params": {"sessionId": session, **params}})
    for each in during:
        update(session, **each)
    outcome = wait_answer(number).get("result", {}).get("outcome", {})
    return str(outcome.get("optionId", outcome.get("outcome", "none")))


OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "ever", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def play(session: str, step: Json) -> str | None:
    """A stop reason ends the turn early."""
    for word, given in step.items():
        if word == "say":
            update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": given})
        elif word == "update":
            update(session, **given)
        elif word == "ask":
            call = {"toolCallId": "t1", **given}
            during = call.pop("during", [])
            options = call.pop("options", OPTIONS)
            said = ask(session, {"toolCall": call, "options": options}, during)
            update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": f"[{said}]"})
        elif word == "run":
            said = ask(session, {"toolCall": {"toolCallId": f"r{asked}", "kind": "execute", "title": given,
                       "rawInput": {"command": given}}, "options": OPTIONS}, [])  # fmt: skip
            if said == "yes":
                os.system(given)
            update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": f"[{said}]"})
        elif word == "raw":
            sys.stdout.write(given)
            sys.stdout.flush()
        elif word == "flood":
            for number in range(given):
                update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": f"{number} "})
        elif word == "stderr":
            sys.stderr.write("x" * given)
            sys.stderr.flush()
        elif word == "die":
            sys.stderr.write("goodbye cruel world\n")
            sys.stderr.flush()
            os._exit(given)
        elif word == "eat":
            eaten = []
            for _ in range(given):
                eaten.append(os.urandom(4096) * 256)  # 1 MiB that is really used
        elif word == "stop":
            return str(given)
        elif word == "fail":
            raise Refusal(given)
        elif word == "dying":
            sys.stderr.write(given)
            sys.stderr.flush()
            os._exit(1)
        elif word == "hang":
            while True:
                message = read()
                if message.get("method") == "session/cancel" and given != "deaf":
                    return "cancelled"
        elif word == "past":
            update(
                session,
                sessionUpdate="agent_message_chunk",
                content={"type": "text", "text": json.dumps(sessions[session])},
            )
        elif word == "env":
            told = json.dumps(dict(os.environ))
            update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": told})
        elif word == "wait":
            while not Path(given).exists():
                time.sleep(0.01)
    return None


def prompt(params: Json) -> str:
    session = params["sessionId"]
    text = params["prompt"][0]["text"]
    sessions.setdefault(session, []).append(text)
    Path(f"/home/agent/{session}.json").write_text(json.dumps(sessions[session]))
    start = text.rfind("[[")
    try:
        steps = json.loads(text[start + 1 : text.rindex("]]") + 1]) if start >= 0 else [{"say": text}]
    except ValueError:
        steps = [{"say": "cannot read " + text}]
    for step in steps:
        reason = play(session, step)
        if reason:
            return reason
    return "end_turn"


def main() -> None:
    kind = sys.argv[1] if len(sys.argv) > 1 else "resume"
    count = 0
    while True:
        message = read()
        method, number, params = message.get("method"), message.get("id"), message.get("params", {})
        result: Json = {}
        if method == "initialize":
            able: Json = {"loadSession": kind == "load", "promptCapabilities": {"image": kind != "plain"}}
            if kind == "resume":
                able["sessionCapabilities"] = {"resume": {}, "fork": {}}
            version = 99 if kind == "newer" else 1
            result = {
                "protocolVersion": version,
                "agentCapabilities": able,
                "agentInfo": {"name": "actor", "version": "1"},
            }
        elif method == "session/new":
            count += 1
            name = f"actor-{os.getpid()}-{time.time_ns()}-{count}"
            sessions[name] = []
            modes = {
                "currentModeId": "auto",
                "availableModes": [{"id": mode, "name": mode} for mode in ("auto", "ask", "plan", "yolo")],
            }
            result = {"sessionId": name, "modes": modes}
            if kind == "models":
                offered = [{"modelId": model, "name": model.title()} for model in ("sonnet", "opus")]
                result["models"] = {"currentModelId": "sonnet", "availableModels": offered}
        elif method in ("session/resume", "session/load"):
            name = params["sessionId"]
            sessions[name] = json.loads(Path(f"/home/agent/{name}.json").read_text())
            if method == "session/load":
                for text in sessions[name]:
                    update(name, sessionUpdate="agent_message_chunk", content={"type": "text", "text": "AGAIN " + text})
        elif method == "session/fork":
            name = f"{params['sessionId']}-fork"
            text = Path(f"/home/agent/{params['sessionId']}.json").read_text()
            Path(f"/home/agent/{name}.json").write_text(text)
            result = {"sessionId": name}
        elif method == "session/prompt":
            try:
                result = {"stopReason": prompt(params), "usage": {"inputTokens": 7, "outputTokens": 3}}
            except Refusal as words:
                send({"id": number, "error": {"code": -32603, "message": str(words)}})
                continue
        elif number is None:
            continue
        send({"id": number, "result": result})


main()
