"""The fleet behind a gateway."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING, Any, Mapping

from .artifacts import Artifacts
from .batches import Batches
from .connections import Connections
from .job import Job, JobState, submit
from .schedules import Schedules
from .tenant import Tenant
from .transport import Transport
from .wire import items, read

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import JobOptions, Order

_SAFE = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class Berth:
    """A client of one gateway. Threads may share it. `close()`, or the end of its `with` block, closes its connections.

    - `request_timeout_ms`: bounds connecting, and each answer beyond the time that the gateway was asked to wait.
    - `outage_ms`: how long a request is retried while the gateway is away or the fleet has no room.
    - `wait_ms`: how long a call waits for its job's result; by default until the job has ended.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        request_timeout_ms: float = 30_000,
        outage_ms: float = 60_000,
        wait_ms: float | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        address = url or os.environ.get("BERTH_URL") or "http://127.0.0.1:8080"
        self._transport = Transport(
            Connections(address, ssl_context),
            key if key is not None else os.environ.get("BERTH_KEY"),
            request_timeout_ms=request_timeout_ms,
            outage_ms=outage_ms,
        )
        self._wait_ms = wait_ms
        self.batches = Batches(self._transport)
        self.schedules = Schedules(self._transport)
        self.artifacts = Artifacts(self._transport)

    def tenant(self, tenant: str | None = None, **defaults: Unpack[JobOptions]) -> Tenant:
        """A tenant key needs no name. `defaults` are options of all its jobs, which each call can override."""
        return Tenant(self._transport, tenant, defaults, self._wait_ms)

    def submit(self, order: Order) -> Job:
        """An order as `tenant.order` makes it."""
        return submit(self._transport, order)

    def job(self, job_id: str) -> Job:
        """A job that any process submitted."""
        return Job(self._transport, job_id)

    def jobs(self, *, tenant: str | None = None, limit: int = 100) -> list[JobState]:
        """Jobs that have not ended, the oldest first."""
        found = self._transport.json("GET", "/v1/jobs", query={"tenant": tenant, "limit": limit})
        return [read(JobState, one) for one in items(found, "jobs")]

    def call(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls any other route of docs/http.md and returns its JSON. Does not repeat a POST whose connection breaks."""
        return self._transport.json(method, path, query=query, body=body, repeatable=method in _SAFE)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Berth:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
