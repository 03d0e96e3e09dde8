"""A code editor in the computer, as a feature: code-server, shown to the owner on an origin of its own."""
