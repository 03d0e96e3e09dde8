"""A remote MCP server whose answers are streams of events. It asks the client for its folders, and waits for the answer."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAIT = 60
_replies: dict[str, dict[str, Any]] = {}
_has_replied = threading.Event()


class OddStreamHandler(BaseHTTPRequestHandler):
    """Its events are as the standard allows them: of several lines, with JSON that is not escaped."""

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = message.get("method")
        if method is None:
            _replies[message["id"]] = message
            _has_replied.set()
        if method is None or "id" not in message:
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        result: dict[str, Any]
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd"}}
        elif method == "tools/list":
            result = {"tools": [{"name": "echo", "description": "Says more.", "inputSchema": {"type": "object"}}]}
        else:
            text = f"{message['params']['arguments']['text']}\u2028two\u0085three {self._ask()}"
            result = {"content": [{"type": "text", "text": text}]}
        self._send({"id": message["id"], "result": result})

    def _ask(self) -> object:
        _has_replied.clear()
        self._send({"id": "folders", "method": "roots/list"})
        return _replies.get("folders", {}).get("error", {}).get("code") if _has_replied.wait(WAIT) else "nothing"

    def _send(self, message: dict[str, Any]) -> None:
        lines = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, indent=1).split("\n")
        text = ": a comment\r\nid: 7\r\n" + "".join(f"data:{line}\r\n" for line in lines) + "\r\n"
        self.wfile.write(b"event: other\ndata: not a message\n\n" + text.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Silent."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), OddStreamHandler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
