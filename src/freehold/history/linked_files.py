"""Files with several names. Their state is stored once, so that a write through one name costs the same with many.

A *node* is one such file. Each of its names is a version with this node; the state of the node is in `node_version`.
"""

import os
import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from freehold.history.tree_reader import StoredFile


class NodeState(NamedTuple):
    """One state of a node, valid in the entries `born <= entry < died`."""

    id: int
    node: int
    born: int
    mode: int
    mtime: int
    size: int
    content: int | None
    flag: int
    ino: int
    ctime: int
    nlink: int

    def shows(self, other: "NodeState") -> bool:
        """Whether a restore from one to the other would change nothing that is visible to the owner."""
        return (self.mode, self.mtime, self.size, self.content) == (other.mode, other.mtime, other.size, other.content)

    def differs_only_in_time(self, other: "NodeState") -> bool:
        """Whether the same content was written again, or a time was set. False when the content is not known."""
        return self.content is not None and self.shows(other._replace(mtime=self.mtime))


_COLUMNS = ", ".join(NodeState._fields)


class LinkedFiles:
    """Used for one entry, in the caller's transaction. `adopted` has the inodes that a restore has just made, with their nodes.

    `touched` has the nodes that lost a name; `joined` the inodes that got a second name.
    """

    def __init__(self, db: sqlite3.Connection, entry: int, adopted: Mapping[int, int]) -> None:
        self._db = db
        self._entry = entry
        self._adopted = adopted
        self._by_inode: dict[int, NodeState] = {}
        self.touched: set[int] = set()
        self.joined: set[int] = set()
        self.has_times = False
        """Whether a file was recorded of which only the time differs."""

    def record(self, stored: StoredFile, ctime: int, before: int = 0) -> tuple[int, int]:
        """Record what was found. Returns the node, and how many of its earlier names show a change.

        `before` is the node that the name had. The file keeps it when it looks the same under another inode number,
        as after a copy of everything to another disk. Give it only when every name is scanned.
        """
        found = stored.stat
        known = self._by_inode.get(found.st_ino) or self._find(found.st_ino) or self._find_copied(found, before)
        new = NodeState(
            0, known.node if known else self._adopted.get(found.st_ino, 0), self._entry, found.st_mode, found.st_mtime_ns,
            found.st_size, stored.content, stored.flag, found.st_ino, ctime, found.st_nlink,
        )  # fmt: skip
        if known is None:
            self.joined.add(new.ino)
            self._by_inode[new.ino] = self._insert(new if new.node else new._replace(node=self._next_node()))
            return self._by_inode[new.ino].node, 0
        if known._replace(id=0, born=new.born) == new:
            return known.node, 0
        if known.shows(new) or known.born == self._entry or _is_same_noted(known, new):
            self._db.execute(
                "UPDATE node_version SET mode = ?, mtime = ?, size = ?, content = ?, flag = ?, ino = ?, ctime = ?, nlink = ? WHERE id = ?",
                (*new[3:], known.id),
            )
            self._by_inode[new.ino] = new._replace(id=known.id, born=known.born)
            return known.node, 0
        self._db.execute("UPDATE node_version SET died = ? WHERE id = ?", (self._entry, known.id))
        self._by_inode[new.ino] = self._insert(new)
        if known.differs_only_in_time(new):
            self.has_times = True
            return known.node, 0
        return known.node, self._count_names(known.node)

    def end(self, node: int) -> None:
        """The last name of the node is gone."""
        self._db.execute("DELETE FROM node_version WHERE node = ? AND born = ?", (node, self._entry))
        self._db.execute("UPDATE node_version SET died = ? WHERE node = ? AND died IS NULL", (self._entry, node))
        for ino in [ino for ino, state in self._by_inode.items() if state.node == node]:
            del self._by_inode[ino]

    def _find(self, ino: int) -> NodeState | None:
        node = self._adopted.get(ino)
        where, value = ("ino", ino) if node is None else ("node", node)
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM node_version WHERE {where} = ? AND died IS NULL LIMIT 1",  # noqa: S608
            (value,),
        ).fetchone()
        if row is None:
            return None
        found = NodeState._make(row)
        self._by_inode[ino] = found
        return found

    def _find_copied(self, found: os.stat_result, node: int) -> NodeState | None:
        if not node or any(state.node == node for state in self._by_inode.values()):
            return None
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM node_version WHERE node = ? AND died IS NULL",  # noqa: S608
            (node,),
        ).fetchone()
        state = NodeState._make(row) if row is not None else None
        if state is None or (state.mode, state.mtime, state.size) != (found.st_mode, found.st_mtime_ns, found.st_size):
            return None
        self._by_inode[found.st_ino] = state
        return state

    def _insert(self, state: NodeState) -> NodeState:
        cursor = self._db.execute(
            f"INSERT INTO node_version ({_COLUMNS}) VALUES ({', '.join('?' * len(NodeState._fields))})",  # noqa: S608
            (None, *state[1:]),
        )
        assert cursor.lastrowid is not None
        return state._replace(id=cursor.lastrowid)

    def _next_node(self) -> int:
        (used,) = self._db.execute(
            "SELECT max(coalesce((SELECT max(node) FROM node_version), 0), coalesce((SELECT max(node) FROM version WHERE node != 0), 0))"
        ).fetchone()
        return int(used) + 1

    def _count_names(self, node: int) -> int:
        (count,) = self._db.execute(
            "SELECT count(*) FROM version WHERE node != 0 AND node = ? AND died IS NULL AND born < ?",
            (node, self._entry),
        ).fetchone()
        return int(count)


def _is_same_noted(known: NodeState, new: NodeState) -> bool:
    """The content could not be stored before and is stored now, of a file that did not change since."""
    return (
        known.content is None
        and known.ctime != 0
        and known._replace(id=0, born=0, content=None, flag=0) == new._replace(id=0, born=0, content=None, flag=0)
    )
