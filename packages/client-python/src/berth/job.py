"""A job that the fleet has accepted."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator, Literal, Mapping

from .errors import BerthError, WaitTimeoutError
from .events import Event, follow
from .results import Outcome, Result
from .transport import Transport, path
from .wire import nested, read, whole

if TYPE_CHECKING:
    from .options import Order

#: One request waits for this long; gateways and common proxies allow it.
_POLL_MS = 20_000
_FASTEST_POLL_S = 0.1


@dataclass(frozen=True)
class JobState:
    id: str
    tenant: str
    session: str
    kind: str
    #: Its sandbox's key.
    sandbox: str
    state: Literal["scheduled", "waiting", "running", "finished"]
    accepted_at_ms: int
    result: Result | None = nested(Result)
    wire: Mapping[str, Any] = whole()


@dataclass(frozen=True)
class Behind:
    """A running job, behind which another one of its session waits."""

    job_id: str
    tenant: str
    session: str
    #: None if an older version of Berth began it.
    running_ms: float | None = None


@dataclass(frozen=True)
class Why:
    """Why a job waits, or how it ended; the main reason first."""

    job_id: str
    state: Literal["unknown", "scheduled", "waiting", "running", "finished"]
    reasons: tuple[str, ...] = ()
    #: The same reasons, for programs.
    codes: tuple[str, ...] = ()
    sandbox: str | None = None
    #: Jobs of the sandbox that are before it.
    position: int | None = None
    #: The running job of its session.
    behind: Behind | None = nested(Behind)
    #: Of a job that runs: for how long.
    running_ms: float | None = None
    #: Of a job that has ended, as long as its events are kept.
    outcome: Outcome | None = nested(Outcome)
    #: The shell's number for that; None where no command ran to an end.
    exit_code: int | None = None
    #: The worker that holds the sandbox, the host that has its files: with an admin key.
    held_by: str | None = None
    home: str | None = None
    #: The pool whose workers may take the sandbox.
    pool: str | None = None
    due_at_ms: int | None = None
    wire: Mapping[str, Any] = whole()


class Job:
    """By its id: any process may ask for its result, follow or cancel it."""

    def __init__(self, transport: Transport, job_id: str) -> None:
        self._transport = transport
        self.id = job_id

    def __repr__(self) -> str:
        return f"Job({self.id!r})"

    def state(self) -> JobState:
        return read(JobState, self._transport.json("GET", path("v1", "jobs", self.id)))

    def result(self, wait_ms: float | None = None) -> Result:
        """Waits for the end, however the job ends. Raises `WaitTimeoutError` when that takes longer than `wait_ms`."""
        return _ended(self._transport, self.id, _deadline(wait_ms), wait_ms)

    def events(self, after: str = "") -> Iterator[Event]:
        """From the beginning, or from behind an event, until its end."""
        return follow(self._transport, self.id, after)

    def cancel(self) -> JobState:
        """Cancels it, waiting or running. The result is then `cancelled`. No effect on a job that has ended."""
        return read(JobState, self._transport.json("DELETE", path("v1", "jobs", self.id)))

    def why(self) -> Why:
        return read(Why, self._transport.json("GET", path("v1", "jobs", self.id, "why")))


def submit(transport: Transport, order: Order) -> Job:
    return Job(transport, _submitted(transport, order, 0).id)


def submit_and_wait(transport: Transport, order: Order, wait_ms: float | None) -> Result:
    deadline = _deadline(wait_ms)
    state = _submitted(transport, order, _poll_ms(deadline))
    return state.result or _ended(transport, state.id, deadline, wait_ms)


def _submitted(transport: Transport, order: Order, wait_ms: float) -> JobState:
    """Submits with an id of the client's own, so that a retry is safe: the fleet runs an id once."""
    job_id = order.get("id") or f"py-{uuid.uuid4().hex}"
    named: dict[str, object] = {**dict(order), "id": job_id}
    query = {"wait": wait_ms / 1_000} if wait_ms > 0 else None
    try:
        return read(JobState, transport.json("POST", "/v1/jobs", query=query, body=named, wait_ms=wait_ms))
    except BerthError as error:
        error.job_id = error.job_id or job_id
        raise


def _ended(transport: Transport, job_id: str, deadline: float | None, wait_ms: float | None) -> Result:
    while True:
        poll_ms = _poll_ms(deadline)
        query = {"wait": poll_ms / 1_000}
        asked = time.monotonic()
        state = read(JobState, transport.json("GET", path("v1", "jobs", job_id), query=query, wait_ms=poll_ms))
        if state.result:
            return state.result
        if deadline is not None and time.monotonic() >= deadline:
            raise WaitTimeoutError(job_id, wait_ms or 0)
        # Pause, in case the gateway answers without waiting.
        time.sleep(max(0.0, _FASTEST_POLL_S - (time.monotonic() - asked)))


def _deadline(wait_ms: float | None) -> float | None:
    return None if wait_ms is None else time.monotonic() + wait_ms / 1_000


def _poll_ms(deadline: float | None) -> float:
    if deadline is None:
        return _POLL_MS
    return round(min(_POLL_MS, max(0.0, (deadline - time.monotonic()) * 1_000)))
