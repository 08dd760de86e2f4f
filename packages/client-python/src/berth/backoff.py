"""How often, and for how long, a failed request is retried."""

from __future__ import annotations

import random
import time

from .errors import BerthError, RequestError

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_LONGEST_RETRY_AFTER_S = 30.0
#: A stream that was open for this long shows that the gateway is up, even if nothing came over it.
_STEADY_S = 10.0


class Backoff:
    """Pauses between tries, each up to twice as long as the one before.

    Gives up `outage_ms` after the first failure. Progress restarts that time.
    """

    def __init__(self, outage_ms: float) -> None:
        self._outage_s = outage_ms / 1_000
        self._since: float | None = None
        self._opened: float | None = None
        self._pause_s = _FIRST_PAUSE_S

    def opened(self) -> None:
        """A stream begins."""
        self._opened = time.monotonic()

    def progressed(self) -> None:
        self._since = None
        self._pause_s = _FIRST_PAUSE_S

    def after(self, error: BerthError) -> None:
        """Sleeps until the next try; raises the error if there is to be none."""
        if not error.retry:
            raise error
        now = time.monotonic()
        if self._opened is not None and now - self._opened >= _STEADY_S:
            self.progressed()
        self._opened = None
        self._since = now if self._since is None else self._since
        pause_s = self._pause_s * random.uniform(0.5, 1)
        if isinstance(error, RequestError) and error.retry_after_s is not None:
            pause_s = max(pause_s, min(error.retry_after_s, _LONGEST_RETRY_AFTER_S))
        if now + pause_s - self._since > self._outage_s:
            raise error
        time.sleep(pause_s)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
