"""The configuration file that `warren config` prints."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from warrenmq.app.cli import warren
from warrenmq.app.configuration.example import example
from warrenmq.app.configuration.loading import NAMES, load
from warrenmq.app.configuration.settings import Settings


def test_every_line_is_a_setting_with_its_default(tmp_path: Path) -> None:
    printed = CliRunner().invoke(warren, ["config"]).output
    uncommented = re.sub(r"^#(?=\w+ = )", "", printed, flags=re.MULTILINE)
    assert re.findall(r"^(\w+) = ", uncommented, flags=re.MULTILINE) == list(NAMES)
    for text in (printed, uncommented):
        file = tmp_path / "warren.toml"
        file.write_text(text)
        assert load({"config": str(file)}, {}) == Settings()


def test_given_values_are_in_force(tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text(example(data='/a "b"', dev=True, http_port=0))
    settings = load({"config": str(file)}, {})
    assert settings == Settings(data='/a "b"', dev=True, http_port=0)
