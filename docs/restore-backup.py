#!/usr/bin/env python3
"""Restore a Freehold backup without Freehold: restore-backup.py REPOSITORY KEY-FILE TARGET [NUMBER]

REPOSITORY is a folder (copy a bucket with any tool first), KEY-FILE has the recovery key, TARGET does not exist yet.
Needs Python 3.9, and the programs age and zstd. The format is described in backup-format.md.
"""

import hashlib, hmac, io, json, os, sqlite3, stat, subprocess, sys, tarfile
from pathlib import Path

repository, key_file, target = map(Path, sys.argv[1:4])
cache, key = target / "restore-blobs", target / "restore-key"
cache.mkdir(parents=True, mode=0o700)
run = lambda *command, data=None: subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout
secret = run("age", "-d", "-i", key_file, repository / "key.age").strip()
key.touch(0o600), key.write_bytes(secret + b"\n")
names, seals = (hmac.digest(secret, b"freehold backup 1 " + word, "sha256") for word in (b"names", b"seals"))

def open_named(path, kind):
    data = run("age", "-d", "-i", key, path)
    assert path.name == hmac.digest(names, kind + b"\n" + hashlib.sha256(data).digest(), "sha256").hex()[:40], f"{path} was changed"
    return run("zstd", "-dcq", data=data)

def blob(digest):
    if not (cache / digest).exists():
        with tarfile.open(fileobj=io.BytesIO(open_named(repository / "packs" / packs[digest][:2] / packs[digest], b"pack"))) as tar:
            for member in tar:
                (cache / member.name).write_bytes(tar.extractfile(member).read())
    return (cache / digest).read_bytes()

def put(path, mode, mtime, pieces=None, link=None):  # a piece is a blob, or the length of a hole
    assert ".." not in path.parts, f"{path} leads out of the target"
    if len(os.fsencode(path)) > 4095: return print(f"Left out, because it is longer than a path can be: {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    later.append((path, mode, mtime, link))
    if link is None and pieces is None:
        path.mkdir(exist_ok=True)
    elif link is None:
        with path.open("wb") as file:
            for piece in pieces:
                file.seek(piece, 1) if isinstance(piece, int) else file.write(blob(piece))
            file.truncate()

packs, later = {}, []
for path in sorted((repository / "meta/index").iterdir()):
    packs.update({blob: pack["name"] for pack in json.loads(open_named(path, b"index"))["packs"] for blob, _ in pack["blobs"]})
chosen = sorted((repository / "meta/snapshots").iterdir())[-1] if len(sys.argv) < 5 else repository / f"meta/snapshots/{int(sys.argv[4]):012d}"
seal, text = run("age", "-d", "-i", key, chosen).split(b"\n", 1)
assert seal.decode() == hmac.digest(seals, f"meta/snapshots/{chosen.name}\n".encode() + text, "sha256").hex(), f"{chosen} was changed"
for file in map(json.loads, b"".join(map(blob, json.loads(text)["listing"])).splitlines()):
    pieces = file.get("blobs") or [name for part in file.get("lists", []) for name in blob(part).decode().split()]
    put(target / os.fsdecode(file["path"].encode("utf-8", "surrogateescape")), file["mode"], file["mtime"], None if file["type"] == "folder" else pieces, file.get("target"))

database, tables = sqlite3.connect(":memory:"), target / "history/tables"
for name in ("version", "node_version", "place", "content", "chunk", "piece") if tables.exists() else ():  # it may never have run
    database.execute(f"ATTACH ? AS {name}_file", (str(tables / f"{name}.sqlite"),))
for path, mode, mtime, content, digest, form in () if not tables.exists() else database.execute("""
    WITH RECURSIVE live AS (SELECT place.id, place.parent, place.name, coalesce(n.mode, v.mode) AS mode, coalesce(n.mtime, v.mtime)
        AS mtime, CASE WHEN n.id IS NULL THEN v.content ELSE n.content END AS content FROM version v JOIN place ON place.id = v.place
        LEFT JOIN node_version n ON v.node != 0 AND n.node = v.node AND n.died IS NULL WHERE v.died IS NULL),
    tree AS (SELECT id, CAST(name AS BLOB) AS path, mode, mtime, content FROM live WHERE parent = 0 UNION ALL
        SELECT live.id, CAST(tree.path || X'2F' || live.name AS BLOB), live.mode, live.mtime, live.content FROM live JOIN tree ON live.parent = tree.id)
    SELECT path, tree.mode, mtime, tree.content, hash, form FROM tree LEFT JOIN content ON content.id = tree.content""").fetchall():
    rows = database.execute("SELECT CASE WHEN piece.chunk < 0 THEN -piece.chunk ELSE lower(hex(hash)) END FROM piece LEFT JOIN chunk ON chunk.id = piece.chunk WHERE content = ? ORDER BY position", (content,))
    pieces = None if stat.S_ISDIR(mode) else [digest.hex()] if digest and form != 2 else [row[0] for row in rows]
    if pieces is None or content is not None:  # else history has no content of it, and it was in the list
        put(target / os.fsdecode(path), mode, mtime, pieces, os.fsdecode(blob(pieces[0])) if stat.S_ISLNK(mode) else None)
[path.symlink_to(link) for path, _, _, link in later if link is not None]  # last, so that nothing is written through one
for path, mode, mtime, link in reversed(later):
    os.chmod(path, stat.S_IMODE(mode)) if link is None else None
    os.utime(path, ns=(mtime, mtime), follow_symlinks=False)
run("rm", "-r", cache, key)
print(f"Restored {len(later)} files into {target}")
