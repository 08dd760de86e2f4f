"""One tenant's work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, cast

from .commands import Commands
from .job import Job, submit, submit_and_wait
from .options import Order, Request
from .results import Result
from .secrets import Secrets
from .snapshots import Snapshots
from .transport import Transport
from .wire import camel_keys

if TYPE_CHECKING:
    from .options import JobOptions


class Orders(Commands[Order]):
    """Makes orders for batches and schedules, and submits nothing."""

    def __init__(self, tenant: str | None, defaults: JobOptions) -> None:
        self._tenant = tenant
        self._defaults = defaults

    def _make(self, request: Request, options: Mapping[str, Any]) -> Order:
        given = camel_keys({**self._defaults, **options})
        if "retry" in given:
            given["retry"] = camel_keys(given["retry"])
        owner = {} if self._tenant is None else {"tenant": self._tenant}
        return cast(Order, {**owner, **given, "request": request})


class Enqueue(Commands[Job]):
    """Submits jobs and waits for none of them."""

    def __init__(self, transport: Transport, orders: Orders) -> None:
        self._transport = transport
        self._orders = orders

    def _make(self, request: Request, options: Mapping[str, Any]) -> Job:
        return submit(self._transport, self._orders._make(request, options))


class Tenant(Commands[Result]):
    """Each method submits a job, waits for its end and returns its result, also of a job that failed.

    `tenant.enqueue` has the same methods and returns the job at once. `tenant.order` has them, too, and only makes
    the order.
    """

    def __init__(
        self, transport: Transport, tenant: str | None, defaults: JobOptions, wait_ms: float | None
    ) -> None:
        self.id = tenant
        self.order = Orders(tenant, defaults)
        self.enqueue = Enqueue(transport, self.order)
        self.secrets = Secrets(transport, tenant)
        self.snapshots = Snapshots(transport, tenant)
        self._transport = transport
        self._wait_ms = wait_ms

    def _make(self, request: Request, options: Mapping[str, Any]) -> Result:
        return submit_and_wait(self._transport, self.order._make(request, options), self._wait_ms)
