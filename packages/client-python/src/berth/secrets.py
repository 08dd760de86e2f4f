"""A tenant's stored secrets. No call reads a value back."""

from __future__ import annotations

from typing import List
from urllib.parse import quote

from .transport import Transport
from .wire import items


class Secrets:
    """Each command of the tenant has them in its environment; they are masked in everything that leaves the sandbox."""

    def __init__(self, transport: Transport, tenant: str | None) -> None:
        self._transport = transport
        self._tenant = tenant

    def set(self, name: str, value: str) -> None:
        """Creates the secret, or replaces its value."""
        self._transport.json("PUT", self._path(name), body={"value": value}, repeatable=True)

    def rotate(self, name: str, value: str) -> None:
        """Replaces its value; fails when there is none of that name."""
        self._transport.json("POST", f"{self._path(name)}/rotate", body={"value": value}, repeatable=True)

    def names(self) -> List[str]:
        """In order."""
        return [str(name) for name in items(self._transport.json("GET", self._path(), repeatable=True), "names")]

    def remove(self, name: str) -> None:
        """Fails when there is none of that name."""
        self._transport.remove(self._path(name))

    def _path(self, name: str | None = None) -> str:
        if self._tenant is None:
            raise ValueError("secrets belong to a tenant: berth.tenant('acme').secrets")
        of = f"/v1/tenants/{quote(self._tenant, safe='')}/secrets"
        return of if name is None else f"{of}/{quote(name, safe='')}"
