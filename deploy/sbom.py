"""Prints the packages of a lock file with their hashes, as a CycloneDX 1.5 document."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_REQUIREMENT = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def main() -> None:
    lock = Path(sys.argv[1]).read_text()
    version = re.search(r'^VERSION = "(.+)"$', (ROOT / "core" / "__init__.py").read_text(), re.M)
    assert version is not None
    own = {"type": "application", "name": "warrenmq", "version": version[1]}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": list(components(lock)),
    }
    json.dump(document, sys.stdout, indent=2)
    print()


def components(lock: str) -> Iterator[dict[str, Any]]:
    """Yields a component for each requirement; its hashes are those of all its files."""
    found = list(_REQUIREMENT.finditer(lock))
    ends = [one.start() for one in found[1:]] + [len(lock)]
    for one, end in zip(found, ends, strict=True):
        name, version = one.groups()
        yield {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
            "hashes": [
                {"alg": "SHA-256", "content": digest}
                for digest in _HASH.findall(lock, one.end(), end)
            ],
        }


if __name__ == "__main__":
    main()
