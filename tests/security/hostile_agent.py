"""A hostile agent: an ACP program that does whatever a test tells it. Standard library only; runs inside the computer.

The last line of the prompt is a JSON list of acts, each an object with one key (see `ACTS`). What an act finds out is
sent as a message, so that a test can read it. The first argument may name a JSON file with the agent's character: what
it says of itself, and how it answers when it is told to change its mode (`Character`).
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "ever", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Character:
    """`new`: the answer to session/new beside its id. `set_mode`: accept, refuse, ignore (it stays), or another mode."""

    def __init__(self, given: Json) -> None:
        self.new: Json = given.get("new", {})
        self.loaded: Json = given.get("loaded", {})
        self.capabilities: Json = given.get("capabilities", {})
        self.set_mode: str = given.get("set_mode", "accept")
        self.set_option: Any = given.get("set_option")
        """The answer to session/set_config_option; by default an empty one."""
        self.usage: Any = given.get("usage")
        """What it says that a turn has used."""


class HostileAgent:
    def __init__(self, character: Character) -> None:
        self._character = character
        self._session = ""
        self._asked = 0
        self._opened = 0

    # Messages

    def send(self, message: Json) -> None:
        self.write_raw(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def write_raw(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def update(self, body: Json) -> None:
        self.send({"method": "session/update", "params": {"sessionId": self._session, "update": body}})

    def say(self, text: object) -> None:
        self.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"{text}\n"}})

    def read(self) -> Json:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        message: Json = json.loads(line)
        return message

    def wait_answer(self, number: str) -> Json:
        while True:
            message = self.read()
            if message.get("id") == number and "method" not in message:
                return message
            if message.get("method") == "session/cancel":
                return {"result": {"outcome": {"outcome": "cancelled"}}}

    # Acts

    def ask(self, given: Json) -> None:
        """`params` are sent as they are. `during` acts come before the answer, `yes` and `no` acts after it."""
        self._asked += 1
        number = f"q{self._asked}"
        params = {"sessionId": self._session, "options": OPTIONS, **given["params"]}
        self.send({"id": number, "method": "session/request_permission", "params": params})
        self.play(given.get("during", []))
        answer = self.wait_answer(number)
        outcome = answer.get("result", {}).get("outcome", {})
        said = str(outcome.get("optionId", outcome.get("outcome", answer.get("error"))))
        self.say(f"[{said}]")
        self.play(given.get(said, []))

    def write(self, given: Json) -> None:
        place = Path(given["path"])
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(given["text"])

    def link(self, given: Json) -> None:
        Path(given["path"]).parent.mkdir(parents=True, exist_ok=True)
        Path(given["path"]).unlink(missing_ok=True)
        (os.link if given.get("hard") else os.symlink)(given["to"], given["path"])

    def rename(self, given: Json) -> None:
        Path(given["path"]).rename(given["to"])

    def run(self, command: str) -> None:
        done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=30)
        self.say(done.stdout + done.stderr)

    def start_daemon(self, command: str) -> None:
        """Leaves its parent, its session and its environment behind."""
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                silent = os.open("/dev/null", os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(silent, stream)
                os.execve("/bin/sh", ["/bin/sh", "-c", command], {})
            os._exit(0)
        os.wait()

    def connect(self, given: Json) -> None:
        """A connection without the proxy."""
        try:
            with socket.create_connection((given["host"], given["port"]), timeout=5) as connection:
                connection.sendall(given.get("text", "").encode())
                self.say(f"connected {connection.recv(200)!r}")
        except OSError as error:
            self.say(f"not connected: {error}")

    def fetch(self, url: str) -> None:
        """Over HTTP, through the proxy of the environment."""
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                self.say(f"fetched {answer.status}")
        except OSError as error:
            self.say(f"not fetched: {error}")

    def flood(self, given: Json) -> None:
        for number in range(given["count"]):
            self.say(f"{number} {'x' * given.get('size', 0)}")

    def inflate(self, given: Json) -> None:
        """One large tool call, and then small updates of it that all count as an end."""
        changes = [
            {"type": "diff", "path": f"/workspace/{one}", "newText": "x" * 90_000} for one in range(given["parts"])
        ]
        self.update({"sessionUpdate": "tool_call", "toolCallId": "large", "title": "0", "content": changes})
        for number in range(given["count"]):
            small = {"toolCallId": "large", "title": str(number), "status": "completed"}
            self.update({"sessionUpdate": "tool_call_update", **small})

    def repeat(self, given: Json) -> None:
        for _ in range(given["count"]):
            self.play(given["acts"])

    def wait_file(self, path: str) -> None:
        while not Path(path).exists():
            time.sleep(0.01)

    def change_mode(self, mode: object) -> None:
        self.update({"sessionUpdate": "current_mode_update", "currentModeId": mode})

    def hang(self, given: object) -> None:
        while given == "deaf" or self.read().get("method") != "session/cancel":
            if given == "deaf":
                time.sleep(3600)

    def play(self, acts: list[Json]) -> None:
        for act in acts:
            for name, given in act.items():
                ACTS[name](self, given)

    # The protocol

    def prompt(self, params: Json) -> Json:
        line = params["prompt"][0]["text"].splitlines()[-1]
        self.play(json.loads(line) if line.startswith("[{") else [{"say": line}])
        return {"stopReason": "end_turn", "usage": self._character.usage}

    def set_mode(self, params: Json) -> Json:
        how = self._character.set_mode
        if how == "refuse":
            raise RefusedError("there is no such mode")
        if how not in ("accept", "ignore"):
            self.change_mode(how)
        return {}

    def answer(self, method: str, params: Json) -> Json:
        if method == "initialize":
            return {"protocolVersion": 1, "agentCapabilities": self._character.capabilities}
        if method == "session/new":
            self._opened += 1
            self._session = f"hostile-{os.getpid()}-{self._opened}"
            return {"sessionId": self._session, **self._character.new}
        if method in ("session/load", "session/resume"):
            self._session = params["sessionId"]
            return self._character.loaded
        if method == "session/set_mode":
            return self.set_mode(params)
        if method == "session/set_config_option":
            return self._character.set_option or {}
        if method == "session/prompt":
            return self.prompt(params)
        raise RefusedError(f"no method {method}")

    def serve(self) -> None:
        while True:
            message = self.read()
            number = message.get("id")
            if number is None or "method" not in message:
                continue
            try:
                reply: Json = {"result": self.answer(message["method"], message.get("params", {}))}
            except RefusedError as error:
                reply = {"error": {"code": -32603, "message": str(error)}}
            self.send({"id": number, **reply})


class RefusedError(Exception):
    """The request is answered with this error."""


ACTS: dict[str, Callable[[HostileAgent, Any], None]] = {
    "say": HostileAgent.say,
    "send": HostileAgent.send,
    "raw": HostileAgent.write_raw,
    "update": HostileAgent.update,
    "mode": HostileAgent.change_mode,
    "ask": HostileAgent.ask,
    "write": HostileAgent.write,
    "link": HostileAgent.link,
    "rename": HostileAgent.rename,
    "run": HostileAgent.run,
    "daemon": HostileAgent.start_daemon,
    "connect": HostileAgent.connect,
    "fetch": HostileAgent.fetch,
    "flood": HostileAgent.flood,
    "inflate": HostileAgent.inflate,
    "repeat": HostileAgent.repeat,
    "wait_file": HostileAgent.wait_file,
    "hang": HostileAgent.hang,
}


if __name__ == "__main__":
    named = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    HostileAgent(Character(json.loads(named.read_text()) if named is not None else {})).serve()
