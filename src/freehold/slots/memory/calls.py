"""Which steps carry out which call of the memory slot, inner calls included."""

from collections.abc import Callable
from typing import Any

from freehold.slots.contract import CallContext, SlotCall
from freehold.slots.memory import changes, lookup, pages, records, upkeep
from freehold.slots.memory.contract import (
    ExportMemories,
    ForgetMemory,
    GetMemory,
    ImportMemories,
    ListMemories,
    StoreMemory,
    UpdateMemory,
)
from freehold.slots.statement import Steps

STEPS_OF_CALL: dict[type[SlotCall[Any]], Callable[[Any, CallContext], Steps[Any]]] = {
    GetMemory: pages.get_memory,
    ListMemories: pages.list_memories,
    StoreMemory: changes.store_memory,
    UpdateMemory: changes.update_memory,
    ForgetMemory: changes.forget_memory,
    ExportMemories: records.export_memories,
    ImportMemories: records.import_memories,
    upkeep.ReadWaiting: upkeep.read_waiting,
    upkeep.CountMemories: upkeep.count_memories,
    upkeep.ReadVectorLength: upkeep.read_vector_length,
    upkeep.SaveVectors: upkeep.save_vectors,
    upkeep.NoteUse: upkeep.note_use,
    upkeep.RemoveExpired: upkeep.remove_expired,
    lookup.FindWords: lookup.find_words,
    lookup.ReadFound: lookup.read_found,
    lookup.FindNearest: lookup.find_nearest,
    lookup.ReadVectorChanges: lookup.read_vector_changes,
}
