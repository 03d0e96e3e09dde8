#!/usr/bin/python3
"""Stands in for code-server in tests of the walls around it: the same options, password, port, and a page that shows a file."""

import http.server
import os
import sys
from pathlib import Path

PORT = int(sys.argv[sys.argv.index("--bind-addr") + 1].rpartition(":")[2])
PASSWORD = os.environ["HASHED_PASSWORD"]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        knows = f"code-server-session={PASSWORD}" in (self.headers.get("cookie") or "")
        body = (
            f"<title>Editor</title><p id=files>{' '.join(sorted(one.name for one in Path.cwd().iterdir()))}</p>"
            if knows
            else "Sign in"
        )
        self.send_response(200 if knows else 401)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *words: object) -> None:
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
