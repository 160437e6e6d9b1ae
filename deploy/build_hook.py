"""Compiles the catalogues when hubgov is built or installed, also where it is installed as it lies (`pip -e`)."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileTexts(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling before it collects the files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the .mo files that `artifacts` names."""
        runpy.run_path(str(Path(self.root) / "deploy" / "catalogues.py"))["compile_"](Path(self.root))
