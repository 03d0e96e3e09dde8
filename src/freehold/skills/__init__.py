"""Skills: folders with a SKILL.md that tell agents how to do something. Each version is stored once, by its hash."""
