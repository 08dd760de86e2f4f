"""A tenant's snapshots. `tenant.snapshot` makes them, `tenant.restore` and the option `fork_of` use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List
from urllib.parse import quote

from .transport import Transport
from .wire import items, read


@dataclass(frozen=True)
class Snapshot:
    name: str
    #: Key of the sandbox whose files it has.
    sandbox: str
    size: int
    count: int
    #: `btrfs`, `reflink` or `copy`.
    method: str
    created_at_ms: int
    #: None: it stays until it is removed.
    expires_at_ms: int | None = None
    #: For admin keys.
    host: str | None = None


class Snapshots:
    def __init__(self, transport: Transport, tenant: str | None) -> None:
        self._transport = transport
        self._tenant = tenant

    def list(self) -> List[Snapshot]:
        """By name."""
        found = items(self._transport.json("GET", self._path(), repeatable=True), "snapshots")
        return [read(Snapshot, one) for one in found]

    def remove(self, name: str) -> None:
        """Fails when there is none of that name. Its forks stay."""
        self._transport.remove(f"{self._path()}/{quote(name, safe='')}")

    def _path(self) -> str:
        if self._tenant is None:
            raise ValueError("snapshots belong to a tenant: berth.tenant('acme').snapshots")
        return f"/v1/tenants/{quote(self._tenant, safe='')}/snapshots"
