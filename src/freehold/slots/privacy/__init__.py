"""The privacy filter: what may not leave or be stored is refused, or replaced by a pseudonym that only the owner sees through."""
