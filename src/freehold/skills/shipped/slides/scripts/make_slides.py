#!/usr/bin/env python3
"""make_slides.py DECK.md OUT.html [--title TEXT]: one HTML file from slides that are separated by lines ---."""

import argparse
import base64
import mimetypes
import re
import sys
from html import escape
from pathlib import Path

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>
:root{{color-scheme:light dark}}body{{margin:0;font:clamp(18px,2.4vw,34px)/1.4 system-ui,sans-serif}}
section{{display:none;box-sizing:border-box;min-height:100vh;padding:6vh 8vw;flex-direction:column;justify-content:center}}
section.on{{display:flex}}h1{{line-height:1.15;margin:0 0 .6em}}img{{max-width:100%;max-height:60vh;object-fit:contain}}
pre{{font-size:.7em;overflow:auto;padding:.8em;border:1px solid}}aside{{display:none;font-size:.6em;border-top:1px solid;margin-top:1.5em}}
.notes aside{{display:block}}nav{{position:fixed;right:1em;bottom:.6em;font-size:14px}}
@media print{{section{{display:flex;page-break-after:always}}nav{{display:none}}}}</style>
<main>{slides}</main><nav aria-live="polite"></nav><script>
const all=[...document.querySelectorAll("section")];let at=Math.max(0,(parseInt(location.hash.slice(1))||1)-1);
function show(n){{at=Math.min(Math.max(n,0),all.length-1);all.forEach((s,i)=>s.classList.toggle("on",i===at));
location.hash=at+1;document.querySelector("nav").textContent=(at+1)+" / "+all.length}}
addEventListener("keydown",e=>{{const go={{ArrowRight:at+1,ArrowDown:at+1," ":at+1,PageDown:at+1,ArrowLeft:at-1,ArrowUp:at-1,PageUp:at-1,
Home:0,End:all.length-1}}[e.key];if(go!==undefined){{e.preventDefault();show(go)}}if(e.key==="n")document.body.classList.toggle("notes")}});
addEventListener("click",e=>show(e.clientX<innerWidth/3?at-1:at+1));show(at)</script></html>
"""


def inline(text: str, folder: Path) -> str:
    def picture(found: re.Match[str]) -> str:
        file = folder / found[2]
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        data = base64.b64encode(file.read_bytes()).decode()
        return f'<img alt="{escape(found[1])}" src="data:{kind};base64,{data}">'

    parts = re.split(r"(!\[[^\]]*\]\([^)\s]+\))", text)
    out = []
    for part in parts:
        found = re.fullmatch(r"!\[([^\]]*)\]\(([^)\s]+)\)", part)
        if found:
            out.append(picture(found))
            continue
        words = escape(part)
        words = re.sub(r"`([^`]+)`", r"<code>\1</code>", words)
        out.append(re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", words))
    return "".join(out)


def make_slide(text: str, folder: Path) -> str:
    out, items, code = [], [], None
    for line in [*text.strip("\n").split("\n"), ""]:
        if line.startswith("```"):
            if code is None:
                code = []
            else:
                out.append(f"<pre>{escape(chr(10).join(code))}</pre>")
                code = None
            continue
        if code is not None:
            code.append(line)
            continue
        if line.startswith(("- ", "* ")):
            items.append(f"<li>{inline(line[2:], folder)}</li>")
            continue
        if items:
            out.append(f"<ul>{''.join(items)}</ul>")
            items = []
        if line.startswith("#"):
            out.append(f"<h1>{inline(line.lstrip('#').strip(), folder)}</h1>")
        elif line.startswith(">"):
            out.append(f"<blockquote>{inline(line[1:].strip(), folder)}</blockquote>")
        elif line.startswith("Note:"):
            out.append(f"<aside>{inline(line[5:].strip(), folder)}</aside>")
        elif line.strip():
            out.append(f"<p>{inline(line, folder)}</p>")
    if code is not None:
        raise SystemExit("A code block has no end")
    return f"<section>{''.join(out)}</section>"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("deck", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--title")
    given = parser.parse_args()
    texts = [one for one in re.split(r"^---[ \t]*$", given.deck.read_text(), flags=re.MULTILINE) if one.strip()]
    if not texts:
        raise SystemExit(f"There are no slides in {given.deck}")
    slides = "".join(make_slide(one, given.deck.parent) for one in texts)
    given.out.write_text(PAGE.format(title=escape(given.title or given.deck.stem), slides=slides))
    print(f"Wrote {given.out}: {len(texts)} slides")
    return 0


if __name__ == "__main__":
    sys.exit(main())
