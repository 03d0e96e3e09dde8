"""What runs inside the computer on behalf of the side door. Standard library only; sent in as text."""
