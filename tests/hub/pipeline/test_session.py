"""Which PySpark is used; sessions themselves are tested in `tests/pipeline`."""

from __future__ import annotations

import pyspark
import pytest

from warrenmq.hub.pipeline.session import NoSpark, spark_session


@pytest.mark.parametrize("version", ["3.5.7", "4.1.1", "4.20.0", "5.0.0"])
def test_other_releases_are_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    reason = f"PySpark {version} is installed, 4.2 or 4.3 needed; run pip install"
    with pytest.raises(NoSpark, match=reason):
        spark_session("refused")
