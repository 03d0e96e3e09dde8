"""A double of the Telegram Bot API, on a loopback port. It is not Telegram: it checks requests as the documentation has them.

https://core.telegram.org/bots/api: POST /bot<token>/METHOD with a JSON body; `{"ok": true, "result": …}`, or
`{"ok": false, "error_code": …, "description": …}`. A confirmed update is gone; an unconfirmed one comes again.
"""

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "1234567890:AAtest-token-of-the-double-0123456789abcd"
OWNER = 4242
STRANGER = 6666
_TOP = {
    "getMe": set[str](),
    "getUpdates": {"offset", "limit", "timeout", "allowed_updates"},
    "sendMessage": {"chat_id", "text", "link_preview_options", "reply_parameters"},
    "getFile": {"file_id"},
}


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@dataclass
class TelegramDouble:
    """`sent` has the messages of the bot. `mistakes` are requests that the documentation does not allow."""

    sent: list[dict[str, Any]] = field(default_factory=list)
    updates: list[dict[str, Any]] = field(default_factory=list)
    """Those that are not confirmed."""
    said: list[dict[str, Any]] = field(default_factory=list)
    """Every message to the bot."""
    files: dict[str, bytes] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)
    polls: int = 0
    port: int = 0
    answer: Callable[[str, dict[str, Any]], tuple[int, bytes] | None] = lambda _method, _body: None
    """What it answers instead: for a server that lies."""
    server: ThreadingHTTPServer | None = None
    _numbers: int = 100
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def say(self, text: str | None, *, sender: int = OWNER, reply_to: int | None = None, **more: Any) -> int:
        """A person writes to the bot. Returns the number of the message."""
        with self._changed:
            self._numbers += 1
            message = {
                "message_id": self._numbers,
                "from": {"id": sender, "is_bot": False, "first_name": "X"},
                "chat": {"id": sender, "type": "private"},
                "date": int(time.time()),
                "text": text,
                **({} if reply_to is None else {"reply_to_message": {"message_id": reply_to}}),
                **more,
            }
            self.said.append({name: value for name, value in message.items() if value is not None})
            self._add({"message": self.said[-1]})
            return int(self.said[-1]["message_id"])

    def push(self, update: dict[str, Any]) -> None:
        """Any update."""
        with self._changed:
            self._add(update)

    def _add(self, update: dict[str, Any]) -> None:
        self._numbers += 1
        self.updates.append({"update_id": self._numbers, **update})
        self._changed.notify_all()

    def texts(self) -> list[str]:
        return [one["text"] for one in list(self.sent)]

    def number_of(self, part: str) -> int:
        """The number of the last message of the bot with this text in it."""
        return int(next(one["message_id"] for one in reversed(self.sent) if part in one["text"]))

    def handle(self, path: str, body: bytes) -> tuple[int, bytes]:
        prefix = f"/bot{TOKEN}/"
        if not path.startswith(prefix):
            return 401, b'{"ok":false,"error_code":401,"description":"Unauthorized"}'
        method = path.removeprefix(prefix)
        given = json.loads(body or b"{}")
        other = self.answer(method, given)
        if other is not None:
            return other
        unknown = set(given) - _TOP.get(method, set())
        if method not in _TOP or unknown:
            self.mistakes.append(f"{method} {sorted(unknown)}")
            return 404, b'{"ok":false,"error_code":404,"description":"Not Found"}'
        result = getattr(self, f"_{method}")(given)
        return 200, json.dumps({"ok": True, "result": result}).encode()

    def _getMe(self, _given: dict[str, Any]) -> Any:
        return {"id": 1234567890, "is_bot": True, "first_name": "Freehold", "username": "my_freehold_bot"}

    def _getUpdates(self, given: dict[str, Any]) -> Any:
        offset, limit, timeout = given.get("offset", 0), given.get("limit", 100), given.get("timeout", 0)
        if not 1 <= limit <= 100 or not isinstance(given.get("allowed_updates", []), list):
            self.mistakes.append(f"getUpdates {given}")
        with self._changed:
            self.polls += 1
            if offset < 0:
                self.updates = self.updates[offset:]
            else:
                self.updates = [one for one in self.updates if one["update_id"] >= offset]
            if not self.updates and self.server is not None:
                self._changed.wait(min(timeout, 1))  # a real one holds it longer
            return self.updates[:limit]

    def _sendMessage(self, given: dict[str, Any]) -> Any:
        if type(given.get("chat_id")) is not int or not 1 <= utf16(given.get("text", "")) <= 4096:
            self.mistakes.append(f"sendMessage {given.get('chat_id')} {utf16(given.get('text', ''))}")
        with self._changed:
            self._numbers += 1
            sent = {**given, "message_id": self._numbers}
            self.sent.append(sent)
            return {"message_id": sent["message_id"], "date": int(time.time()), "chat": {"id": given["chat_id"]}}

    def _getFile(self, given: dict[str, Any]) -> Any:
        return {"file_id": given["file_id"], "file_path": f"documents/{given['file_id']}"}

    def start(self) -> None:
        """On the same port as before, when it has been started once."""
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                if double.server is None:
                    self.close_connection = True
                    return
                if self.headers["Content-Type"] != "application/json":
                    double.mistakes.append(f"content type {self.headers['Content-Type']}")
                self._reply(*double.handle(self.path, body))

            def do_GET(self) -> None:
                found = re.fullmatch(rf"/file/bot{re.escape(TOKEN)}/documents/(\w+)", self.path)
                content = double.files.get(found[1]) if found else None
                self._reply(404 if content is None else 200, content or b"")

            def _reply(self, status: int, content: bytes) -> None:
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):
                    super().handle()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Nothing listens any more. Idempotent."""
        server, self.server = self.server, None
        with self._changed:
            self._changed.notify_all()
        if server is not None:
            server.shutdown()
            server.server_close()


@contextlib.contextmanager
def running_telegram() -> Iterator[TelegramDouble]:
    double = TelegramDouble()
    double.start()
    try:
        yield double
    finally:
        double.stop()
        assert double.mistakes == []
