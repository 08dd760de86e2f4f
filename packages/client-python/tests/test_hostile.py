from __future__ import annotations

import itertools
import json
import socket
import threading
import time
import unittest
import unittest.mock
from typing import Any, Callable, Iterable, Iterator

from berth import (
    Artifact,
    Berth,
    BerthError,
    DamagedError,
    InvalidAnswerError,
    RequestError,
    SilentError,
    UnreachableError,
    WaitTimeoutError,
)

OK = b"HTTP/1.1 200 OK\r\n"
#: The pieces of an answer; may be endless.
Pieces = Iterable[bytes]


def answer(body: Any, head: bytes = OK) -> Pieces:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return [head + b"Content-Length: %d\r\n\r\n" % len(content), content]


def endless(piece: bytes) -> Iterator[bytes]:
    """Chunks of an answer that does not end."""
    yield OK + b"Transfer-Encoding: chunked\r\n\r\n"
    yield from itertools.repeat(b"%x\r\n%s\r\n" % (len(piece), piece))


def dripping(head: bytes, drop: bytes) -> Iterator[bytes]:
    """Sends a piece every 50 ms, so that no single wait is long enough to count as silence."""
    yield head
    while True:
        time.sleep(0.05)
        yield drop


class HostileGateway:
    """Answers each request with the next of the given answers, and then closes the connection."""

    def __init__(self, answers: Iterable[Pieces]) -> None:
        self._answers = iter(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.requests: list[bytes] = []
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        for one in [self._listener, *self._open]:
            # Closing alone does not wake a thread that waits on it.
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        try:
            self.requests.append(_request(connection))
            for piece in next(self._answers, ()):
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        finally:
            connection.close()


def _request(connection: socket.socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(65_536) or b"\r\n\r\n"
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
    wanted = head.index(b"\r\n\r\n") + 4 + int(length.partition(b":")[2])
    while len(head) < wanted:
        head += connection.recv(65_536) or b" " * wanted
    return head


#: Every call that reads an answer.
calls: dict[str, Callable[[Berth], Any]] = {
    "exec": lambda berth: berth.tenant("acme").exec("true"),
    "jobs": lambda berth: berth.jobs(),
    "state": lambda berth: berth.job("j").state(),
    "result": lambda berth: berth.job("j").result(wait_ms=100),
    "cancel": lambda berth: berth.job("j").cancel(),
    "why": lambda berth: berth.job("j").why(),
    "events": lambda berth: list(berth.job("j").events()),
    "batch": lambda berth: berth.batches.submit([]),
    "batch state": lambda berth: berth.batches.get("b").state(),
    "batch results": lambda berth: list(berth.batches.get("b").results()),
    "batch list": lambda berth: berth.batches.list(),
    "batch find": lambda berth: berth.batches.find("b"),
    "schedules": lambda berth: berth.schedules.list(),
    "schedule": lambda berth: berth.schedules.get("s"),
    "secrets": lambda berth: berth.tenant("acme").secrets.names(),
    "snapshots": lambda berth: berth.tenant("acme").snapshots.list(),
    "artifact": lambda berth: berth.artifacts.read("a"),
    "any route": lambda berth: berth.call("GET", "/v1/fleet"),
}

job = {"id": "j", "tenant": "acme", "session": "main", "kind": "exec", "sandbox": "acme", "acceptedAtMs": 1}
finished = {**job, "state": "finished"}
result = {"outcome": {"kind": "done"}, "timing": {"wallMs": 1, "cpuMs": 1}, "value": {}}

#: Bodies that no Berth gateway sends, in well-formed HTTP.
contents: dict[str, Any] = {
    "nothing": b"",
    "a page": b"<html>Welcome</html>",
    "no text": b"\xff\xfe\x00",
    "half of JSON": b'{"id": "j", "ten',
    "JSON of a hundred thousand lists": b"[" * 100_000,
    "null": None,
    "a number": 5,
    "a word": "x",
    "a list": [[], {}, None],
    "an empty object": {},
    "lists that are none": dict.fromkeys(["jobs", "names", "schedules", "snapshots", "batches"], 5),
    "lists of numbers": {name: [5, None, []] for name in ["jobs", "schedules", "snapshots", "batches"]},
    "a job whose id is a list": {**finished, "id": []},
    "a job without its sandbox": {"id": "j", "tenant": "acme", "state": "finished"},
    "a result that is a word": {**finished, "result": "done"},
    "a result without an outcome": {**finished, "result": {"timing": {}}},
    "an outcome of a number": {**finished, "result": {**result, "outcome": {"kind": 7}}},
    "output that is an object": {**finished, "result": {**result, "value": {"stdout": {}}}},
    "steps that are none": {**finished, "result": {**result, "value": {"steps": 3}}},
    "entries that are none": {**finished, "result": {**result, "value": {"entries": [3]}}},
    "labels of numbers": {**finished, "result": {**result, "labels": {"a": 1}}},
    "times that are words": {**finished, "result": {**result, "timing": {"wallMs": "1", "cpuMs": "1"}}},
    "reasons that are none": {"jobId": "j", "state": "waiting", "reasons": [1]},
}


class Hostile(unittest.TestCase):
    """A server that is no Berth gateway, or a broken one: each call ends with an error of this package."""

    def gateway(self, *answers: Pieces) -> HostileGateway:
        made = HostileGateway(answers)
        self.addCleanup(made.close)
        return made

    def berth(self, gateway: HostileGateway, *, outage_ms: float = 0) -> Berth:
        made = Berth(gateway.url, "key", request_timeout_ms=400, outage_ms=outage_ms, wait_ms=300)
        self.addCleanup(made.close)
        return made

    def ends(self, call: Callable[[Berth], Any], *answers: Pieces, outage_ms: float = 0) -> BerthError | None:
        """Returns the `BerthError` of a call. Any other error fails the test, and so does a call that does not end."""
        found: list[BaseException | None] = []
        berth = self.berth(self.gateway(*answers), outage_ms=outage_ms)

        def run() -> None:
            try:
                call(berth)
                found.append(None)
            except BaseException as error:
                found.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(60)
        self.assertEqual(len(found), 1, "the call did not end")
        if found[0] is not None and not isinstance(found[0], BerthError):
            raise found[0]
        return found[0]

    def test_answers_of_wrong_types_are_refused_by_every_call_that_reads_them(self) -> None:
        #: Bodies in which these calls read nothing, so that nothing is wrong with them.
        good = {("any route", name) for name in contents} | {("batch results", "nothing")}
        for (name, call), (what, body) in itertools.product(calls.items(), contents.items()):
            with self.subTest(call=name, answer=what):
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                # Batches' results are lines.
                error = self.ends(call, answer(content + b"\n" if content else b""))
                if (name, what) not in good:
                    self.assertIsNotNone(error)
                    self.assertTrue(str(error))

    def test_refusals_of_wrong_types_are_refusals_all_the_same(self) -> None:
        problems = [b"", b"no", b"[" * 100_000, 5, [1], {"code": {}, "detail": 7, "problems": 5, "jobId": []}]
        problems += [{"problems": [1, {}]}, {"code": "not-found", "requestId": {}, "accepted": 1}]
        heads = [b"", b"Retry-After: \xb2\r\n", b"Retry-After: -1\r\n", b"Retry-After: " + b"9" * 400 + b"\r\n"]
        for problem, head in itertools.product(problems, heads):
            with self.subTest(problem=problem, head=head):
                error = self.ends(calls["state"], answer(problem, b"HTTP/1.1 400 No\r\n" + head))
                assert isinstance(error, RequestError)
                self.assertEqual(error.status, 400)
                self.assertTrue(str(error))

    def test_an_answer_without_an_end_is_given_up_before_it_fills_the_memory(self) -> None:
        with unittest.mock.patch("berth.transport.ANSWER_BYTES_MOST", 1_000_000):
            for body in (endless(b" " * 60_000), answer_of_length(10**30)):
                self.assertIsInstance(self.ends(calls["state"], body), InvalidAnswerError)
        # Of a refusal only the beginning is read.
        refusal = (piece.replace(b"200 OK", b"400 No") for piece in endless(b" " * 60_000))
        self.assertIsInstance(self.ends(calls["state"], refusal), RequestError)

    def test_an_answer_that_drips_is_given_up_in_time(self) -> None:
        drips = {
            "body": dripping(OK + b"Content-Length: 100000\r\n\r\n", b" "),
            "chunks": dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
            "headers": dripping(OK, b"X: y\r\n"),
            "one header": dripping(OK + b"X: ", b"y"),
            "beginning": dripping(b"HTTP/1.1 ", b"2"),
            "refusal": dripping(b"HTTP/1.1 400 No\r\nContent-Length: 100000\r\n\r\n", b" "),
        }
        for what, drip in drips.items():
            with self.subTest(what):
                self.assertIsInstance(self.ends(calls["state"], drip), UnreachableError)
        modules = {
            "events": "events._SILENCE_MS",
            "batch results": "batches._RESULTS_SILENCE_MS",
            "artifact": "artifacts._SILENCE_MS",
        }
        for name in modules:
            silence = f"berth.{modules[name]}"
            with self.subTest(name), unittest.mock.patch(silence, 400):
                self.assertIsInstance(self.ends(calls[name], dripping(OK, b"X: y\r\n")), UnreachableError)

    def test_a_gateway_that_only_ever_says_continue_is_given_up(self) -> None:
        forever = itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.assertIsInstance(self.ends(calls["state"], forever), SilentError)

    def test_broken_http_is_a_connection_that_broke(self) -> None:
        broken = [
            b"",
            b"\x00\xff\r\n\r\n",
            b"HTTP/1.1 99999 x\r\n\r\n",
            OK + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
            OK + b"X: y\r\n" * 1_000 + b"\r\n",
            OK + b"Content-Length: 10\r\n\r\nshort",
            OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        ]
        for content in broken:
            with self.subTest(content=content[:60]):
                self.assertIsInstance(self.ends(calls["state"], [content]), UnreachableError)

    def test_a_redirect_is_not_followed_and_takes_the_key_nowhere(self) -> None:
        other = self.gateway(answer(finished))
        for status, name in itertools.product((301, 302, 307, 308), ("state", "exec", "events", "artifact")):
            head = b"HTTP/1.1 %d Over there\r\nLocation: %s/\r\n" % (status, other.url.encode())
            error = self.ends(calls[name], answer(b"", head))
            assert isinstance(error, RequestError)
            self.assertEqual(error.status, status)
        self.assertEqual(other.requests, [])

    def test_a_broken_stream_of_events_is_an_error(self) -> None:
        streams: dict[str, tuple[bytes, type[BerthError]]] = {
            "that ends": (b": hello\n\n", UnreachableError),
            "that ends in the middle": (b'id: 1-0\nevent: stdout\ndata: {"te', UnreachableError),
            "without JSON": (b"id: 1-0\nevent: stdout\ndata: x\n\n", InvalidAnswerError),
            "of lists": (b"id: 1-0\nevent: started\ndata: []\n\n", InvalidAnswerError),
            "of no text": (b"\xff\xfe: \xff\ndata: \xff\n\n", InvalidAnswerError),
            "with ids for no header": ("id: \u20ac\ndata: {}\n\n".encode(), InvalidAnswerError),
            "with output that is a number": (b'event: stdout\ndata: {"text": 5}\n\n', InvalidAnswerError),
            "with output that is no base64": (
                b'event: stderr\ndata: {"text": "x", "encoding": "base64"}\n\n',
                InvalidAnswerError,
            ),
            "with an end that is none": (b'event: finished\ndata: {"result": 3}\n\n', InvalidAnswerError),
            "with a file that is none": (b'event: file\ndata: {"file": {"path": 3}}\n\n', InvalidAnswerError),
        }
        for what, (content, kind) in streams.items():
            with self.subTest(what):
                self.assertIsInstance(self.ends(calls["events"], [OK + b"\r\n" + content]), kind)

    def test_an_event_or_a_result_without_an_end_is_given_up_before_it_fills_the_memory(self) -> None:
        with unittest.mock.patch("berth.transport.MESSAGE_BYTES_MOST", 1_000_000), unittest.mock.patch(
            "berth.events.MESSAGE_BYTES_MOST", 1_000_000
        ):
            for name in ("events", "batch results"):
                self.assertIsInstance(self.ends(calls[name], endless(b"x" * 60_000)), InvalidAnswerError)
            many = endless(b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n" * 1_000)
            self.assertIsInstance(self.ends(calls["events"], many), InvalidAnswerError)

    def test_an_artifact_of_another_length_or_without_one_is_damaged(self) -> None:
        wanted = Artifact("a", "a.txt", 3, "0" * 64, "text/plain", 1)
        read: Callable[[Berth], Any] = lambda berth: berth.artifacts.read(wanted)
        self.assertIsInstance(self.ends(read, answer(b"abc")), DamagedError)
        self.assertIsInstance(self.ends(read, answer_of_length(10**15)), DamagedError)
        for body in (endless(b"x" * 60_000), [OK + b"Content-Length: abc\r\n\r\nabc"], answer_of_length(10**30)):
            self.assertIsInstance(self.ends(read, body), InvalidAnswerError)

    def test_an_artifact_of_another_length_is_asked_for_once(self) -> None:
        gateway = self.gateway(answer(b"four"), answer(b"four"))
        wanted = Artifact("a", "a.txt", 3, "0" * 64, "text/plain", 1)
        with self.assertRaises(DamagedError):
            self.berth(gateway, outage_ms=500).artifacts.read(wanted)
        self.assertEqual(len(gateway.requests), 1)

    def test_a_gateway_that_does_not_wait_is_asked_with_pauses(self) -> None:
        running = {**job, "state": "running"}
        gateway = self.gateway(*[answer(running) for _ in range(1_000)])
        with self.assertRaises(WaitTimeoutError):
            self.berth(gateway).job("j").result(wait_ms=500)
        self.assertLessEqual(len(gateway.requests), 7)

    def test_a_removal_whose_answer_got_lost_is_done_when_there_is_nothing_left(self) -> None:
        missing = answer({"code": "not-found", "detail": "none"}, b"HTTP/1.1 404 No\r\n")
        busy = answer({"code": "unavailable"}, b"HTTP/1.1 503 No\r\nRetry-After: 0\r\n")
        gone = answer({"code": "redis-unreachable"}, b"HTTP/1.1 503 No\r\nRetry-After: 0\r\n")
        removals: list[Callable[[Berth], Any]] = [
            lambda berth: berth.tenant("acme").secrets.remove("A"),
            lambda berth: berth.tenant("acme").snapshots.remove("a"),
            lambda berth: berth.schedules.remove("a"),
        ]
        for remove in removals:
            for lost in ((), gone):
                self.assertIsNone(self.ends(remove, lost, missing, outage_ms=10_000))
            for before in ([], [busy]):
                error = self.ends(remove, *before, missing, outage_ms=10_000)
                assert isinstance(error, RequestError)
                self.assertEqual(error.code, "not-found")


def answer_of_length(length: int) -> Iterator[bytes]:
    yield OK + b"Content-Length: %d\r\n\r\n" % length
    yield from itertools.repeat(b" " * 60_000)
