"""Which tests look at a module: its own file, the mirrored folder, then suites of its area."""

from __future__ import annotations

from pathlib import Path

SUITES = {
    "core/queue": ("tests/core/test_broker.py", "tests/conformance/test_s5_queue.py"),
    "core/store": ("tests/core/test_durability.py", "tests/core/test_paging.py"),
    "core/proto": ("tests/conformance/test_s6_publish.py", "tests/conformance/test_s7_tx.py"),
    "core": ("tests/model", "tests/conformance"),
    "hub": ("tests/hub/test_service.py", "tests/conformance/test_websub.py"),
    "app/routes": ("tests/app/routes",),
    "app": ("tests/app", "tests/conformance/test_websub.py"),
}


def suites(root: Path, module: str) -> list[str]:
    """Paths of tests, the likeliest first and none twice; `module` is like `core/clock.py`."""
    path = Path(module)
    own = Path("tests") / path.parent / f"test_{path.stem}.py"
    folder = Path("tests") / path.parent
    mirrored = [own.as_posix()] if len(path.parts) < 3 else [own.as_posix(), folder.as_posix()]
    areas = [area for area in SUITES if path.as_posix().startswith(f"{area}/")]
    areas.sort(key=len, reverse=True)
    listed = [suite for area in areas for suite in SUITES[area]]
    return [one for one in dict.fromkeys([*mirrored, *listed]) if (root / one).exists()]
