"""`[owner]`: who may sign in."""

from pydantic import Field

from freehold.manifest.sections.base import Section


class OwnerSection(Section):
    """Who may sign in."""

    did: str | None = Field(
        default=None,
        description="The owner's DID. Without one, sign-in is by one-time link, and only on loopback.",
        examples=["did:plc:ewvi7nxzyoun6zhxrhs64oiz"],
    )
    handle: str | None = Field(
        default=None,
        description="The owner's handle, for display; only the DID decides who may sign in.",
        examples=["alice.example.com"],
    )
    service: str | None = Field(
        default=None,
        description="A PDS that resolves the handle when neither DNS nor the handle's own host answers.",
        examples=["https://bsky.social"],
    )
    plc_url: str = Field(
        default="https://plc.directory",
        description="The directory that resolves did:plc identities.",
    )
