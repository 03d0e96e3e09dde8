"""The built-in agent: a program that speaks ACP on stdio and runs inside the computer like every other agent.

It is installed there without the rest of Freehold, so it imports no other room.
"""
