"""Berth from Python: run commands in per-tenant sandboxes, through a gateway.

with Berth("http://127.0.0.1:8080", key) as berth:
    print(berth.tenant("acme").exec("echo $((6 * 7))").stdout)
"""

from .batches import Batch, BatchResult, BatchState
from .client import Berth
from .commands import step
from .errors import (
    BerthError,
    DamagedError,
    InvalidAnswerError,
    JobFailedError,
    RequestError,
    SilentError,
    UnreachableError,
    WaitTimeoutError,
)
from .events import Event
from .job import Behind, Job, JobState, Why
from .options import JobOptions, Order
from .results import Artifact, Entry, Match, Outcome, Result
from .schedules import Schedule
from .snapshots import Snapshot
from .tenant import Tenant

__version__ = "0.1.0"

__all__ = [
    "Artifact",
    "Batch",
    "BatchResult",
    "BatchState",
    "Behind",
    "Berth",
    "BerthError",
    "DamagedError",
    "Entry",
    "Event",
    "InvalidAnswerError",
    "Job",
    "JobFailedError",
    "JobOptions",
    "JobState",
    "Match",
    "Order",
    "Outcome",
    "RequestError",
    "Result",
    "Schedule",
    "SilentError",
    "Snapshot",
    "Tenant",
    "UnreachableError",
    "WaitTimeoutError",
    "Why",
    "step",
]
