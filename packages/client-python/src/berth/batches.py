"""Many jobs under one name."""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Literal, Mapping

from .errors import BerthError, SilentError
from .results import Result
from .transport import Transport, path
from .wire import nested, read, whole

if TYPE_CHECKING:
    from .options import Order

#: A fleet that is full holds an upload up until something has ended.
_UPLOAD_SILENCE_MS = 600_000
#: No line comes while no job ends. The connection is then made anew, in case it is dead.
_RESULTS_SILENCE_MS = 60_000
_PIECE_BYTES = 16 * 1024
#: The gateway takes an upload for dead when nothing comes for long.
_PIECE_S = 5.0
_SPOOL_IN_MEMORY_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class BatchState:
    id: str
    state: Literal["uploading", "running", "cancelling", "finished"]
    submitted: int
    finished: int
    #: Of those finished: not done and not exited with 0.
    failed: int
    #: Orders that did not fit; they count as finished and failed.
    refused: int
    created_at_ms: int
    #: Known once all orders are in.
    total: int | None = None
    finished_at_ms: int | None = None
    cancelled_at_ms: int | None = None
    wire: Mapping[str, Any] = whole()


@dataclass(frozen=True)
class BatchResult:
    #: Give it as `after` to go on behind it, in any process.
    position: int
    #: Which order of the batch, from 0.
    index: int
    job_id: str
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
        """What has not ended ends as cancelled."""
        return read(BatchState, self._transport.json("DELETE", path("v1", "batches", self.id)))

    def results(self, after: int = 0, *, follow: bool = True) -> Iterator[BatchResult]:
        """Each result once, in the order of the ends; with `follow`, until all jobs have ended."""
        patience = self._transport.patience()
        target = path("v1", "batches", self.id, "results")
        while True:
            query = {"after": after, "follow": follow}
            try:
                with self._transport.stream(
                    "GET", target, query=query, silence_ms=_RESULTS_SILENCE_MS
                ) as answer:
                    patience.opened()
                    for line in answer.lines():
                        one = read(BatchResult, json.loads(line))
                        after = one.position
                        patience.progressed()
                        yield one
                return
            except SilentError:
                self.state()
            except BerthError as error:
                patience.after(error)


class Batches:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def submit(self, orders: Iterable[Order], *, name: str | None = None, webhook: str | None = None) -> Batch:
        """Uploads orders, of which there may be any number, and gives the batch when the fleet has all of them.

        The same name with the same orders, in any process within a day, goes on with the same batch: what was
        submitted is not run again. An order that is no valid job ends as refused, and the others go on.
        """
        upload = _Upload(orders)
        patience = self._transport.patience()
        headers = {
            "Idempotency-Key": name or uuid.uuid4().hex,
            "Content-Type": "application/x-ndjson",
        }
        seen = 0
        try:
            while True:
                try:
                    with self._transport.stream(
                        "POST",
                        "/v1/batches",
                        query={"webhook": webhook},
                        headers=headers,
                        body=upload.pieces(),
                        silence_ms=_UPLOAD_SILENCE_MS,
                    ) as answer:
                        return Batch(self._transport, json.loads(b"".join(answer.pieces()))["id"])
                except BerthError as error:
                    if upload.taken > seen:
                        seen = upload.taken
                        patience.progressed()
                    patience.after(error)
        except _OrdersError as error:
            raise error.reason
        finally:
            upload.close()

    def get(self, batch_id: str) -> Batch:
        return Batch(self._transport, batch_id)

    def list(self, limit: int = 100) -> List[BatchState]:
        """The newest first."""
        found = self._transport.json("GET", "/v1/batches", query={"limit": limit})
        return [read(BatchState, one) for one in found["batches"]]


class _OrdersError(Exception):
    """The caller's iterable raised. It must not look like a broken connection."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__(reason)
        self.reason = reason


class _Upload:
    """Keeps what the iterable gave: an upload that broke off is sent again from its beginning."""

    def __init__(self, orders: Iterable[Order]) -> None:
        self._orders = iter(orders)
        self._spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_IN_MEMORY_BYTES)
        #: Orders that the iterable has given.
        self.taken = 0

    def pieces(self) -> Iterator[bytes]:
        self._spool.seek(0)
        while piece := self._spool.read(_PIECE_BYTES):
            yield piece
        lines: list[bytes] = []
        waiting_bytes = 0
        since = time.monotonic()
        for order in self._rest():
            line = json.dumps(order, separators=(",", ":")).encode() + b"\n"
            self._spool.write(line)
            self.taken += 1
            lines.append(line)
            waiting_bytes += len(line)
            if waiting_bytes >= _PIECE_BYTES or time.monotonic() - since > _PIECE_S:
                yield b"".join(lines)
                lines, waiting_bytes, since = [], 0, time.monotonic()
        if lines:
            yield b"".join(lines)

    def close(self) -> None:
        self._spool.close()

    def _rest(self) -> Iterator[Order]:
        while True:
            try:
                order = next(self._orders)
            except StopIteration:
                return
            except Exception as error:
                raise _OrdersError(error) from error
            yield order
