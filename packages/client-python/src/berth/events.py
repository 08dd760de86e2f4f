"""What happens to a job, as it happens."""

from __future__ import annotations

import base64
import codecs
from dataclasses import dataclass, field
from typing import Any, Iterator, Literal, Mapping

from .errors import BerthError, InvalidAnswerError, UnreachableError
from .results import Artifact, Result
from .transport import MESSAGE_BYTES_MOST, Answer, Transport, path
from .wire import parsed, read

EventType = Literal["started", "stdout", "stderr", "artifact", "file", "retrying", "finished"]

#: Four heartbeats of the gateway.
_SILENCE_MS = 60_000


@dataclass(frozen=True)
class WrittenFile:
    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Event:
    #: Pass it as `after` to read on from here, in any process.
    id: str
    type: EventType
    #: Of stdout and stderr. A character that was cut in two is in the second of the events.
    text: str = ""
    data: bytes = b""
    artifact: Artifact | None = None
    #: Of file: a file that `write` or `edit` wrote.
    file: WrittenFile | None = None
    #: Of finished.
    result: Result | None = None
    wire: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def follow(transport: Transport, job_id: str, after: str) -> Iterator[Event]:
    """Each event once, until the job's end. Resumes a broken connection after the last event."""
    backoff = transport.backoff()
    target = path("v1", "jobs", job_id, "events")
    make = _EventMaker()
    while True:
        try:
            headers = {"Last-Event-ID": after} if after else {}
            with transport.stream("GET", target, headers=headers, silence_ms=_SILENCE_MS) as answer:
                if answer.status == 204:
                    return
                backoff.opened()
                for event_id, name, data in _messages(answer):
                    after = _sendable(event_id) or after
                    backoff.progressed()
                    event = make.event(after, name, parsed(data))
                    yield event
                    if event.type == "finished":
                        return
            raise UnreachableError("the gateway ended the stream of events before the job's end", job_id=job_id)
        except BerthError as error:
            backoff.after(error)


def _messages(answer: Answer) -> Iterator[tuple[str, str, str]]:
    """Id, event and data of each message, as `text/event-stream` has them. Comments are heartbeats."""
    fields: dict[str, list[str]] = {}
    size = 0
    for line in answer.lines():
        size = size + len(line) if line.strip() else 0
        if size > MESSAGE_BYTES_MOST:
            raise InvalidAnswerError("an event of the gateway has no end")
        if line.strip():
            name, _, value = line.decode(errors="replace").rstrip("\r").partition(":")
            if name:
                fields.setdefault(name, []).append(value.removeprefix(" "))
        else:
            if "data" in fields:
                yield fields.get("id", [""])[-1], fields.get("event", ["message"])[-1], "\n".join(fields["data"])
            fields = {}


def _sendable(event_id: str) -> str:
    """Checks an id that will be sent back in a header."""
    if not all("!" <= char <= "~" for char in event_id):
        raise InvalidAnswerError("an event of the gateway has an id that is none")
    return event_id


def _bytes_in(wire: Mapping[str, Any]) -> bytes:
    text = wire.get("text", "")
    try:
        return base64.b64decode(text) if wire.get("encoding") == "base64" else text.encode()
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidAnswerError("an event of the gateway has output that is none") from error


class _EventMaker:
    def __init__(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {name: decoder(errors="replace") for name in ("stdout", "stderr")}

    def event(self, event_id: str, name: Any, wire: Any) -> Event:
        if not isinstance(wire, dict):
            raise InvalidAnswerError("an event of the gateway is no object")
        decoder = self._decoders.get(name)
        if decoder:
            data = _bytes_in(wire)
            return Event(event_id, name, decoder.decode(data), data, wire=wire)
        artifact = read(Artifact, wire["artifact"]) if "artifact" in wire else None
        file = read(WrittenFile, wire["file"]) if "file" in wire else None
        result = Result.of_wire(wire["result"]) if "result" in wire else None
        return Event(event_id, name, artifact=artifact, file=file, result=result, wire=wire)
