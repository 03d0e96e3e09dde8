"""Keys of earlier versions that have another name now. A manifest that uses one is still read, with a warning."""

from collections.abc import Iterator, Mapping

RENAMED_KEYS: Mapping[tuple[str, str], str] = {
    ("gateway", "session_idle"): "sign_in_idle",
    ("gateway", "session_absolute"): "sign_in_absolute",
}
"""(section, old key) → new key of the same section."""


def rename_keys(tree: Mapping[str, object]) -> dict[str, object]:
    """The tree with old keys under their new names. A new name that is written as well wins."""
    result = dict(tree)
    for (section, old), new in RENAMED_KEYS.items():
        table = result.get(section)
        if isinstance(table, dict) and old in table:
            kept = {key: value for key, value in table.items() if key != old}
            result[section] = {new: table[old], **kept}
    return result


def find_renamed_keys(tree: Mapping[str, object]) -> Iterator[tuple[tuple[str, str], str]]:
    """Old keys that stand in the tree, each with its new name."""
    for (section, old), new in RENAMED_KEYS.items():
        table = tree.get(section)
        if isinstance(table, dict) and old in table:
            yield (section, old), new
