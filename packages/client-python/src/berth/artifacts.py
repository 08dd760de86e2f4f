"""Files that jobs left."""

from __future__ import annotations

import hashlib
import os
from typing import Iterator

from .errors import BerthError, DamagedError, InvalidAnswerError, UnreachableError
from .results import Artifact
from .transport import Answer, Transport, path

_SILENCE_MS = 60_000


class Artifacts:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def read(self, artifact: Artifact | str) -> bytes:
        """All of it. Its hash is checked."""
        return b"".join(self.pieces(artifact))

    def save(self, artifact: Artifact | str, target: str | os.PathLike[str]) -> int:
        """Writes it to a local file, which appears only when all of it has arrived. Returns the size."""
        part = f"{os.fspath(target)}.part"
        try:
            with open(part, "wb") as file:
                for piece in self.pieces(artifact):
                    file.write(piece)
                size = file.tell()
            os.replace(part, target)
        except BaseException:
            if os.path.exists(part):
                os.remove(part)
            raise
        return size

    def pieces(self, artifact: Artifact | str) -> Iterator[bytes]:
        """The bytes in order. Resumes a broken connection after the last piece. Checks the hash at the end."""
        target = path("v1", "artifacts", artifact if isinstance(artifact, str) else artifact.id)
        backoff = self._transport.backoff()
        digest = hashlib.sha256()
        etag = ""
        done = 0
        while True:
            try:
                headers = {"Range": f"bytes={done}-", "If-Range": etag} if done > 0 else {}
                with self._transport.stream("GET", target, headers=headers, silence_ms=_SILENCE_MS) as answer:
                    etag = answer.headers.get("ETag", "")
                    size = _size(answer)
                    if isinstance(artifact, Artifact) and size != artifact.size:
                        raise DamagedError(f"the gateway's artifact has {size} bytes, not {artifact.size}")
                    if done > 0 and answer.status != 206:
                        raise DamagedError("the artifact has changed while it was read")
                    for piece in answer.pieces():
                        done += len(piece)
                        digest.update(piece)
                        backoff.progressed()
                        yield piece
                        # All bytes have arrived, so an error of the connection does not matter any more.
                        if done >= size:
                            break
                if done < size:
                    raise UnreachableError(f"the connection to the gateway broke after {done} of {size} bytes")
                break
            except DamagedError:
                # An artifact never changes, so a second try would find the same.
                raise
            except BerthError as error:
                backoff.after(error)
        expected = artifact.sha256 if isinstance(artifact, Artifact) else etag.strip('"')
        if digest.hexdigest() != expected:
            raise DamagedError(f"the artifact's sha256 is {digest.hexdigest()} and not {expected}")


def _size(answer: Answer) -> int:
    whole = answer.headers.get("Content-Range", "").rpartition("/")[2]
    size = whole or answer.headers.get("Content-Length", "")
    if not (size.isascii() and size.isdigit() and len(size) < 20):
        raise InvalidAnswerError("the gateway's answer has no length of the artifact")
    return int(size)
