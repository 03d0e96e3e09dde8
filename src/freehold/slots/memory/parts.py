"""A long text in parts of which a model reads each whole. Neighbours overlap, so that no sentence is cut for good."""

PART = 900
OVERLAP = 150


def split_parts(text: str) -> list[str]:
    """At least one part. Parts end between words where there are any."""
    parts = []
    start = 0
    while True:
        end = start + PART
        if end >= len(text):
            parts.append(text[start:])
            return parts
        space = text.rfind(" ", start + OVERLAP + 1, end)
        end = space if space > 0 else end
        parts.append(text[start:end])
        start = end - OVERLAP
