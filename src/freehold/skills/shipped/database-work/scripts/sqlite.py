#!/usr/bin/env python3
"""sqlite.py FILE schema | query SQL [--csv OUT] [--explain] [--rows N]: reads a SQLite file, and cannot change it."""

import argparse
import csv
import sqlite3
import sys
from pathlib import Path
from urllib.parse import quote


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    acts = parser.add_subparsers(dest="act", required=True)
    acts.add_parser("schema")
    query = acts.add_parser("query")
    query.add_argument("sql")
    query.add_argument("--csv", type=Path)
    query.add_argument("--explain", action="store_true")
    query.add_argument("--rows", type=int, default=50)
    given = parser.parse_args()
    if not given.file.exists():
        raise SystemExit(f"There is no {given.file}")
    db = sqlite3.connect(f"file:{quote(str(given.file.resolve()))}?mode=ro", uri=True)
    db.execute("PRAGMA query_only = ON")
    try:
        if given.act == "schema":
            show_schema(db)
        else:
            run_query(db, given)
    except sqlite3.Error as error:
        raise SystemExit(f"SQLite says: {error}") from None
    return 0


def show_schema(db: sqlite3.Connection) -> None:
    tables = db.execute(
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
    )
    for name, kind in tables.fetchall():
        quoted = name.replace('"', '""')
        (count,) = db.execute(f'SELECT count(*) FROM "{quoted}"').fetchone()
        print(f"{kind} {name}: {count} rows")
        for _, column, type_, required, default, key in db.execute(f'PRAGMA table_info("{quoted}")'):
            marks = [
                *(["key"] if key else []),
                *(["not null"] if required else []),
                *([f"default {default}"] if default is not None else []),
            ]
            print(f"  {column} {type_} {' '.join(marks)}".rstrip())
        for row in db.execute(f'PRAGMA foreign_key_list("{quoted}")'):
            print(f"  {row[3]} refers to {row[2]}.{row[4]}")
        for row in db.execute(f'PRAGMA index_list("{quoted}")'):
            columns = [one[2] or "expression" for one in db.execute(f'PRAGMA index_info("{row[1]}")')]
            print(f"  index {row[1]} ({', '.join(columns)}){' unique' if row[2] else ''}")


def run_query(db: sqlite3.Connection, given: argparse.Namespace) -> None:
    if given.explain:
        for row in db.execute(f"EXPLAIN QUERY PLAN {given.sql}"):
            print(row[3])
        return
    cursor = db.execute(given.sql)
    names = [one[0] for one in cursor.description or ()]
    if given.csv is not None:
        with given.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            count = 0
            for row in cursor:
                writer.writerow(row)
                count += 1
        print(f"Wrote {given.csv}: {count} rows")
        return
    writer = csv.writer(sys.stdout)
    writer.writerow(names)
    rows = cursor.fetchmany(given.rows + 1)
    writer.writerows(rows[: given.rows])
    if len(rows) > given.rows:
        print(f"(more than {given.rows} rows: use --rows or --csv)", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
