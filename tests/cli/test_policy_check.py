"""`hubgov policy check`: every mistake of a file at once, each with its line and what to do, without a service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.conftest import Program

GOOD = """\
version: 1
timezone: Asia/Shanghai
currency: CNY
defaults: {environment: experiment, owner: wei, team: platform}
flavors:
  l40s: {vendor: nvidia, model: NVIDIA L40S, memory: 48GiB, price_per_hour: 9}
pools:
  dev: {engine: local}
teams:
  platform: {}
queues:
  experiment: {kinds: [notebook], pools: [dev]}
"""
WRONG: dict[str, tuple[str, list[tuple[int, str, str]]]] = {
    "a misspelt key and a reference to nothing": (
        GOOD.replace("currency", "curency").replace("pools: [dev]", "pools: [dve]"),
        [(3, "unknown_key", "did you mean currency?"), (12, "", "did you mean dev?")],
    ),
    "not YAML at all": ("version: 1\nqueues: {a: [\n", [(3, "not_yaml", "")]),
    "a key twice and a size in decimal units": (
        GOOD.replace("48GiB", "48GB") + "version: 1\n",
        [(6, "", "48GB"), (13, "", "version")],
    ),
}
LINE = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): (?P<code>[a-z_]+): (?P<message>.+)")


@pytest.fixture
def alone(hubgov: Program) -> Program:
    """The program where no service is known."""
    del hubgov.environment["HUBGOV_URL"], hubgov.environment["HUBGOV_TOKEN"]
    return hubgov


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_file_says_every_line_and_what_to_do(alone: Program, tmp_path: Path, mistake: str) -> None:
    text, expected = WRONG[mistake]
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    ran = alone("policy", "check", str(file))
    assert (ran.code, ran.err) == (1, "")
    found = [LINE.fullmatch(line) for line in ran.out.splitlines()]
    assert all(match and match["file"] == str(file) for match in found)
    for number, code, part in expected:
        assert any(
            int(match["line"]) == number and code in match["code"] and part in match["message"]
            for match in found
            if match
        ), (number, code, part, ran.out)


def test_as_a_document(alone: Program, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD.replace("currency", "curency"))
    ran = alone("policy", "check", str(file), "--json")
    assert (ran.code, ran.document["ok"]) == (1, False)
    (problem,) = (p for p in ran.document["problems"] if p["code"] == "unknown_key")
    assert (problem["line"], problem["severity"]) == (3, "error")
    assert problem["text"].startswith(f"{file}:3: unknown_key: ")


def test_in_chinese(alone: Program, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD.replace("48GiB", "48GB").replace("pools: [dev]", "pools: [dve]"))
    ran = alone("policy", "check", str(file), "--lang", "zh")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines() == [
        f"{file}:6: bad_memory: flavors.l40s.memory：'48GB' 不是显存大小；请写 512MiB、80GiB 或 1TiB",
        f"{file}:12: bad_reference: queues.experiment.pools[0]：pool 'dve' 不存在；是否想写 dev？",
    ]


def test_a_good_file(alone: Program, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD)
    ran = alone("policy", "check", str(file), "--lang", "zh")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == f"{file}：没有错误"
    assert alone("policy", "check", "-", "-q", given=GOOD).code == 0


def test_a_file_that_is_none(alone: Program, tmp_path: Path) -> None:
    for path, word in ((tmp_path / "no.yaml", "No such file"), (tmp_path, "directory")):
        ran = alone("policy", "check", str(path))
        assert (ran.code, ran.out) == (1, "")
        assert word in ran.err
        assert "hint:" in ran.err


def test_what_a_file_may_hold_is_told_as_a_schema(alone: Program) -> None:
    ran = alone("schema")
    assert (ran.code, ran.err) == (0, "")
    assert {"teams", "queues", "spawn_profiles"} <= set(ran.document["properties"])
    assert ran.document["additionalProperties"] is False


def test_bytes_that_are_no_text(alone: Program, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_bytes(b"version: 1\n\xff\xfe\n")
    ran = alone("policy", "check", str(file))
    assert ran.code == 1
    assert f"{file}:2: not_utf8: " in ran.err


def test_an_endless_file(alone: Program) -> None:
    ran = alone("policy", "check", "/dev/zero")
    assert ran.code == 1
    assert "too_large" in ran.out
