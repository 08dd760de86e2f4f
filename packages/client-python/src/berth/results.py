"""How a job ended, and what it left."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Literal, Mapping

from .errors import JobFailedError
from .wire import item, items, nested, read, whole

OutcomeKind = Literal[
    "done",
    "exited",
    "signalled",
    "timed-out",
    "out-of-memory",
    "quota-exceeded",
    "output-limit",
    "cancelled",
    "refused",
    "lost",
]

# As a shell has them. A job that was refused or lost has none.
_EXIT_CODES = {
    "done": 0,
    "timed-out": 124,
    "out-of-memory": 137,
    "quota-exceeded": 153,
    "output-limit": 141,
    "cancelled": 130,
}


@dataclass(frozen=True)
class Outcome:
    """How a job ended. Which fields there are besides `kind` depends on it."""

    kind: OutcomeKind
    #: Of `exited` a number; of `refused` a word.
    code: int | str | None = None
    signal: int | None = None
    after_ms: int | None = None
    limit_bytes: int | None = None
    limit: float | None = None
    used: float | None = None
    unit: str | None = None
    reason: str | None = None
    message: str | None = None

    @property
    def ok(self) -> bool:
        return self.kind == "done" or (self.kind == "exited" and self.code == 0)

    @property
    def exit_code(self) -> int | None:
        """The shell's number for it; None where no command ran to an end."""
        if self.kind == "exited":
            return int(self.code or 0)
        if self.kind == "signalled":
            return 128 + (self.signal or 0)
        return _EXIT_CODES.get(self.kind)

    def __str__(self) -> str:
        more = (self.code, self.signal, self.after_ms, self.reason, self.message)
        return " ".join([self.kind, *(str(one) for one in more if one is not None)])


@dataclass(frozen=True)
class Timing:
    wall_ms: float
    cpu_ms: float
    #: Epoch milliseconds. `started_at_ms` is None when it did not begin.
    queued_at_ms: int | None = None
    started_at_ms: int | None = None
    finished_at_ms: int | None = None


@dataclass(frozen=True)
class Usage:
    """What a job used besides time."""

    #: What a command wrote, kept or not, or what was read and found; and the artifacts that were kept.
    out_bytes: int = 0
    #: The job as it was submitted; None of a step.
    in_bytes: int | None = None
    #: Of a command: the largest resident set of any one of its processes.
    peak_memory_bytes: int | None = None


@dataclass(frozen=True)
class Entry:
    """A file or directory of the workspace."""

    path: str
    type: Literal["file", "directory", "symlink", "other"]
    size: int
    mode: int
    modified_ms: float
    #: Where a symlink points, as written.
    target: str | None = None


@dataclass(frozen=True)
class Match:
    """A line that `grep` found. `cut`: it is longer than `text`."""

    path: str
    line: int
    text: str
    cut: bool


@dataclass(frozen=True)
class Artifact:
    """A file that a job left for others; `berth.artifacts` fetches it."""

    id: str
    path: str
    size: int
    sha256: str
    mime: str
    expires_at_ms: int


@dataclass(frozen=True)
class ArtifactRefusal:
    path: str
    code: str
    reason: str


@dataclass(frozen=True)
class Lines:
    first: int
    last: int
    more: bool


@dataclass(frozen=True)
class Result:
    """The end of a job. Which fields it has besides `outcome` and `timing` depends on the job's kind."""

    outcome: Outcome
    timing: Timing
    usage: Usage | None = None
    #: What an agent reads: a command's output, both streams as they were written, and how it ended.
    text: str = ""
    #: The job's own.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: The worker that ran it, and its host; only with an admin key.
    worker: str | None = None
    host: str | None = None
    stdout: str = ""
    stderr: str = ""
    #: Bytes of output that were not kept.
    cut_bytes: int = 0
    content: str = ""
    encoding: Literal["utf8", "base64"] = "utf8"
    sha256: str | None = None
    size: int | None = None
    created: bool | None = None
    count: int | None = None
    lines: Lines | None = nested(Lines)
    entries: tuple[Entry, ...] = nested(Entry, many=True)
    matches: tuple[Match, ...] = nested(Match, many=True)
    #: There is more than was asked for.
    truncated: bool = False
    artifacts: tuple[Artifact, ...] = nested(Artifact, many=True)
    artifacts_refused: tuple[ArtifactRefusal, ...] = nested(ArtifactRefusal, many=True)
    artifacts_refused_count: int = 0
    persisted: tuple[Artifact, ...] = nested(Artifact, many=True)
    #: Of `snapshot` and `restore`: the snapshot's; `method` is btrfs, reflink or copy.
    name: str | None = None
    method: str | None = None
    expires_at_ms: int | None = None
    #: Of `steps`: the results of those that ran.
    steps: tuple[Result, ...] = ()
    wire: Mapping[str, Any] = whole()

    @classmethod
    def of_wire(cls, wire: Mapping[str, Any]) -> "Result":
        value = item(wire, "value") if isinstance(wire, dict) and "value" in wire else {}
        own = {
            "outcome": read(Outcome, item(wire, "outcome")),
            "timing": read(Timing, item(wire, "timing")),
            "usage": read(Usage, wire["usage"]) if "usage" in wire else None,
            "steps": tuple(cls.of_wire(one) for one in (items(value, "steps") if "steps" in value else ())),
        }
        about = {name: wire[name] for name in ("text", "labels", "worker", "host") if name in wire}
        made = read(cls, {**value, **about, **own})
        object.__setattr__(made, "wire", wire)
        return made

    @property
    def ok(self) -> bool:
        return self.outcome.ok

    @property
    def exit_code(self) -> int | None:
        return self.outcome.exit_code

    @property
    def data(self) -> bytes:
        """`content` as bytes, however it travelled."""
        return base64.b64decode(self.content) if self.encoding == "base64" else self.content.encode()

    def check(self) -> "Result":
        """Itself when the job succeeded; otherwise raises `JobFailedError`."""
        if not self.ok:
            raise JobFailedError(self)
        return self
