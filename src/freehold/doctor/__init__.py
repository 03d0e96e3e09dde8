"""The doctor: checks this machine, tries every escape from a computer of its own, and reports the outcome.

The command line runs it in its own process. The gateway starts it as a second process: the escape attempts are aimed
at the process that runs them, and the doctor must not slow the gateway down.
"""

from freehold.doctor.events import (
    AttemptEnded,
    DoctorEnded,
    DoctorEvent,
    DoctorStarted,
    ExceptionTried,
    IsolationFound,
    decode_event,
    encode_event,
)
from freehold.doctor.examination import run_doctor, run_doctor_until_terminated
from freehold.doctor.process import DoctorFailed, DoctorProcess, doctor_command
from freehold.doctor.report import DoctorReport

__all__ = [
    "AttemptEnded",
    "DoctorEnded",
    "DoctorEvent",
    "DoctorFailed",
    "DoctorProcess",
    "DoctorReport",
    "DoctorStarted",
    "ExceptionTried",
    "IsolationFound",
    "decode_event",
    "doctor_command",
    "encode_event",
    "run_doctor",
    "run_doctor_until_terminated",
]
