"""Credentials: secrets of the vault that egress adds to requests for named hosts. Inside there are placeholders."""

from freehold.egress.keyring.credential import HostCredential
from freehold.egress.keyring.service import CredentialUse, Keyring

__all__ = ["CredentialUse", "HostCredential", "Keyring"]
