"""`freehold acp`: the sealed agents of a Freehold in an editor, by ACP on stdio. See docs/guides/editors.md."""
