#!/usr/bin/env python3
"""png.py info FILE... | resize IN OUT WIDTH | crop IN OUT X Y WIDTH HEIGHT | grey IN OUT: pictures with only Python."""

import struct
import sys
import zlib
from pathlib import Path

MAX_PIXELS = 50_000_000
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
MARK = b"\x89PNG\r\n\x1a\n"


def describe(path: Path) -> str:
    data = path.read_bytes()
    size = None
    if data.startswith(MARK):
        kind, size = "PNG", struct.unpack(">II", data[16:24])
    elif data[:6] in (b"GIF87a", b"GIF89a"):
        kind, size = "GIF", struct.unpack("<HH", data[6:10])
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "WebP"
        if data[12:16] == b"VP8X":
            size = tuple(int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
    elif data.startswith(b"\xff\xd8"):
        kind, size = "JPEG", jpeg_size(data)
    else:
        kind = "not a picture that is known here"
    return f"{path}: {kind}{f' {size[0]}×{size[1]}' if size else ''}, {len(data)} bytes"


def jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        if 0xC0 <= data[at + 1] <= 0xCF and data[at + 1] not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return None


def read_png(path: Path) -> tuple[int, int, int, list[bytes]]:
    """Width, height, channels and rows."""
    data = path.read_bytes()
    if not data.startswith(MARK):
        raise SystemExit(f"{path} is not a PNG")
    at, packed, head = 8, b"", b""
    while at + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        at += 12 + length
        if kind == b"IHDR":
            head = body
        elif kind == b"IDAT":
            packed += body
        elif kind == b"IEND":
            break
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    if depth != 8 or colour not in CHANNELS or interlaced:
        raise SystemExit(
            f"{path} has {depth} bits, colour type {colour}{', interlaced' if interlaced else ''}: use another program"
        )
    if width * height > MAX_PIXELS:
        raise SystemExit(f"{path} has {width * height} pixels, which is too many here")
    channels = CHANNELS[colour]
    line = width * channels
    raw = zlib.decompressobj().decompress(packed, (line + 1) * height)
    return width, height, channels, unfilter(raw, line, channels, height)


def unfilter(raw: bytes, line: int, step: int, height: int) -> list[bytes]:
    rows, before = [], bytearray(line)
    for number in range(height):
        start = number * (line + 1)
        kind, row = raw[start], bytearray(raw[start + 1 : start + 1 + line])
        for i in range(line):
            left = row[i - step] if i >= step else 0
            up = before[i]
            corner = before[i - step] if i >= step else 0
            if kind == 1:
                row[i] = (row[i] + left) & 255
            elif kind == 2:
                row[i] = (row[i] + up) & 255
            elif kind == 3:
                row[i] = (row[i] + (left + up) // 2) & 255
            elif kind == 4:
                guess = left + up - corner
                nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[
                    2
                ]
                row[i] = (row[i] + nearest) & 255
        rows.append(bytes(row))
        before = row
    return rows


def write_png(path: Path, width: int, channels: int, rows: list[bytes]) -> None:
    colour = {count: kind for kind, count in CHANNELS.items()}[channels]

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, len(rows), 8, colour, 0, 0, 0)
    packed = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    path.write_bytes(MARK + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b""))


def resize(width: int, height: int, channels: int, rows: list[bytes], new: int) -> list[bytes]:
    """Each new pixel is the average of those that it covers."""
    tall = max(1, round(height * new / width))
    out = []
    for y in range(tall):
        top, bottom = y * height // tall, max(y * height // tall + 1, (y + 1) * height // tall)
        line = bytearray()
        for x in range(new):
            left, right = x * width // new, max(x * width // new + 1, (x + 1) * width // new)
            count = (bottom - top) * (right - left)
            for channel in range(channels):
                line.append(
                    sum(sum(row[left * channels + channel : right * channels : channels]) for row in rows[top:bottom])
                    // count
                )
        out.append(bytes(line))
    return out


def main() -> int:
    words = sys.argv[1:]
    if len(words) < 2 or words[0] not in ("info", "resize", "crop", "grey"):
        raise SystemExit(__doc__)
    if words[0] == "info":
        print("\n".join(describe(Path(one)) for one in words[1:]))
        return 0
    source, target, *numbers = words[1:]
    width, height, channels, rows = read_png(Path(source))
    if words[0] == "resize":
        width_now = int(numbers[0])
        rows = resize(width, height, channels, rows, width_now)
    elif words[0] == "crop":
        x, y, width_now, tall = map(int, numbers)
        if x < 0 or y < 0 or width_now < 1 or tall < 1 or x + width_now > width or y + tall > height:
            raise SystemExit(f"The picture has {width}×{height} pixels: that part is not inside")
        rows = [row[x * channels : (x + width_now) * channels] for row in rows[y : y + tall]]
    else:
        width_now = width
        if channels >= 3:
            kept = 2 if channels == 4 else 1
            rows = [
                bytes(
                    value
                    for i in range(0, len(row), channels)
                    for value in ((row[i] * 299 + row[i + 1] * 587 + row[i + 2] * 114) // 1000, *row[i + 3 : i + 4])
                )
                for row in rows
            ]
            channels = kept
    write_png(Path(target), width_now, channels, rows)
    print(describe(Path(target)))
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
