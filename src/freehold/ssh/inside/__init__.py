"""Programs of SSH access that run in the computer. Standard library only; sent as text."""
