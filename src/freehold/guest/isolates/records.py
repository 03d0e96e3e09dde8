"""The records of an execution. `freehold.computer.isolates.records` has the host's copy of these numbers."""

from _struct import Struct

STATUS = Struct("<iiqq")
LENGTH = Struct("<I")
RECORD = Struct("<BI")
STDOUT, STDERR, ITEM, RESULT, MODULE = range(5)
"""An item is one line of JSON that describes it and then its bytes. A result is JSON, and the last record.

A module is what an isolate has compiled from WebAssembly, before it runs any of it. The guest keeps it.
"""
MAX_ITEM = 64 * 1024 * 1024
MAX_ITEMS = 10_000
"""Items of one execution. Each costs the host much more than its bytes."""
MAX_RESULT = 64 * 1024
MAX_REQUEST = 32 * 1024 * 1024
BORN = -1
