"""The skills that come with Freehold: valid, clean, and their scripts do what the instructions say."""

import csv
import json
import re
import sqlite3
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import freehold.skills
from freehold.skills.checks import check_package, list_scripts
from freehold.skills.sources import FoundSkill, read_source

SHIPPED = Path(freehold.skills.__file__).parent / "shipped"
SKILLS = {one.package.name: one for one in read_source(str(SHIPPED))}


def run(skill: str, script: str, *words: str | Path, cwd: Path, code: int = 0, given: str | None = None) -> str:
    """The output of a script of a skill, with Python alone."""
    command = [sys.executable, "-I", str(SHIPPED / skill / "scripts" / script), *map(str, words)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, input=given, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("one", SKILLS.values(), ids=SKILLS)
def test_a_shipped_skill_is_valid_and_its_text_names_only_files_that_exist(one: FoundSkill) -> None:
    package = one.package
    assert one.source.part == package.name
    assert check_package(package) == []
    named = set(re.findall(r"scripts/[\w.]+", package.instructions))
    assert named == {script.path for script in list_scripts(package)}
    assert all(package.files[path].executable for path in named)


def test_a_chart_is_drawn_from_csv_and_json_and_rows_without_numbers_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("month,sales\nJan,10\nFeb,x\nMar <b>,30\n")
    said = run("data-to-chart", "chart.py", "a.csv", "--x", "month", "--y", "sales", "--out", "a.svg", cwd=tmp_path)
    assert "2 rows, 1 left out" in said
    assert "<title>sales by month</title>" in (tmp_path / "a.svg").read_text()
    assert "Mar &lt;b&gt;" in (tmp_path / "a.svg").read_text()
    (tmp_path / "a.json").write_text(json.dumps([{"x": 1, "y": 2}, {"x": 5, "y": 9}]))
    for kind in ("bar", "scatter"):
        words = ("a.json", "--x", "x", "--y", "y", "--kind", kind, "--out", f"{kind}.svg")
        run("data-to-chart", "chart.py", *words, cwd=tmp_path)
    assert "The columns are: x, y" in run(
        "data-to-chart", "chart.py", "a.json", "--x", "z", "--y", "y", "--out", "b.svg", cwd=tmp_path, code=1
    )


def test_a_workbook_is_written_and_read_back_and_text_stays_text(tmp_path: Path) -> None:
    rows = [["id", "note"], ["007", "=1+1"], ["12.5", 'a "b" <c>']]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    run("spreadsheet", "xlsx.py", "from-csv", "a.xlsx", "Data=a.csv", cwd=tmp_path)
    assert "Data has 3 rows" in run("spreadsheet", "xlsx.py", "show", "a.xlsx", cwd=tmp_path)
    run("spreadsheet", "xlsx.py", "to-csv", "a.xlsx", "b.csv", cwd=tmp_path)
    assert list(csv.reader((tmp_path / "b.csv").read_text().splitlines())) == rows


def test_a_pdf_is_made_and_its_text_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Plan (x)\n\nÜber \\ all.\n\n- one\n- two\n\n" + "word " * 3000)
    pages = re.search(r": (\d+) pages", run("pdf", "make_pdf.py", "a.md", "a.pdf", cwd=tmp_path))
    said = run("pdf", "read_pdf.py", "a.pdf", cwd=tmp_path)
    assert pages is not None
    assert int(pages[1]) > 1
    assert f"Pages: {pages[1]}" in said
    for words in ("Plan (x)", "Über \\ all.", "• two"):
        assert words in said


def test_slides_hold_their_pictures_and_nothing_of_the_text_becomes_a_tag(tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(b"png")
    deck = "# <script>x</script>\n\n- **one**\nNote: speak\n---\n![a cat](p.png)\n```\na < b\n```\n"
    (tmp_path / "d.md").write_text(deck)
    assert "2 slides" in run("slides", "make_slides.py", "d.md", "d.html", cwd=tmp_path)
    text = (tmp_path / "d.html").read_text()
    assert "&lt;script&gt;x" in text
    assert 'alt="a cat" src="data:image/png;base64,cG5n"' in text
    assert "<pre>a &lt; b</pre>" in text


@pytest.fixture
def server() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        tries = 0

        def do_GET(self) -> None:
            if self.path == "/away":
                self.send_response(302)
                self.send_header("location", "http://127.0.0.2:1/")
                self.end_headers()
                return
            if self.path == "/busy" and type(self).tries < 1:
                type(self).tries += 1
                self.send_response(429)
                self.send_header("retry-after", "0")
                self.end_headers()
                return
            body = b'[{"a": 1}]' if "list" in self.path or self.path == "/busy" else b"<p>Hello<script>x</script><p>you"
            self.send_response(200)
            self.send_header("content-type", "application/json" if body[:1] == b"[" else "text/html")
            if self.path == "/list":
                self.send_header("link", '</list2>; rel="next"')
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Not on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


def test_a_page_is_kept_with_its_source_and_a_redirect_elsewhere_is_not_followed(server: str, tmp_path: Path) -> None:
    assert "Hello\nyou" in run("web-research", "fetch.py", f"{server}/", cwd=tmp_path)
    (source,) = [json.loads(line) for line in (tmp_path / "research/sources.jsonl").read_text().splitlines()]
    assert source["url"] == f"{server}/"
    assert "script" not in (tmp_path / "research" / source["file"]).read_text()
    assert "leads to another host" in run("web-research", "fetch.py", f"{server}/away", cwd=tmp_path, code=1)
    assert "not a web address" in run("web-research", "fetch.py", "file:///etc/passwd", cwd=tmp_path, code=1)


def test_an_api_is_called_with_patience_and_by_pages(server: str, tmp_path: Path) -> None:
    assert "again in 0 s" in run("rest-client", "call.py", "GET", f"{server}/busy", cwd=tmp_path)
    run("rest-client", "call.py", "get", f"{server}/list", "--pages", "5", "--out", "a.json", cwd=tmp_path)
    assert json.loads((tmp_path / "a.json").read_text()) == [{"a": 1}, {"a": 1}]


def test_a_port_that_answers_is_told_from_one_that_does_not(server: str, tmp_path: Path) -> None:
    port = server.rpartition(":")[2]
    assert "answers with 200" in run("show-a-page", "wait_for_port.py", port, cwd=tmp_path)
    assert "does not answer" in run("show-a-page", "wait_for_port.py", "1", "0.5", cwd=tmp_path, code=1)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "feat: begin"], ["tag", "v1"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    (tmp_path / "a.py").write_text("def f():\n    return eval('1')\n")
    subprocess.run([*git, "add", "-A"], cwd=tmp_path, check=True)
    return tmp_path


def test_what_should_not_be_committed_is_named(repository: Path) -> None:
    (repository / "key.txt").write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    (repository / "odd.py").write_text("a = 1 # \u202e\n")
    subprocess.run(["git", "add", "-A"], cwd=repository, check=True)
    said = run("git-hygiene", "check_commit.py", cwd=repository, code=1)
    for words in ("the branch is main", "key.txt: looks like a secret", "odd.py: hidden characters U+202E"):
        assert words in said


def test_changes_are_described_for_a_review_and_for_release_notes(repository: Path) -> None:
    said = run("code-review", "describe_diff.py", "v1", cwd=repository)
    assert "no test of this name changed: a.py" in said
    assert "look: a.py:2 (runs text as code)" in said
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "fix!: mend f"]
    subprocess.run(git, cwd=repository, check=True)
    said = run("release-notes", "list_changes.py", cwd=repository)
    assert "v1..HEAD: 1 commits" in said
    assert re.search(r"Breaking\n  \w+ fix!: mend f", said)


def test_outcomes_of_many_runs_are_grouped(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        "import pathlib, sys\np = pathlib.Path('n')\nn = int(p.read_text()) if p.exists() else 0\n"
        "p.write_text(str(n + 1))\nprint('odd' if n % 2 else 'even')\nsys.exit(n % 2)\n"
    )
    said = run("debug-a-crash", "repeat.py", "4", "--", sys.executable, "x.py", cwd=tmp_path, code=1)
    assert "2 × exit 0" in said
    assert "2 × exit 1" in said


def test_names_without_a_test_are_found(tmp_path: Path) -> None:
    for folder, text in (("src", "def known(): ...\ndef unknown(): ...\ndef _own(): ...\n"), ("tests", "known()\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text(text)
    said = run("write-tests", "find_untested.py", "src", "tests", cwd=tmp_path)
    assert "a.py:2 unknown" in said
    assert "1 of 2" in said


def test_a_database_is_read_and_cannot_be_changed(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("CREATE TABLE pet (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        db.execute("INSERT INTO pet (name) VALUES ('Mia')")
    db.close()
    assert "table pet: 1 rows" in run("database-work", "sqlite.py", "a.db", "schema", cwd=tmp_path)
    assert "1,Mia" in run("database-work", "sqlite.py", "a.db", "query", "SELECT * FROM pet", cwd=tmp_path)
    said = run("database-work", "sqlite.py", "a.db", "query", "DELETE FROM pet", cwd=tmp_path, code=1)
    assert "SQLite says" in said


def test_free_time_respects_repetitions_and_zones(tmp_path: Path) -> None:
    lines = [
        *("BEGIN:VCALENDAR", "BEGIN:VEVENT", "SUMMARY:Daily", "DTSTART;TZID=Europe/Berlin:20260302T090000"),
        *("DTEND;TZID=Europe/Berlin:20260302T100000", "RRULE:FREQ=WEEKLY;BYDAY=MO,WE", "END:VEVENT"),
        *(
            "BEGIN:VEVENT",
            "SUMMARY:Odd",
            "DTSTART:20260303T080000Z",
            "DURATION:PT8H",
            "RRULE:FREQ=MONTHLY",
            "END:VEVENT",
        ),
        "END:VCALENDAR",
    ]
    (tmp_path / "c.ics").write_text("\r\n".join(lines))
    words = ("c.ics", "--from", "2026-03-02", "--days", "3", "--zone", "Europe/Berlin")
    said = run("scheduling", "calendar_file.py", "free", *words, "--hours", "9-17", cwd=tmp_path)
    assert "Mon 2026-03-02 10:00-17:00" in said
    assert "Wed 2026-03-04 10:00-17:00" in said
    assert "Tue" not in said
    assert "Not expanded, only its first time is known: Odd" in said
    make = ("make", "A; b", "2026-03-02T10:00", "45", "--zone", "Europe/Berlin", "--out", "m.ics")
    run("scheduling", "calendar_file.py", *make, cwd=tmp_path)
    assert "DTSTART:20260302T090000Z" in (tmp_path / "m.ics").read_text()
    listed = run("scheduling", "calendar_file.py", "list", "m.ics", *words[1:], cwd=tmp_path)
    assert "Mon 2026-03-02 10:00-10:45 A; b" in listed


def test_the_shape_and_the_slips_of_a_document_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "# One\n\nthe the [x](#two) [y](#none)\n\n### Two\n\n```\n# no\n```\ntext\n\n# One\n"
    )
    assert "  (1 words)" not in run("long-documents", "document.py", "outline", "a.md", cwd=tmp_path).splitlines()[0]
    assert run("long-documents", "document.py", "part", "a.md", "two", cwd=tmp_path).startswith("### Two")
    said = run("long-documents", "document.py", "check", "a.md", cwd=tmp_path, code=1)
    for words in ("skips a level", "the same heading", "no section for the link #none", "'the' stands twice"):
        assert words in said
    assert "#two" not in said


def png(path: Path, rows: list[bytes], channels: int) -> None:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", len(rows[0]) // channels, len(rows), 8, {3: 2, 1: 0}[channels], 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b""))


def test_a_picture_is_measured_cropped_resized_and_made_grey(tmp_path: Path) -> None:
    png(tmp_path / "a.png", [bytes([255, 0, 0] * 2 + [0, 0, 255] * 2)] * 2, 3)
    assert "PNG 4×2" in run("images", "png.py", "info", "a.png", cwd=tmp_path)
    assert "PNG 2×1" in run("images", "png.py", "resize", "a.png", "b.png", "2", cwd=tmp_path)
    assert "PNG 1×1" in run("images", "png.py", "crop", "b.png", "c.png", "1", "0", "1", "1", cwd=tmp_path)
    run("images", "png.py", "grey", "c.png", "d.png", cwd=tmp_path)
    data = (tmp_path / "d.png").read_bytes()
    start = data.index(b"IDAT") + 4
    assert zlib.decompress(data[start : start + struct.unpack(">I", data[start - 8 : start - 4])[0]]) == b"\0" + bytes(
        [29]
    )
    assert "not inside" in run("images", "png.py", "crop", "a.png", "e.png", "3", "0", "2", "1", cwd=tmp_path, code=1)


def test_what_a_page_lacks_is_found_and_a_good_page_is_clean(tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text(
        "<html><body><h3>x</h3><img src=a><input id=q><button></button><div onclick=x()>y</div>"
        '<p style="color:#777;background:#888">z</p><i id=q></i>'
    )
    said = run("accessibility-check", "check_page.py", "bad.html", cwd=tmp_path, code=1)
    for words in (
        "no lang",
        "no alt",
        "no label",
        "no words",
        "not reached by keys",
        "contrast",
        "there twice",
        "no title",
    ):
        assert words in said
    (tmp_path / "good.html").write_text(
        '<html lang=en><title>A</title><main><h1>A</h1><img src=a alt=""><label>Q <input></label>'
        '<button aria-label="Go"><svg></svg></button><a href=x><img src=b alt="Home"></a></main>'
    )
    assert "0 findings" in run("accessibility-check", "check_page.py", "good.html", cwd=tmp_path)


def test_time_and_memory_of_a_script_are_told_and_two_commands_compared(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("def slow():\n    return sum(range(300000))\nkept = [slow() for _ in range(3)]\n")
    said = run("performance-profile", "profile_python.py", "s.py", cwd=tmp_path)
    assert "slow" in said
    assert "Peak of Python's memory" in said
    words = ("--runs", "3", "--", sys.executable, "-c", "1", "---", sys.executable, "-c", "1")
    assert "chance alone" in run("performance-profile", "compare.py", *words, cwd=tmp_path)


def test_a_proposed_skill_is_checked_by_the_skill_that_writes_skills(tmp_path: Path) -> None:
    folder = tmp_path / "tea"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: tea\ndescription: Makes tea.\n---\n\nRun scripts/boil.sh.\n")
    (folder / "scripts" / "boil.sh").write_text("#!/bin/sh\n")
    said = run("write-a-skill", "check_skill.py", folder, cwd=tmp_path, code=1)
    assert said == "scripts/boil.sh is a script and not executable: chmod +x\n"
    (folder / "scripts" / "boil.sh").chmod(0o755)
    assert run("write-a-skill", "check_skill.py", folder, cwd=tmp_path) == "tea is fine\n"
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "SKILL.md").write_text("---\nname: Tea\ncolour: red\n---\nscripts/gone.py and \u202e\n")
    said = run("write-a-skill", "check_skill.py", folder, cwd=tmp_path, code=1)
    for words in ("'Tea' is not", "0 characters", "unknown field colour", "scripts/gone.py", "is a link", "U+202E"):
        assert words in said
