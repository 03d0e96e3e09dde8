"""A second terminal filter, written from the rules alone: one character after the other, over the whole output at once.

It is slow and keeps no state between calls. The tests compare the real filter with it.
"""

import unicodedata

ST = "\x1b\\"
COUNTED = "@ABCDEFGHILMPSTXZ^`abdef}~"


def naive_filter(data: bytes) -> bytes:
    start = 0
    while start < len(data) and 0x80 <= data[start] < 0xC0:
        start += 1
    text = _without_unfinished_character(data[start:]).decode("utf-8", "replace")
    drawn: list[str] = []
    at, marks = 0, 16
    while at < len(text):
        char = text[at]
        if char == "\x1b" or "\x80" <= char <= "\x9f":
            marks = 16
            at, written = _sequence(text, at)
            drawn.append(written)
            continue
        at += 1
        if char < " " or char == "\x7f":
            marks = 16
        elif _is_mark(char):
            marks += 1
            if marks > 16:
                continue
        else:
            marks = 0
        drawn.append(char)
    return "".join(drawn).encode()


def _without_unfinished_character(data: bytes) -> bytes:
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            try:
                data[-back:].decode()
            except UnicodeDecodeError as error:
                return data[:-back] if error.reason == "unexpected end of data" else data
            return data
        if byte < 0x80:
            return data
    return data


def _is_mark(char: str) -> bool:
    if unicodedata.category(char) in {"Mn", "Mc", "Me", "Cf"}:
        return True
    return 0x1160 <= ord(char) <= 0x11FF or ord(char) == 0x06DE


def _sequence(text: str, at: int) -> tuple[int, str]:
    """The position after the sequence that starts here, and what is drawn of it."""
    introducer = text[at : at + 2] if text[at] == "\x1b" else text[at]
    if introducer == "\x1b":
        return len(text), ""
    body = at + len(introducer)
    if introducer in ("\x1b[", "\x9b"):
        return _control(text, body)
    if introducer in ("\x1bP", "\x90"):
        return _string(text, body, "\x1bP")
    if introducer in ("\x1b]", "\x9d"):
        return _string(text, body, "\x1b]")
    if introducer in ("\x1bX", "\x1b^", "\x1b_", "\x98", "\x9e", "\x9f"):
        return _string(text, body, "")
    if introducer[0] != "\x1b":
        return body, ""
    end = at + 1
    while end < len(text) and " " <= text[end] <= "/" and end - at <= 4:
        end += 1
    if end == len(text):
        return end, ""
    return (end + 1, text[at : end + 1]) if "0" <= text[end] <= "~" else (end, "")


def _control(text: str, body: int) -> tuple[int, str]:
    at = body
    while at < len(text) and "0" <= text[at] <= "?" and at - body < 256:
        at += 1
    parameters_end = at
    while at < len(text) and " " <= text[at] <= "/" and at - parameters_end < 4:
        at += 1
    if at == len(text):
        return at, ""
    final = text[at]
    if not "@" <= final <= "~":
        return at, ""
    numbers = [""]
    separators = 0
    for char in text[body:parameters_end]:
        if char.isdigit():
            numbers[-1] += char
        else:
            separators += char in ";:"
            numbers += [char, ""]
    if final == "t" or separators >= 32:
        return at + 1, ""
    most = 1000 if final in COUNTED else 9999
    limited = [str(most) if part.isdigit() and (len(part) > 4 or int(part) > most) else part for part in numbers]
    return at + 1, "\x1b[" + "".join(limited) + text[parameters_end:at] + final


def _string(text: str, body: int, introducer: str) -> tuple[int, str]:
    at = body
    while at < len(text) and text[at] not in "\x07\x18\x1a\x1b" and not "\x80" <= text[at] <= "\x9f":
        at += 1
    if at == len(text) or text[at:] == "\x1b":
        return len(text), ""
    if text[at] in "\x18\x1a":
        return at + 1, ""
    ended = text[at] in "\x07\x9c" or text[at : at + 2] == ST
    after = at + (2 if text[at : at + 2] == ST else 1) if ended else at
    if not ended or introducer == "" or at - body > 4096:
        return after, ""
    return after, introducer + naive_filter(text[body:at].encode()).decode() + ST
