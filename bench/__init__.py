"""One command a question, always beside a peer or the physical limit."""
