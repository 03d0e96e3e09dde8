"""The sealed machine, host side. Imports nothing outside the standard library until a computer is started."""

from freehold.computer.backend import Backend, Isolation, LimitEvent, Machine, Usage
from freehold.computer.computer import Computer
from freehold.computer.connection import State
from freehold.computer.entries import Entry, Found, Hit
from freehold.computer.files import Files
from freehold.computer.launch import launch
from freehold.computer.pool import Pool
from freehold.computer.process import Exit, Process, Result
from freehold.computer.roster import Node, Running, Stats
from freehold.computer.spec import ComputerSpec, Limits, Mount
from freehold.computer.terminal import Terminal, TerminalExit, TerminalInfo
from freehold.computer.tunnel import Listening, Tunnel

__all__ = [
    "Backend",
    "Computer",
    "ComputerSpec",
    "Entry",
    "Exit",
    "Files",
    "Found",
    "Hit",
    "Isolation",
    "LimitEvent",
    "Limits",
    "Listening",
    "Machine",
    "Mount",
    "Node",
    "Pool",
    "Process",
    "Result",
    "Running",
    "State",
    "Stats",
    "Terminal",
    "TerminalExit",
    "TerminalInfo",
    "Tunnel",
    "Usage",
    "launch",
]
