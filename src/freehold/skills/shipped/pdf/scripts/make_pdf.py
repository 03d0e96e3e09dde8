#!/usr/bin/env python3
"""make_pdf.py TEXT OUT.pdf [--title TEXT]: headings (#), lists (-) and paragraphs as a PDF of A4 pages."""

import argparse
import sys
import textwrap
import zlib
from pathlib import Path

WIDTH, HEIGHT, MARGIN = 595, 842, 60


def lay_out(text: str) -> list[tuple[int, bool, str]]:
    """Lines with their size and whether they are bold."""
    lines: list[tuple[int, bool, str]] = []
    for block in text.replace("\r", "").split("\n\n"):
        for line in (
            block.strip("\n").split("\n") if block.lstrip().startswith(("#", "-", "*")) else [" ".join(block.split())]
        ):
            level = len(line) - len(line.lstrip("#"))
            size = {1: 20, 2: 16, 3: 13}.get(level, 11)
            words = line.lstrip("#").strip()
            if words.startswith(("- ", "* ")):
                words = "\u2022 " + words[2:]
            for part in textwrap.wrap(words, int((WIDTH - 2 * MARGIN) / (size * 0.5))) or [""]:
                lines.append((size, level > 0, part))
        lines.append((6, False, ""))
    return lines


def encode(text: str) -> bytes:
    data = text.encode("cp1252", "replace")
    return data.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def make_pages(lines: list[tuple[int, bool, str]]) -> list[bytes]:
    pages, page, at = [], [], float(HEIGHT - MARGIN)
    for size, bold, words in lines:
        at -= size * 1.4
        if at < MARGIN:
            pages.append(b"\n".join(page))
            page, at = [], HEIGHT - MARGIN - size * 1.4
        if words:
            font = b"F2" if bold else b"F1"
            page.append(b"BT /%s %d Tf %d %.1f Td (%s) Tj ET" % (font, size, MARGIN, at, encode(words)))
    pages.append(b"\n".join(page))
    return pages


def write_pdf(target: Path, pages: list[bytes], title: str) -> None:
    first = 5
    kids = b" ".join(b"%d 0 R" % (first + 2 * number) for number in range(len(pages)))
    info = b"\xfe\xff" + title.encode("utf-16-be")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Lang (en) >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
    ]
    for number, page in enumerate(pages):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> /Contents %d 0 R >>"
            % (WIDTH, HEIGHT, first + 2 * number + 1)
        )
        packed = zlib.compress(page)
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed))
    objects.append(b"<< /Title <%s> >>" % info.hex().encode())
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        len(objects),
        start,
    )
    target.write_bytes(bytes(out))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--title", default="")
    given = parser.parse_args()
    pages = make_pages(lay_out(given.text.read_text()))
    write_pdf(given.out, pages, given.title or given.text.stem)
    print(f"Wrote {given.out}: {len(pages)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
