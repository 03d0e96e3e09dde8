"""Who works here: agents that speak ACP, started inside the computer, and the conversations with them."""
