"""Requests to one gateway: retried where that is safe, bounded in time, and with one class of errors."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from contextlib import contextmanager
from typing import Any, Iterator, Mapping
from urllib.parse import quote, urlencode

from .connections import Connections
from .errors import BerthError, InvalidAnswerError, RequestError, SilentError, UnreachableError
from .backoff import Backoff
from .timed_socket import TimedSocket
from .wire import parsed

_PIECE_BYTES = 64 * 1024
#: Longer than any answer, line or event of a gateway. Without a limit, an endless answer would fill the memory.
ANSWER_BYTES_MOST = 512 * 1024 * 1024
MESSAGE_BYTES_MOST = 512 * 1024 * 1024
#: The client gives up on an answer that comes slower than this.
_SLOWEST_BYTES_PER_S = 16 * 1024
#: A refusal is a few lines; a proxy's page may be longer.
_PROBLEM_BYTES_MOST = 1024 * 1024

Query = Mapping[str, Any]


def path(*names: str) -> str:
    """A path whose names are data: path("v1", "jobs", id)."""
    return "".join(f"/{quote(name, safe='')}" for name in names)


class Answer:
    """An answer that is read as it comes."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = response.headers

    def pieces(self) -> Iterator[bytes]:
        while True:
            with _own_errors():
                piece = self._response.read1(_PIECE_BYTES)
            if not piece:
                return
            yield piece

    def lines(self) -> Iterator[bytes]:
        """Whole lines only: drops a line that a broken connection cut off."""
        rest: list[bytes] = []
        size = 0
        for piece in self.pieces():
            *lines, last = piece.split(b"\n")
            for line in lines:
                yield b"".join([*rest, line])
                rest.clear()
                size = 0
            rest.append(last)
            size += len(last)
            if size > MESSAGE_BYTES_MOST:
                raise InvalidAnswerError("a line of the gateway's answer has no end")


class Transport:
    def __init__(
        self, connections: Connections, key: str | None, *, request_timeout_ms: float, outage_ms: float
    ) -> None:
        self._connections = connections
        self._headers = {"User-Agent": "berth-python", "Accept": "*/*"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._no_answer = f"no gateway answers at {connections.origin}"
        self._request_timeout_s = request_timeout_ms / 1_000
        self._outage_ms = outage_ms

    def backoff(self) -> Backoff:
        return Backoff(self._outage_ms)

    def close(self) -> None:
        self._connections.close()

    def json(
        self,
        method: str,
        target: str,
        *,
        query: Query | None = None,
        body: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        wait_ms: float = 0,
        repeatable: bool = True,
        gone_is_done: bool = False,
    ) -> Any:
        """The answer's JSON; None for an empty answer.

        `body` is sent as JSON, or `content` as it is. `wait_ms`: how long the gateway may wait before it answers.
        `gone_is_done`: a 404 is no error if an earlier try may have been carried out.
        """
        maybe_done = False
        backoff = self.backoff()
        given = {**self._headers, **(headers or {})}
        if body is not None:
            content = json.dumps(body, separators=(",", ":")).encode()
            given["Content-Type"] = "application/json"
        while True:
            try:
                return self._once(method, self._target(target, query), content, given, wait_ms)
            except BerthError as error:
                if not repeatable:
                    raise
                if gone_is_done and maybe_done and error.code == "not-found":
                    return None
                backoff.after(error)
                maybe_done = maybe_done or _may_be_done(error)

    def remove(self, target: str) -> None:
        """Sends a DELETE; fails if there is no such resource."""
        self.json("DELETE", target, gone_is_done=True)

    @contextmanager
    def stream(
        self,
        method: str,
        target: str,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        silence_ms: float,
    ) -> Iterator[Answer]:
        """Opens a stream, without retries. Closes its connection at the end."""
        connection = self._connections.take(self._request_timeout_s)
        try:
            timed = self._connect(connection, silence_ms / 1_000)
            given = {**self._headers, **(headers or {})}
            with self._exchange(connection, method, self._target(target, query), None, given) as response:
                if response.status >= 300:
                    raise _refusal(response)
                timed.limit(silence_ms / 1_000, None)
                yield Answer(response)
        finally:
            connection.close()

    def _once(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str], wait_ms: float
    ) -> Any:
        connection = self._connections.take(self._request_timeout_s)
        try:
            answer_s = self._request_timeout_s + wait_ms / 1_000
            timed = self._connect(connection, answer_s)
            # `http.client` refuses the next request on a connection whose response is open.
            with self._exchange(connection, method, target, body, headers) as response:
                if response.status >= 300:
                    raise _refusal(response)
                answer = _content(response, timed, answer_s)
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._connections.give_back(connection)
        return parsed(answer) if answer else None

    def _connect(self, connection: http.client.HTTPConnection, answer_s: float) -> TimedSocket:
        """Connects within the request timeout. The answer then has to begin within `answer_s`."""
        try:
            with _own_errors(self._no_answer):
                if connection.sock is None:
                    connection.connect()
                    connection.sock = TimedSocket(connection.sock)  # type: ignore[assignment, arg-type]
        except UnreachableError as error:
            error.sent = False
            raise
        timed: Any = connection.sock
        timed.limit(answer_s, time.monotonic() + answer_s)
        return timed

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        with _own_errors(self._no_answer):
            try:
                connection.request(method, target, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                # The gateway may have refused a long body before all of it arrived: its answer has the reason.
                if connection.sock is None:
                    raise
            return connection.getresponse()

    def _target(self, target: str, query: Query | None) -> str:
        given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        return self._connections.prefix + target + (f"?{urlencode(given)}" if given else "")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def _own_errors(what: str = "the connection to the gateway broke") -> Iterator[None]:
    try:
        yield
    except socket.timeout as error:
        raise SilentError(f"{what}: nothing came in time") from error
    except (OSError, http.client.HTTPException) as error:
        # A certificate that is not trusted now will not be later.
        retry = not isinstance(error, ssl.SSLCertVerificationError)
        raise UnreachableError(f"{what} ({error or type(error).__name__})", retry=retry) from error


def _content(response: http.client.HTTPResponse, timed: TimedSocket, answer_s: float) -> bytes:
    """The whole body. A long one may take longer, as long as `_SLOWEST_BYTES_PER_S` is kept."""
    began = time.monotonic()
    pieces: list[bytes] = []
    size = 0
    with _own_errors():
        while piece := response.read1(_PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > ANSWER_BYTES_MOST:
                raise InvalidAnswerError("the gateway's answer has no end")
            timed.limit(answer_s, began + answer_s + size / _SLOWEST_BYTES_PER_S)
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
    return b"".join(pieces)


def _may_be_done(error: BerthError) -> bool:
    if isinstance(error, RequestError):
        return error.status in (502, 504) or error.code == "redis-unreachable"
    return isinstance(error, UnreachableError) and error.sent


def _refusal(response: http.client.HTTPResponse) -> RequestError:
    with _own_errors():
        content = response.read(_PROBLEM_BYTES_MOST)
    try:
        problem = parsed(content)
    except InvalidAnswerError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    retry_after = response.headers.get("Retry-After", "")
    # `isdigit` alone accepts digits of other scripts.
    is_number = retry_after.isascii() and retry_after.isdigit()
    retry_after_s = float(retry_after) if is_number else None
    return RequestError(response.status, problem, retry_after_s=retry_after_s)
