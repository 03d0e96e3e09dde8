"""Which addresses may be sent a token of the owner."""

from freehold.manifest.addresses import is_private, parse_ip, split_url


def may_carry_token(address: str) -> bool:
    """Over https; over http only to `localhost` or a private IP address, as it is written: a name can lead anywhere."""
    parts = split_url(address)
    if parts is None or not parts.hostname or parts.username:
        return False
    if parts.scheme == "https":
        return True
    is_own = parts.hostname == "localhost" or (parse_ip(parts.hostname) is not None and is_private(parts.hostname))
    return parts.scheme == "http" and is_own
