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


class JobOptions(TypedDict, total=False):
    """Of any job. docs/python.md says what each does."""

    id: str
    session: str
    agent: str
    scope: Scope
    profile: str
    pool: str
    retry: Retry
    idempotent: bool
    priority: int
    delay_ms: int
    run_at_ms: int
    deadline_at_ms: int
    labels: Mapping[str, str]


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


class ReadOptions(JobOptions, total=False):
    line: int
    lines: int
    offset: int
    bytes: int


class StatOptions(JobOptions, total=False):
    hash: bool


class ListOptions(JobOptions, total=False):
    recursive: bool
    max_items: int


class RemoveOptions(JobOptions, total=False):
    recursive: bool
    missing_ok: bool


class MoveOptions(JobOptions, total=False):
    overwrite: bool


class EditOptions(JobOptions, total=False):
    all: bool


class GrepOptions(JobOptions, total=False):
    path: str
    regex: bool
    ignore_case: bool
    include: Sequence[str]
    max_items: int


class GlobOptions(JobOptions, total=False):
    base: str
    dot: bool
    max_items: int


class StepsOptions(JobOptions, total=False):
    on_failure: Literal["stop", "continue"]


class Order(TypedDict, total=False):
    """A job as the gateway takes it. `tenant.order` makes them."""

    tenant: str
    request: Request
    id: str
    session: str
    agent: str
    scope: Scope
    profile: str
    pool: str
    retry: Mapping[str, Any]
    idempotent: bool
    priority: int
    delayMs: int
    runAtMs: int
    deadlineAtMs: int
    labels: Mapping[str, str]


Content = Union[str, bytes]

LIMITS = frozenset({"timeout_ms", "grace_ms", "drain_ms", "shown_bytes", "kept_bytes", "output_bytes"})
OF_JOB = frozenset(JobOptions.__annotations__)
