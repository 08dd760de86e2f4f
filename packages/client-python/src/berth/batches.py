"""Many jobs under one name."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Literal, Mapping

from .errors import BerthError, SilentError
from .results import Result
from .transport import Transport, path
from .wire import items, nested, parsed, read, whole

if TYPE_CHECKING:
    from .options import Order

#: A full fleet delays an upload until jobs have ended.
_HELD_UP_MS = 600_000
#: No line comes while no job ends. After this long the connection is made anew, in case it is dead.
_RESULTS_SILENCE_MS = 60_000
_PART_ORDERS = 1_000
_PART_BYTES = 4 * 1024 * 1024
_PART_S = 5.0


@dataclass(frozen=True)
class BatchState:
    id: str
    state: Literal["uploading", "running", "cancelling", "finished"]
    submitted: int
    finished: int
    #: Finished jobs whose outcome is neither `done` nor exit code 0.
    failed: int
    #: Invalid orders; they count as finished and failed.
    refused: int
    created_at_ms: int
    #: Known once all orders are in.
    total: int | None = None
    finished_at_ms: int | None = None
    cancelled_at_ms: int | None = None
    wire: Mapping[str, Any] = whole()


@dataclass(frozen=True)
class BatchResult:
    #: Pass it as `after` to read on from here, in any process.
    position: int
    #: Which order of the batch, from 0.
    index: int
    job_id: str
    tenant: str | None = None
    session: str | None = None
    result: Result | None = nested(Result)
    #: What was wrong with the order.
    refused: str | None = None
    #: It ended more than a day ago, and its result is gone.
    expired: bool = False
    wire: Mapping[str, Any] = whole()

    @property
    def ok(self) -> bool:
        return self.result is not None and self.result.ok


class Batch:
    def __init__(self, transport: Transport, batch_id: str) -> None:
        self._transport = transport
        self.id = batch_id

    def __repr__(self) -> str:
        return f"Batch({self.id!r})"

    def state(self) -> BatchState:
        return read(BatchState, self._transport.json("GET", path("v1", "batches", self.id)))

    def cancel(self) -> BatchState:
        """Cancels the jobs that have not ended."""
        return read(BatchState, self._transport.json("DELETE", path("v1", "batches", self.id)))

    def results(self, after: int = 0, *, follow: bool = True) -> Iterator[BatchResult]:
        """Each result once, in the order of the ends; with `follow`, until all jobs have ended."""
        backoff = self._transport.backoff()
        target = path("v1", "batches", self.id, "results")
        while True:
            query = {"after": after, "follow": follow}
            try:
                with self._transport.stream(
                    "GET", target, query=query, silence_ms=_RESULTS_SILENCE_MS
                ) as answer:
                    backoff.opened()
                    for line in answer.lines():
                        one = read(BatchResult, parsed(line))
                        after = one.position
                        backoff.progressed()
                        yield one
                return
            except SilentError:
                self.state()
            except BerthError as error:
                backoff.after(error)


class Batches:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def submit(self, orders: Iterable[Order], *, name: str | None = None, webhook: str | None = None) -> Batch:
        """Uploads any number of orders, and returns the batch when the fleet has all of them.

        The same name with the same orders, in any process within a day, continues the same batch: submitted jobs
        are not run again. An order that is no valid job ends as refused, and the others go on.
        """
        key = name or uuid.uuid4().hex
        sent = 0
        for count, lines in _parts(orders):
            self._send(key, lines, {"from": sent, "more": True, "webhook": webhook})
            sent += count
        return Batch(self._transport, read(BatchState, self._send(key, b"", {"from": sent, "webhook": webhook})).id)

    def get(self, batch_id: str) -> Batch:
        return Batch(self._transport, batch_id)

    def find(self, name: str) -> Batch | None:
        """The one that was submitted with that name."""
        found = self._transport.json("GET", "/v1/batches", query={"key": name})
        batches = items(found, "batches")
        return Batch(self._transport, read(BatchState, batches[0]).id) if batches else None

    def list(self, limit: int = 100) -> List[BatchState]:
        """The newest first."""
        found = self._transport.json("GET", "/v1/batches", query={"limit": limit})
        return [read(BatchState, one) for one in items(found, "batches")]

    def _send(self, key: str, lines: bytes, query: Mapping[str, Any]) -> Any:
        """Sends a part of a batch. The gateway identifies it by its position, so a repeated part adds no job."""
        headers = {"Idempotency-Key": key, "Content-Type": "application/x-ndjson"}
        return self._transport.json(
            "POST", "/v1/batches", query=query, content=lines, headers=headers, wait_ms=_HELD_UP_MS
        )


def _parts(orders: Iterable[Order]) -> Iterator[tuple[int, bytes]]:
    """Yields the number of orders and their lines, as large parts; no order waits for longer than 5 s."""
    lines: list[bytes] = []
    size = 0
    since = time.monotonic()
    for order in orders:
        lines.append(json.dumps(order, separators=(",", ":")).encode() + b"\n")
        size += len(lines[-1])
        if len(lines) >= _PART_ORDERS or size >= _PART_BYTES or time.monotonic() - since > _PART_S:
            yield len(lines), b"".join(lines)
            lines, size, since = [], 0, time.monotonic()
    if lines:
        yield len(lines), b"".join(lines)
