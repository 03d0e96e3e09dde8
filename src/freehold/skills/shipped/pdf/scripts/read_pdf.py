#!/usr/bin/env python3
"""read_pdf.py FILE.pdf: the number of pages, and the text of streams that are plain or deflated."""

import contextlib
import re
import sys
import zlib
from pathlib import Path

MAX_STREAM = 64 * 1024 * 1024
STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)
SHOWN = re.compile(rb"\((?:\\.|[^\\()])*\)\s*Tj|\[(?:[^\]\\]|\\.)*\]\s*TJ|\bET\b", re.DOTALL)
TEXT = re.compile(rb"\(((?:\\.|[^\\()])*)\)", re.DOTALL)


def unescape(data: bytes) -> str:
    data = re.sub(rb"\\([0-7]{1,3})", lambda found: bytes([int(found[1], 8) & 255]), data)
    return re.sub(rb"\\(.)", rb"\1", data, flags=re.DOTALL).decode("cp1252", "replace")


def main() -> int:
    data = Path(sys.argv[1]).read_bytes()
    if not data.startswith(b"%PDF-"):
        print(f"{sys.argv[1]} is not a PDF", file=sys.stderr)
        return 1
    pages = re.findall(rb"/Type\s*/Page(?![A-Za-z])", data)
    print(f"Pages: {len(pages)}")
    found = False
    for stream in STREAM.finditer(data):
        content = stream[1]
        with contextlib.suppress(zlib.error):
            content = zlib.decompressobj().decompress(content, MAX_STREAM)
        for shown in SHOWN.finditer(content):
            words = "".join(unescape(one[1]) for one in TEXT.finditer(shown[0]))
            if words:
                found = True
                print(words)
    if not found:
        print("No text was found: the pages may be pictures, or use fonts of their own.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
