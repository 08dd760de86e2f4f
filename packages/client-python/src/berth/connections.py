"""Connections to one gateway, kept open between requests."""

from __future__ import annotations

import http.client
import select
import ssl
import threading
from urllib.parse import urlsplit

_IDLE_MOST = 16


class Connections:
    """A pool of connections for any number of threads: each request has a connection of its own."""

    def __init__(self, url: str, ssl_context: ssl.SSLContext | None) -> None:
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(f"{url!r} is no address of a gateway: use http://HOST:PORT or https://HOST")
        self.prefix = address.path.rstrip("/")
        self.origin = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
        self._host = address.hostname
        self._port = address.port
        self._context = (ssl_context or ssl.create_default_context()) if address.scheme == "https" else None
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._closed = False

    def take(self, timeout_s: float) -> http.client.HTTPConnection:
        """An idle connection, if the gateway has not closed it; otherwise a new one."""
        while True:
            with self._lock:
                if self._closed:
                    raise RuntimeError("this Berth is closed")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._new(timeout_s)
            if connection.sock is not None and not _has_ended(connection):
                connection.timeout = timeout_s
                connection.sock.settimeout(timeout_s)
                return connection
            connection.close()

    def give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and connection.sock is not None and len(self._idle) < _IDLE_MOST:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _new(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=timeout_s, context=self._context
        )


def _has_ended(connection: http.client.HTTPConnection) -> bool:
    """Whether the gateway closed an idle connection: it sends nothing else on one."""
    # `select` cannot take descriptors above 1023, `poll` is not everywhere.
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(connection.sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([connection.sock], [], [], 0)[0])
