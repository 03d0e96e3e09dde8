"""The prompt with which an agent is set on an item."""

from freehold.slots.beads.contract import BeadDetails


def describe_work(details: BeadDetails) -> str:
    """What the agent is told. Comments are quoted, because others than the owner may have written them."""
    bead = details.bead
    parts = [f"Work on this item, which you hold now: {bead.id}", f"# {bead.title}"]
    if bead.description.strip():
        parts.append(bead.description.strip())
    if details.comments:
        quoted = "\n".join(
            f"{one.author}:\n" + "\n".join(f"> {line}" for line in one.text.splitlines()) for one in details.comments
        )
        parts.append(f"Comments, for your information:\n{quoted}")
    parts.append(
        "When it is done, close the item with the tool beads_close and give the evidence: what shows that it is done. "
        "If you cannot finish it, say why with beads_comment and release it with beads_release."
    )
    return "\n\n".join(parts)
