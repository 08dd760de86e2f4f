"""Options of calls. In Python's spelling here; the gateway has them in camelCase."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Sequence, TypedDict, Union

Scope = Literal["tenant", "session", "agent", "shared"]
#: A request as the gateway takes it: {"kind": "exec", "command": "make"}.
Request = Mapping[str, Any]


class Retry(TypedDict, total=False):
    attempts: int
    backoff_ms: int
    max_backoff_ms: int
    factor: float
    jitter: float
    on: Sequence[str]


class _AnyJob(TypedDict, total=False):
    """Spelled alike in Python and in the gateway's JSON."""

    id: str
    session: str
    agent: str
    scope: Scope
    profile: str
    pool: str
    idempotent: bool
    priority: int
    labels: Mapping[str, str]
    secrets: Mapping[str, str]
    discard: bool


class JobOptions(_AnyJob, total=False):
    """Of any job. docs/python.md explains each."""

    retry: Retry
    delay_ms: int
    run_at_ms: int
    deadline_at_ms: int
    fork_of: str


class _ManyItems(JobOptions, total=False):
    max_items: int


class CommandOptions(JobOptions, total=False):
    cwd: str
    env: Mapping[str, str]
    stdin: str
    artifacts: Sequence[str]
    timeout_ms: int
    grace_ms: int
    drain_ms: int
    shown_bytes: int
    kept_bytes: int
    output_bytes: int


class ExecOptions(CommandOptions, total=False):
    background: Literal["keep", "kill"]


class CodeOptions(CommandOptions, total=False):
    args: Sequence[str]


class WriteOptions(JobOptions, total=False):
    mode: int
    append: bool
    must_not_exist: bool
    if_match: str
    persist: bool


class FetchOptions(JobOptions, total=False):
    max_bytes: int
    timeout_ms: int
    sha256: str


class ReadOptions(JobOptions, total=False):
    line: int
    lines: int
    offset: int
    bytes: int


class StatOptions(JobOptions, total=False):
    hash: bool


class ListOptions(_ManyItems, total=False):
    recursive: bool


class GrepOptions(_ManyItems, total=False):
    path: str
    regex: bool
    ignore_case: bool
    include: Sequence[str]


class GlobOptions(_ManyItems, total=False):
    base: str
    dot: bool


class RemoveOptions(JobOptions, total=False):
    recursive: bool
    missing_ok: bool


class MoveOptions(JobOptions, total=False):
    overwrite: bool


class EditOptions(JobOptions, total=False):
    all: bool


class SnapshotOptions(JobOptions, total=False):
    ttl_ms: int
    replace: bool


class StepsOptions(JobOptions, total=False):
    on_failure: Literal["stop", "continue"]


class Order(_AnyJob, total=False):
    """A job as the gateway takes it. `tenant.order` makes them."""

    tenant: str
    request: Request
    retry: Mapping[str, Any]
    delayMs: int
    runAtMs: int
    deadlineAtMs: int
    forkOf: str


Content = Union[str, bytes]

LIMITS = frozenset({"timeout_ms", "grace_ms", "drain_ms", "shown_bytes", "kept_bytes", "output_bytes"})
OF_JOB = frozenset(JobOptions.__annotations__)
