"""The program that is pid 1 inside the computer. Standard library only; imports nothing else of Freehold.

It is started in the time a person does not notice, so it keeps to the C modules below the usual ones
(`_socket` rather than `socket`, `_signal` rather than `signal`): importing `asyncio` alone would triple its start.
"""
