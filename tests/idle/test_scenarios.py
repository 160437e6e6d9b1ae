"""The worked cases of the idle rule in virtual time: public faults of other cullers, with their right answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from idle.story import Story

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 8


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_the_scenario_expects_is_so(file: Path) -> None:
    story = Story(file.read_text(encoding="utf-8"))
    story.run()
    assert story.misses() == []
