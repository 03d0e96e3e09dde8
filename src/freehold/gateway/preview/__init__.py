"""What programs inside the computer serve, shown to the owner on origins of its own."""
