"""What a job can do: a method for each kind."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Generic, Mapping, Sequence, TypeVar

from .options import LIMITS, OF_JOB, Content, Request
from .wire import camel_keys

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import (
        CodeOptions,
        EditOptions,
        ExecOptions,
        FetchOptions,
        GlobOptions,
        GrepOptions,
        JobOptions,
        ListOptions,
        MoveOptions,
        ReadOptions,
        RemoveOptions,
        SnapshotOptions,
        StatOptions,
        StepsOptions,
        WriteOptions,
    )

R = TypeVar("R")


class Commands(Generic[R]):
    """A method for each kind of job. `_make` of a subclass returns a result, a job, an order or a step."""

    def _make(self, request: Request, options: Mapping[str, Any]) -> R:
        raise NotImplementedError

    def run(self, request: Request, **options: Unpack[JobOptions]) -> R:
        """Any request, as docs/http.md has it: {"kind": "exec", "command": "make"}."""
        return self._make(request, options)

    def exec(self, command: str | Sequence[str], **options: Unpack[ExecOptions]) -> R:
        """A command for `sh -c`, or a list of arguments that no shell touches."""
        form, what = ("command", command) if isinstance(command, str) else ("argv", [*command])
        return self._command({"kind": "exec", form: what}, options)

    def code(self, language: str, source: str, **options: Unpack[CodeOptions]) -> R:
        """`python`, `node`, `bash` or `sh`."""
        return self._command({"kind": "code", "language": language, "source": source}, options)

    def tool(self, name: str, args: Mapping[str, Any] | None = None, **options: Unpack[JobOptions]) -> R:
        """A custom tool that the operator defined, with its arguments by name."""
        return self._of({"kind": "tool", "name": name, "args": dict(args or {})}, options)

    def fetch(self, url: str, path: str, **options: Unpack[FetchOptions]) -> R:
        """The worker downloads a URL into the workspace, within the egress rules of the profile."""
        return self._of({"kind": "fetch", "url": url, "path": path}, options)

    def write(self, path: str, content: Content, **options: Unpack[WriteOptions]) -> R:
        return self._of({"kind": "write", "path": path, **_in_json(content)}, options)

    def read(self, path: str, *, binary: bool = False, **options: Unpack[ReadOptions]) -> R:
        """Lines of text; with `binary`, bytes: `result.data`."""
        return self._of({"kind": "read", "path": path, **({"as": "bytes"} if binary else {})}, options)

    def stat(self, path: str, **options: Unpack[StatOptions]) -> R:
        return self._of({"kind": "stat", "path": path}, options)

    def list(self, path: str = "", **options: Unpack[ListOptions]) -> R:
        return self._of({"kind": "list", "path": path}, options)

    def remove(self, path: str, **options: Unpack[RemoveOptions]) -> R:
        return self._of({"kind": "remove", "path": path}, options)

    def move(self, source: str, target: str, **options: Unpack[MoveOptions]) -> R:
        return self._of({"kind": "move", "from": source, "to": target}, options)

    def edit(self, path: str, find: str, replace: str, **options: Unpack[EditOptions]) -> R:
        return self._of({"kind": "edit", "path": path, "find": find, "replace": replace}, options)

    def patch(self, diff: str, **options: Unpack[JobOptions]) -> R:
        """A unified diff, applied to all its files or to none."""
        return self._of({"kind": "patch", "diff": diff}, options)

    def grep(self, pattern: str, **options: Unpack[GrepOptions]) -> R:
        return self._of({"kind": "grep", "pattern": pattern}, options)

    def glob(self, patterns: str | Sequence[str], **options: Unpack[GlobOptions]) -> R:
        many = [patterns] if isinstance(patterns, str) else [*patterns]
        return self._of({"kind": "glob", "patterns": many}, options)

    def copy(self, files: Mapping[str, Content], **options: Unpack[JobOptions]) -> R:
        """Many files into the workspace, in one job."""
        many = [{"path": path, **_in_json(content)} for path, content in files.items()]
        return self._of({"kind": "copy", "files": many}, options)

    def unpack(self, archive: bytes, path: str = "", **options: Unpack[JobOptions]) -> R:
        """A tar archive, plain or gzipped, into a directory of the workspace."""
        content = base64.b64encode(archive).decode()
        return self._of({"kind": "archive", "direction": "in", "path": path, "content": content}, options)

    def pack(self, *paths: str, **options: Unpack[JobOptions]) -> R:
        """Files and directories, by default all there are, as a tar archive: `result.data`."""
        return self._of({"kind": "archive", "direction": "out", "paths": [*(paths or ("",))]}, options)

    def steps(self, steps: Sequence[Request], **options: Unpack[StepsOptions]) -> R:
        """Several requests in order, as one job. `berth.step` makes them."""
        return self._of({"kind": "steps", "steps": [*steps]}, options)

    def stop(self, **options: Unpack[JobOptions]) -> R:
        """Stops the sandbox's container and everything that runs in it. Its files stay."""
        return self._of({"kind": "stop"}, options)

    def snapshot(self, name: str, **options: Unpack[SnapshotOptions]) -> R:
        """Saves the workspace under a name. Kills background processes first."""
        return self._of({"kind": "snapshot", "name": name}, options)

    def restore(self, name: str, **options: Unpack[JobOptions]) -> R:
        """Replaces the workspace by the snapshot's files; everything else in it is removed."""
        return self._of({"kind": "restore", "name": name}, options)

    def destroy(self, **options: Unpack[JobOptions]) -> R:
        """Removes the sandbox and its workspace. Later jobs find an empty one."""
        return self._of({"kind": "destroy"}, options)

    def _command(self, request: dict[str, Any], options: Mapping[str, Any]) -> R:
        limits = camel_keys({name: value for name, value in options.items() if name in LIMITS})
        others = {name: value for name, value in options.items() if name not in LIMITS}
        return self._of({**request, **({"limits": limits} if limits else {})}, others)

    def _of(self, request: dict[str, Any], options: Mapping[str, Any]) -> R:
        """Options that are not options of any job go into the request, whose validation names unknown ones."""
        of_request = {name: value for name, value in options.items() if name not in OF_JOB}
        of_job = {name: value for name, value in options.items() if name in OF_JOB}
        return self._make({**request, **camel_keys(of_request)}, of_job)


class Steps(Commands[Request]):
    def _make(self, request: Request, options: Mapping[str, Any]) -> Request:
        if options:
            raise TypeError(f"a step has no options of a job: {', '.join(options)}")
        return request


#: Makes steps: `acme.steps([step.write("a.py", "print(1)"), step.exec("python3 a.py")])`.
step = Steps()


def _in_json(content: Content) -> dict[str, str]:
    if isinstance(content, str):
        return {"content": content}
    return {"content": base64.b64encode(content).decode(), "encoding": "base64"}
