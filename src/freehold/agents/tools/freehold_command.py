"""The `freehold` command inside the computer: one verb for each host tool, made from the tools' schemas.

This file is copied into the agents' folder beside tools.json and runs there with the standard library only.
"""

import argparse
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ADDRESS = "http://127.0.0.1:3130/mcp"
TOKEN_VARIABLE = "FREEHOLD_TOOLS_TOKEN"  # noqa: S105 - the name of a variable
MAX_CALLS = 8


def post(message: dict[str, Any]) -> dict[str, Any] | None:
    """The host's answer; None for a notification. The proxy is not used: the host answers on loopback."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ.get(TOKEN_VARIABLE, '')}"}
    request = urllib.request.Request(ADDRESS, json.dumps(message).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as answer:
        data = answer.read()
    return json.loads(data) if data else None


def bridge() -> int:
    """MCP on stdin and stdout, for an agent that does not support it over HTTP."""
    write_lock = threading.Lock()

    def serve(line: str) -> None:
        answer = forward(line)
        if answer is not None:
            with write_lock:
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()

    # A call that asks the owner may take hours. Other calls are answered in the meantime.
    with ThreadPoolExecutor(MAX_CALLS) as pool:
        for line in sys.stdin:
            pool.submit(serve, line)
    return 0


def forward(line: str) -> dict[str, Any] | None:
    """The answer to one line; None for a notification."""
    try:
        message = json.loads(line)
        number = message.get("id")
    except (ValueError, AttributeError):
        return {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32700, "message": "The line is not a JSON-RPC request"},
        }
    try:
        answer = post(message)
    except (urllib.error.URLError, OSError) as error:
        answer = {"jsonrpc": "2.0", "id": number, "error": {"code": -32603, "message": str(error)}}
    return None if number is None else answer


def parse_arguments(tools: list[dict[str, Any]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("freehold", description="Ask Freehold, which runs this computer, to do something.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("mcp", help="speak MCP on stdin and stdout")
    for tool in tools:
        verb = verbs.add_parser(tool["name"].replace("_", "-"), help=tool["description"])
        schema = tool["inputSchema"]
        for name, one in schema["properties"].items():
            kind, description = one["type"], one.get("description", "")
            flag = f"--{name.replace('_', '-')}"
            if kind == "boolean":
                verb.add_argument(flag, dest=name, action="store_const", const=True, help=description)
            elif kind == "array":
                verb.add_argument(flag, dest=name, action="append", help=f"{description} Can be repeated.")
            else:
                must = name in schema["required"]
                verb.add_argument(
                    flag, dest=name, type=int if kind == "integer" else str, required=must, help=description
                )
    return parser.parse_args()


def main() -> int:
    tools = json.loads(Path(__file__).with_name("tools.json").read_text())
    arguments = vars(parse_arguments(tools))
    verb = arguments.pop("verb")
    if verb == "mcp":
        return bridge()
    given = {name: value for name, value in arguments.items() if value is not None}
    call = {"name": verb.replace("-", "_"), "arguments": given}
    try:
        answer = post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}) or {}
    except urllib.error.HTTPError as error:
        sys.stderr.write(
            "freehold: only the agent of a session can use this command\n" if error.code == 401 else f"{error}\n"
        )
        return 1
    except urllib.error.URLError as error:
        sys.stderr.write(f"freehold: the host does not answer: {error.reason}\n")
        return 1
    if "error" in answer:
        sys.stderr.write(f"freehold: {answer['error']['message']}\n")
        return 1
    result = answer["result"]
    failed = result.get("isError") is True
    texts = [part["text"] for part in result["content"] if part["type"] == "text"]
    (sys.stderr if failed else sys.stdout).write("\n".join(texts) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
