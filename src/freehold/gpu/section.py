"""`[gpu]`: NVIDIA cards that the computer can use."""

from typing import Annotated

from pydantic import Field, Strict

from freehold.manifest.sections.base import Section

SHARED_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm")
"""What every program with CUDA needs beside its card."""


class GpuSection(Section):
    """NVIDIA cards for programs in the computer. It needs `[security.exceptions.gpu]`."""

    enabled: bool = Field(default=False, description="Whether the computer can use them.")
    cards: Annotated[tuple[int, ...], Strict(False)] = Field(
        default=(0,), description="Their numbers: 0 is /dev/nvidia0.", examples=[[0, 1]]
    )

    def list_devices(self) -> tuple[str, ...]:
        """Everything of /dev that the computer gets; nothing when it is switched off."""
        return (*(f"/dev/nvidia{card}" for card in self.cards), *SHARED_DEVICES) if self.enabled else ()
