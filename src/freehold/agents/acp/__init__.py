"""The Agent Client Protocol: JSON-RPC with a program that is not trusted, and the agent program itself."""
