"""A socket with a deadline for a whole answer."""

from __future__ import annotations

import io
import socket
import time
from typing import Any


class TimedSocket:
    """A socket for `http.client`. `silence_s` bounds the wait for each piece, and `until` the whole answer.

    A socket's own timeout bounds each piece only: a gateway that sends single bytes would block its caller for ever.
    """

    def __init__(self, plain: socket.socket) -> None:
        self._plain = plain
        self._silence_s = 0.0
        self._until: float | None = None

    def limit(self, silence_s: float, until: float | None) -> None:
        """`until` is a time of `time.monotonic()`; without one only silence ends it."""
        self._silence_s = silence_s
        self._until = until
        self._plain.settimeout(silence_s)

    def makefile(self, mode: str = "rb", *_: Any, **__: Any) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_Timed(self, self._plain.makefile("rb", buffering=0)))

    def before_piece(self) -> None:
        if self._until is None:
            return
        left = self._until - time.monotonic()
        if left <= 0:
            raise socket.timeout("it takes too long")
        self._plain.settimeout(min(left, self._silence_s))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


class _Timed(io.RawIOBase):
    def __init__(self, owner: TimedSocket, raw: io.RawIOBase) -> None:
        super().__init__()
        self._owner = owner
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._owner.before_piece()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
            super().close()
