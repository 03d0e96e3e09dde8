#!/usr/bin/env python3
"""xlsx.py show|to-csv|from-csv: reads values of Excel files, and writes plain ones. Standard library only."""

import argparse
import csv
import io
import re
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
LINK = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
MAX_PART = 256 * 1024 * 1024
NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})([.][0-9]{1,15})?")


def read_part(book: zipfile.ZipFile, name: str) -> ElementTree.Element | None:
    if name not in book.namelist():
        return None
    if book.getinfo(name).file_size > MAX_PART:
        raise SystemExit(f"{name} is too large")
    data = book.read(name)
    if b"<!DOCTYPE" in data[:2000] or b"<!ENTITY" in data:
        raise SystemExit(f"{name} declares entities, which no spreadsheet needs")
    return ElementTree.fromstring(data)


def list_sheets(book: zipfile.ZipFile) -> dict[str, str]:
    workbook = read_part(book, "xl/workbook.xml")
    links = read_part(book, "xl/_rels/workbook.xml.rels")
    if workbook is None or links is None:
        raise SystemExit("This is not an Excel workbook")
    targets = {one.get("Id"): one.get("Target", "") for one in links}
    found = {}
    for sheet in workbook.iter(f"{MAIN}sheet"):
        target = targets.get(sheet.get(LINK), "").lstrip("/")
        found[sheet.get("name", "")] = target if target.startswith("xl/") else f"xl/{target}"
    return found


def read_sheet(book: zipfile.ZipFile, part: str) -> list[list[str]]:
    texts = read_part(book, "xl/sharedStrings.xml")
    shared = [] if texts is None else ["".join(t.text or "" for t in one.iter(f"{MAIN}t")) for one in texts]
    sheet = read_part(book, part)
    rows: list[list[str]] = []
    for row in [] if sheet is None else sheet.iter(f"{MAIN}row"):
        cells: dict[int, str] = {}
        for index, cell in enumerate(row.iter(f"{MAIN}c")):
            letters = re.match(r"[A-Z]+", cell.get("r", ""))
            column = column_number(letters[0]) if letters else index
            value = cell.find(f"{MAIN}v")
            if cell.get("t") == "inlineStr":
                cells[column] = "".join(t.text or "" for t in cell.iter(f"{MAIN}t"))
            elif value is not None and value.text is not None:
                cells[column] = shared[int(value.text)] if cell.get("t") == "s" else value.text
        rows.append([cells.get(column, "") for column in range(max(cells, default=-1) + 1)])
    return rows


def column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return min(number, 16384) - 1


def write_book(target: Path, sheets: dict[str, list[list[str]]]) -> None:
    names = list(sheets)
    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for n in range(1, len(names) + 1)
    )
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
        + types
        + "</Types>",
        "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
        + "".join(f'<sheet name={quoteattr(name[:31])} sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(names, 1))
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        + "".join(
            f'<Relationship Id="r{n}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in range(1, len(names) + 1)
        )
        + "</Relationships>",
    }
    for n, name in enumerate(names, 1):
        parts[f"xl/worksheets/sheet{n}.xml"] = write_sheet(sheets[name])
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n' + text)


def write_sheet(rows: list[list[str]]) -> str:
    out = io.StringIO()
    out.write('<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>')
    for row in rows:
        out.write("<row>")
        for value in row:
            if NUMBER.fullmatch(value):
                out.write(f"<c><v>{value}</v></c>")
            else:
                clean = "".join(one for one in value if one in "\t\n\r" or ord(one) >= 32)
                out.write(f'<c t="inlineStr"><is><t xml:space="preserve">{escape(clean)}</t></is></c>')
        out.write("</row>")
    out.write("</sheetData></worksheet>")
    return out.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    acts = parser.add_subparsers(dest="act", required=True)
    show = acts.add_parser("show")
    show.add_argument("book", type=Path)
    show.add_argument("--sheet")
    show.add_argument("--rows", type=int, default=20)
    to_csv = acts.add_parser("to-csv")
    to_csv.add_argument("book", type=Path)
    to_csv.add_argument("--sheet")
    to_csv.add_argument("out", type=Path)
    from_csv = acts.add_parser("from-csv")
    from_csv.add_argument("out", type=Path)
    from_csv.add_argument("sheets", nargs="+", metavar="NAME=FILE.csv")
    given = parser.parse_args()
    if given.act == "from-csv":
        sheets = {}
        for one in given.sheets:
            name, _, file = one.partition("=")
            sheets[name] = list(csv.reader(Path(file).read_text(encoding="utf-8-sig").splitlines()))
        write_book(given.out, sheets)
        print(f"Wrote {given.out}: {', '.join(f'{name} ({len(rows)} rows)' for name, rows in sheets.items())}")
        return 0
    with zipfile.ZipFile(given.book) as book:
        sheets = list_sheets(book)
        name = given.sheet or next(iter(sheets))
        if name not in sheets:
            raise SystemExit(f"There is no sheet {name!r}. The sheets are: {', '.join(sheets)}")
        rows = read_sheet(book, sheets[name])
    if given.act == "to-csv":
        with given.out.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        print(f"Wrote {given.out}: {len(rows)} rows of {name}")
        return 0
    print(f"Sheets: {', '.join(sheets)}. {name} has {len(rows)} rows.")
    csv.writer(sys.stdout).writerows(rows[: given.rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
