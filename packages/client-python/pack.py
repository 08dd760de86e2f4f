"""Packs this package into a wheel, and installs a wheel where there is no pip. Python 3.10 or newer, nothing else.

    python3 packages/client-python/pack.py DIRECTORY               writes the wheel there and prints its path
    python3 packages/client-python/pack.py --install WHEEL TARGET  verifies its RECORD and unpacks it into TARGET

The same sources give the same bytes: entries are sorted, stored uncompressed, and of one fixed date.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = "berth_client"
METADATA = """\
Metadata-Version: 2.4
Name: berth-client
Version: {version}
Summary: Run commands in per-tenant sandboxes, through a Berth gateway
License-Expression: MIT
License-File: LICENSE
Requires-Python: >=3.10
Classifier: Operating System :: OS Independent
Classifier: Programming Language :: Python :: 3 :: Only
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """\
Wheel-Version: 1.0
Generator: berth pack.py
Root-Is-Purelib: true
Tag: py3-none-any
"""
# The earliest that a zip file can say.
DATE = (1980, 1, 1, 0, 0, 0)


def pack(directory: Path) -> Path:
    version = _version()
    info = f"{NAME}-{version}.dist-info"
    sources = HERE / "src"
    files = {
        path.relative_to(sources).as_posix(): path.read_bytes()
        for path in sources.rglob("*")
        if path.suffix == ".py" or path.name == "py.typed"
    }
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    files[f"{info}/METADATA"] = METADATA.format(version=version, readme=readme).encode()
    files[f"{info}/WHEEL"] = WHEEL.encode()
    files[f"{info}/licenses/LICENSE"] = (HERE.parent.parent / "LICENSE").read_bytes()
    record = [[name, _digest(content), len(content)] for name, content in sorted(files.items())]
    record.append([f"{info}/RECORD", "", ""])
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(record)
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{NAME}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        # The files that describe the wheel come last, as the format recommends.
        for name, content in [*sorted(files.items()), (f"{info}/RECORD", lines.getvalue().encode())]:
            entry = zipfile.ZipInfo(name, DATE)
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return wheel


def install(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [record] = [name for name in names if re.fullmatch(r"[^/]+\.dist-info/RECORD", name)]
        expected = {name: digest for name, digest, _ in csv.reader(archive.read(record).decode().splitlines())}
        if sorted(expected) != sorted(names):
            raise SystemExit(f"{wheel}: RECORD names other files than there are")
        for name, digest in expected.items():
            if name.startswith("/") or ".." in name.split("/"):
                raise SystemExit(f"{wheel}: {name} would be outside the target")
            if name != record and digest != _digest(archive.read(name)):
                raise SystemExit(f"{wheel}: {name} is not what RECORD has of it")
        archive.extractall(target)


def _version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', (HERE / "src/berth/__init__.py").read_text(), re.M)
    assert found
    return found[1]


def _digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(pack(Path(sys.argv[1])))
    elif len(sys.argv) == 4 and sys.argv[1] == "--install":
        install(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        raise SystemExit(__doc__)
