"""Texts that are made to keep a page from being drawn. The test and `bench/web.py` let an agent say them."""


def _numbered(count: int, unit: str) -> str:
    return "".join(unit.format(n=number, run="`" * (number + 1), quotes="> " * number) for number in range(count))


HOSTILE_TEXTS: dict[str, str] = {
    "nested quotes": "> " * 2_000,
    "nested lists": "- " * 2_000,
    "nested ordered lists": "1. " * 2_000,
    "quotes and lists": "> - " * 1_000,
    "quotes in lines": _numbered(200, "{quotes}a\n"),
    "a long line": "a" * 100_000,
    "a line of half a megabyte": "word " * 100_000,
    "footnotes": _numbered(20_000, "[^{n}]") + "\n\n" + _numbered(2_000, "[^{n}]: note\n"),
    "growing backtick runs": _numbered(500, "{run}a"),
    "nested emphasis": "*" * 4_000 + "a" + "*" * 4_000,
    "mixed emphasis": "*a_ " * 4_000,
    "closing brackets": "]" * 8_000,
    "comments": "<!-- " * 3_000,
    "underlined headings": "a\n=\n" * 4_000,
    "a wide table with short rows": "|a" * 1_500 + "\n" + "|-" * 1_500 + "\n" + "a\n" * 1_500,
    "a long table": "|a|b|c|d|\n|-|-|-|-|\n" + "|1|2|3|4|\n" * 5_000,
    "a giant link definition": "[a]: <" + "x" * 100_000 + ">\n\n[a]",
    "many images": "![a](https://example.com/a.png)" * 5_000,
    "many link definitions": _numbered(5_000, "[a{n}]: https://example.com\n"),
    "open brackets in lines": "[a\n" * 50_000,
    "marks above one letter": "a" + "\u0301" * 50_000,
    "reordering characters": "\u202e\u2066abc" * 5_000,
    "characters without a width": "a\u200b" * 50_000,
    "deep code": "```json\n" + "[" * 19_000 + "\n```",
    "a long code block": "```py\n" + "x = [1, 2, 'three']  # four\n" * 10_000 + "```",
    "an ordinary long answer": "Some **bold** words, `code` and a [link](https://example.com/1).\n\n- one\n- two\n\n"
    * 150,
}
