"""The program that is pid 1 inside the computer. Standard library only; imports nothing else of Freehold.

It must start in a few milliseconds, so it uses the C modules below the usual ones (`_socket` instead of `socket`,
`_signal` instead of `signal`): importing `asyncio` alone would triple its start time.
"""
