"""Mistakes in a policy: each is found, named by a stable code, on its line, with a way out."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hubgov.policy import Loaded, Problem, load, read, reading
from hubgov.policy.shapes import Document

BASE = """\
version: 1
timezone: UTC
currency: CNY
mode: enforce
defaults: {environment: experiment, owner: ops, team: lab}
flavors:
  g: {vendor: nvidia, model: Card G, memory: 80GiB, price_per_hour: 10}
pools:
  p: {engine: local}
  q: {engine: local}
nodes:
  box:
    match: {hostname: box}
    pools: {p: [0-3], q: [4, GPU-5]}
  n: {pool: p, flavor: g, devices: 4}
teams:
  lab: {}
  vision:
    parent: lab
    groups: [vision]
projects:
  seg:
    team: vision
    budget: {amount: 20, period: month}
queues:
  train:
    kinds: [training]
    pools: [p]
    class: standard
    lease: {default: 4h, max: 12h}
    warn: [30m, 10m]
    grace: 5m
    caps: {per_user: {gpus: 2}}
    retry: {max: 1}
  notebooks:
    kinds: [notebook]
    pools: [p]
    extension: {approvers: [admin]}
quotas:
  - {team: vision, pool: p, flavor: g, guaranteed: 2}
  - {team: vision, pool: p, flavor: g, guaranteed: 3, window: nights}
windows:
  nights: {days: mon-sun, from: "22:00", to: "08:00"}
  days: {days: mon-fri, from: "08:00", to: "22:00"}
spawn_profiles:
  - {name: one, queue: notebooks, gpus: 1}
"""

ROW = "{team: vision, pool: p, flavor: g, guaranteed: 2}"
"""The first quota of BASE."""

# name, text of BASE to replace, what replaces it (the line with #! is the expected one), code, word of the hint
MISTAKES = [
    ("unknown key", "    grace: 5m", "    grase: 5m  #!", "unknown_key", "grace"),
    ("unknown key at the top", "mode: enforce", "mod: enforce  #!", "unknown_key", "mode"),
    ("unknown key in a row", "guaranteed: 2}", "guarantee: 2}  #!", "unknown_key", "guaranteed"),
    ("unknown key in a nested block", "{gpus: 2}", "{gpu: 2}", "unknown_key", "gpus"),
    ("duplicate key", "    grace: 5m", "    grace: 5m\n    grace: 6m  #!", "duplicate_key", "line 32"),
    ("duplicate section", "windows:\n", "teams: {}  #!\nwindows:\n", "duplicate_key", "line 16"),
    ("alias", "max: 1}", "max: *one}  #!", "alias", "write"),
    ("anchor", "team: vision\n", "team: &t vision  #!\n", "alias", "write"),
    ("merge key", "    retry: {max: 1}", "    <<: {max: 1}  #!", "alias", "write the keys"),
    ("tag", "currency: CNY", "currency: !!str CNY  #!", "tag", "leave it out"),
    ("python tag", "currency: CNY", "currency: !!python/name:os.system CNY  #!", "tag", "leave it out"),
    ("broken YAML", "    grace: 5m", "    grace: [5m  #!", "not_yaml", "bracket"),
    ("tab", "    grace: 5m", "\tgrace: 5m  #!", "not_yaml", "quote"),
    ("bracket left open", "kinds: [training]", "kinds: [training  #!", "not_yaml", "bracket"),
    ("second document", "windows:\n", "---  #!\nwindows:\n", "not_yaml", "keep one"),
    ("list for a block", "  lab: {}", "  lab: []  #!", "wrong_type", ""),
    ("nothing for a block", "  lab: {}", "  lab:  #!", "wrong_type", "leave it out"),
    ("text for a list", "kinds: [training]", "kinds: training  #!", "wrong_type", ""),
    ("text for a number", "devices: 4}", 'devices: "4"}  #!', "wrong_type", "without quotes"),
    ("octal", "devices: 4}", "devices: 010}  #!", "wrong_type", "decimal"),
    ("exponent", "price_per_hour: 10}", "price_per_hour: 1e3}  #!", "wrong_type", "decimal"),
    ("decimal for a count", "retry: {max: 1}", "retry: {max: 1.5}  #!", "wrong_type", "decimal"),
    ("number for a name", "groups: [vision]", "groups: [2024]  #!", "wrong_type", "quotes"),
    ("yes for true", "    grace: 5m", "    retired: yes  #!", "wrong_type", "true or false"),
    ("queue without kinds", "  train:\n    kinds: [training]\n", "  train:  #!\n", "missing_key", "kinds"),
    ("queue without pools", "  train:\n    kinds: [training]\n    pools: [p]\n",
     "  train:  #!\n    kinds: [training]\n", "missing_key", "pools"),
    ("queue of no kinds", "kinds: [training]", "kinds: []  #!", "missing_key", "kinds"),
    ("flavor without memory", "memory: 80GiB, ", "", "missing_key", "memory"),
    ("quota without pool", ROW,
     "{team: vision, flavor: g, guaranteed: 2}  #!", "missing_key", "pool"),
    ("quota of nobody", ROW,
     "{pool: p, flavor: g, guaranteed: 2}  #!", "missing_key", "team"),
    ("quota of two", "guaranteed: 2}", "project: seg}  #!", "missing_key", "either"),
    ("node without pool", "n: {pool: p, flavor", "n: {flavor", "missing_key", "pool"),
    ("devices without flavor", "flavor: g, devices: 4}", "devices: 4}  #!", "missing_key", "flavor"),
    ("match without pools", "    pools: {p: [0-3], q: [4, GPU-5]}\n", "", "missing_key", "pools"),
    ("unknown word", "class: standard", "class: standart  #!", "bad_value", "standard"),
    ("unknown engine", "  q: {engine: local}", "  q: {engine: slrum}  #!", "bad_value", "slurm"),
    ("unknown kind", "kinds: [training]", "kinds: [trainig]  #!", "bad_value", "training"),
    ("unknown approver", "{approvers: [admin]}", "{approvers: [team_lead]}  #!", "bad_value", "team-lead"),
    ("GPUs too fine", "{gpus: 2}", "{gpus: 0.0625}", "bad_value", "3 decimals"),
    ("kind twice", "kinds: [training]", "kinds: [training, training]  #!", "bad_value", "once"),
    ("pool twice", "    pools: [p]\n    class", "    pools: [p, p]  #!\n    class", "bad_value", "once"),
    ("currency", "currency: CNY", "currency: yuan  #!", "bad_value", "CNY"),
    ("islands", "devices: 4}", "devices: 4, islands: [2, 3]}  #!", "bad_value", "add up"),
    ("declared and matched", "    match: {hostname: box}", "    devices: 3  #!\n    match: {hostname: box}",
     "bad_value", "pools"),
    ("artefacts outside", "    team: vision\n",
     "    artefacts: [{path: ../x, after: 1d}]  #!\n", "bad_value", "below"),
    ("profile of one and a half", "gpus: 1}", "gpus: 1.5}  #!", "bad_value", "whole"),
    ("duration", "    grace: 5m", "    grace: 5 minutes  #!", "bad_duration", "30m"),
    ("duration without unit", "    grace: 5m", "    grace: 300  #!", "bad_duration", "90s"),
    ("duration in the list", "warn: [30m, 10m]", "warn: [30m, soon]  #!", "bad_duration", "90s"),
    ("memory", "memory: 80GiB", "memory: 80GB", "bad_memory", "80GiB"),
    ("memory too large", "memory: 80GiB", "memory: 2000TiB", "range", "1PiB"),
    ("unknown pool", "    pools: [p]\n    class", "    pools: [pp]  #!\n    class", "bad_reference", "p"),
    ("unknown team", "parent: lab", "parent: lap  #!", "bad_reference", "lab"),
    ("unknown flavor", ROW,
     "{team: vision, pool: p, flavor: h, guaranteed: 2}  #!", "bad_reference", "flavors"),
    ("unknown window", "window: nights}", "window: night}  #!", "bad_reference", "nights"),
    ("unknown pool of a node", "q: [4, GPU-5]", "qq: [4, GPU-5]", "bad_reference", "q"),
    ("unknown default team", "team: lab}", "team: labs}  #!", "bad_reference", "lab"),
    ("unknown queue", "queue: notebooks", "queue: notebook", "bad_reference", "notebooks"),
    ("profile of a queue without notebooks", "queue: notebooks, gpus: 1}", "queue: train, gpus: 1}  #!",
     "bad_reference", "notebook"),
    ("team its own parent", "parent: lab", "parent: vision  #!", "cycle", "take"),
    ("parents in a ring", "  lab: {}", "  lab: {parent: vision}  #!", "cycle", "take"),
    ("second row", "guaranteed: 3, window: nights}", "guaranteed: 3}  #!", "duplicate_row", "quotas[0]"),
    ("second row in a window", "windows:\n",
     "  - {team: vision, pool: p, flavor: g, lend: 0, window: nights}  #!\nwindows:\n", "duplicate_row", "keep"),
    ("lease without end", "max: 12h}", "max: null}  #!", "endless_lease", "protected"),
    ("no lease", "lease: {default: 4h, max: 12h}", "lease: null  #!", "endless_lease", "protected"),
    ("default without end", "lease: {default: 4h,", "lease: {default: null,", "endless_lease", "protected"),
    ("lease above its maximum", "{default: 4h, max: 12h}", "{default: 24h, max: 12h}  #!", "range", "lower"),
    ("lease below the usual", "{default: 4h, max: 12h}", "{max: 1h}  #!", "range", "lower"),
    ("total below the lease", "{approvers: [admin]}", "{max_total: 1h}  #!", "range", "4h"),
    ("no such device count", "devices: 4}", "devices: 5000}  #!", "range", "1024"),
    ("too many GPUs", "guaranteed: 2}", "guaranteed: 1000001}  #!", "range", "1000000"),
    ("lease of no time", "default: 4h", "default: 0s", "range", "1s"),
    ("format of tomorrow", "version: 1", "version: 2  #!", "range", "1"),
    ("guard above the card", "price_per_hour: 10}", "fit_guard: {min_memory: 81GiB}}  #!", "range", "memory"),
    ("negative", "guaranteed: 2}", "guaranteed: -2}  #!", "negative", "0"),
    ("negative weight", "    parent: lab", "    weight: -1  #!", "negative", "0"),
    ("negative duration", "    grace: 5m", "    grace: -5m  #!", "negative", "30m"),
    ("priorities reversed", "    grace: 5m", "    priority_range: [9, 1]  #!", "priority_range", "[1, 9]"),
    ("priorities not two", "    grace: 5m", "    priority_range: [9]  #!", "wrong_type", "[0, 100]"),
    ("warnings out of order", "warn: [30m, 10m]", "warn: [10m, 30m]  #!", "warn_order", "[30m, 10m]"),
    ("checkpoint beyond the grace", "    grace: 5m", "    checkpoint_budget: 6m  #!", "grace", "raise"),
    ("time of day", 'from: "22:00"', 'from: "22h"', "bad_window", "22:00"),
    ("day", "days: mon-sun", "days: mon-son", "bad_window", "mon-fri"),
    ("windows that overlap", "windows:\n",
     "  - {team: vision, pool: p, flavor: g, lend: 0, window: early}  #!\n"
     'windows:\n  early: {days: [sat], from: "07:00", to: "09:00"}\n', "overlapping_windows", "drop"),
    ("time zone", "timezone: UTC", "timezone: Asia/Shangai  #!", "bad_timezone", "Asia/Shanghai"),
    ("folder of time zones", "timezone: UTC", "timezone: Asia  #!", "bad_timezone", "Asia"),
    ("path for a time zone", "timezone: UTC", "timezone: ../../etc/passwd  #!", "bad_timezone", "Asia"),
    ("device in two pools", "q: [4, GPU-5]", "q: [3, GPU-5]", "device_twice", "one pool"),
    ("device twice in a pool", "p: [0-3]", "p: [0-3, 2]", "device_twice", "once"),
    ("span backwards", "p: [0-3]", "p: [3-0]", "range", "0-3"),
    ("not a device", "q: [4, GPU-5]", "q: [4, 4.5]", "bad_value", "UUID"),
    ("name with a blank", "  lab: {}", "  lab: {}\n  my team: {}  #!", "bad_name", "letters"),
    ("name too long", "  lab: {}", f"  lab: {{}}\n  {'x' * 64}: {{}}  #!", "bad_name", "63"),
    ("invisible name", "groups: [vision]", 'groups: ["a\\u200Bb"]  #!', "bad_name", "type"),
    ("blank around a name", "owner: ops,", "owner: ' ops',", "bad_name", "blanks"),
    ("list as a key", "  lab: {}", "  lab: {}\n  [a]: {}  #!", "bad_name", "word"),
    ("name made twice", "devices: 4}", "devices: 4, count: 2}\n  n-1: {pool: p}  #!", "duplicate_name", "rename"),
    ("host twice", "  n: {pool",
     "  b: {pools: {}, match: {hostname: box}}  #!\n  n: {pool", "duplicate_name", "one rule"),
    ("profile twice", "gpus: 1}", "gpus: 1}\n  - {name: one, queue: notebooks}  #!", "duplicate_name", "rename"),
    ("unowned pool", "owner: ops, ", "", "unowned_pool", "owner"),
    ("nested too deeply", "  lab: {}", "  lab: " + "[" * 40 + "]" * 40 + "  #!", "too_deep", "32"),
]  # fmt: skip


def line_of(text: str, mark: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if mark in line)


def doubts(loaded: Loaded) -> list[Problem]:
    """What is allowed but probably not meant."""
    return [problem for problem in loaded.problems if problem.severity == "warning"]


@pytest.mark.parametrize(
    ("old", "new", "code", "hint"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES]
)
def test_a_mistake_is_named_on_its_line_with_a_way_out(old: str, new: str, code: str, hint: str) -> None:
    assert BASE.count(old) >= 1
    text = BASE.replace(old, new, 1)
    loaded = load(text, name="p.yaml")
    assert loaded.policy is None
    assert code in {problem.code for problem in loaded.errors}, [str(one) for one in loaded.problems]
    found = next(problem for problem in loaded.errors if problem.code == code)
    assert hint.lower() in found.hint.lower()
    if "#!" in text:
        assert found.line == line_of(text, "#!"), str(found)
    elif new:
        assert found.line == line_of(text, new.splitlines()[0]), str(found)
    assert str(found).startswith(f"p.yaml:{found.line}: {code}: ")


def test_the_table_is_long_enough_and_its_base_is_right() -> None:
    loaded = load(BASE)
    assert loaded.policy is not None
    assert loaded.problems == ()
    assert len(MISTAKES) >= 40


def mistaken(name: str) -> tuple[str, str]:
    """BASE with the mistake of that name in it, and its code."""
    _, old, new, code, _ = next(row for row in MISTAKES if row[0] == name)
    return BASE.replace(old, new, 1), code


@pytest.mark.parametrize("name", [row[0] for row in MISTAKES])
def test_one_mistake_makes_no_noise(name: str) -> None:
    """Each mistake gives its own problem, and what follows from it by itself is not complained about."""
    text, code = mistaken(name)
    codes = [problem.code for problem in load(text).errors]
    # Without a default owner both pools and the project are nobody's.
    most = {"unowned pool": 4, "merge key": 2, "unknown team": 2}.get(name, 1)
    assert 1 <= len(codes) <= most, codes
    assert codes[0] == code


def test_all_mistakes_are_told_at_once() -> None:
    text = BASE
    for old, new in (
        ("currency: CNY", "currency: yuan"),
        ("    grace: 5m", "    grase: 5 minutes"),
        ("parent: lab", "parent: lap"),
        ("class: standard", "class: standart"),
        ("    pools: [p]\n    extension", "    pools: [x]\n    extension"),
        ("guaranteed: 3, window: nights}", "guaranteed: -3, window: night}"),
        ("    retry: {max: 1}", "    retry: *all"),
        ("memory: 80GiB", "memory: 80GB"),
        ("queue: notebooks", "queue: nothing"),
    ):
        text = text.replace(old, new, 1)
    loaded = load(text)
    assert loaded.policy is None
    assert {problem.code for problem in loaded.errors} >= {
        "bad_value", "unknown_key", "bad_reference", "negative", "alias", "bad_memory",
    }  # fmt: skip
    assert len(loaded.errors) == 10, [str(one) for one in loaded.errors]
    lines = [problem.line for problem in loaded.problems]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    "name", ["broken YAML", "alias", "tag", "merge key", "second document", "nested too deeply"]
)
def test_without_libyaml_the_same_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    text, code = mistaken(name)
    with_libyaml = load(text)
    monkeypatch.setattr(reading, "_LOADER", yaml.SafeLoader)
    without = load(text)
    assert [one.code for one in without.errors] == [one.code for one in with_libyaml.errors]
    assert code in {one.code for one in without.errors}
    assert load(BASE).policy is not None
    assert load('a: "\\UFFFFFFFF"').policy is None
    assert load("[" * 20_000).policy is None


def test_a_line_can_be_jumped_to() -> None:
    text = BASE.replace("    grace: 5m", "    grase: 5m")
    assert [str(one) for one in load(text, name="x/policy.yaml").errors] == [
        "x/policy.yaml:32: unknown_key: there is no key 'grase' in queues.train; did you mean grace?"
    ]


def test_items_taken_out_of_a_list_do_not_move_the_lines_of_those_after() -> None:
    text = BASE.replace("guaranteed: 2}", "guaranteed: two}").replace("window: nights}", "window: nigths}")
    where = {problem.code: (problem.line, problem.path) for problem in load(text).errors}
    assert where["wrong_type"][1] == "quotas[0].guaranteed"
    assert where["bad_reference"] == (line_of(text, "nigths"), "quotas[1].window")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("guaranteed: 2}", "guaranteed: 12}", "over_guaranteed"),
        ("guaranteed: 3, window", "guaranteed: 30, window", "over_guaranteed"),
        (f"  - {ROW}\n", "", "no_base_row"),
        ("    pools: [p]\n    class", "    pools: [r]\n    class", "no_devices"),
        ("pool: p, flavor: g, guaranteed: 2}", "pool: p, flavor: h, guaranteed: 2}", "flavor_not_in_pool"),
    ],
)
def test_a_doubt_is_told_but_stops_nothing(old: str, new: str, code: str) -> None:
    text = BASE.replace("  q: {engine: local}\n", "  q: {engine: local}\n  r: {engine: local}\n")
    text = text.replace("pools: {p: [0-3], q: [4, GPU-5]}", "flavor: g\n    pools: {p: [0-3], q: [4, GPU-5]}")
    text = text.replace("  g: {", "  h: {vendor: nvidia, model: Card H, memory: 48GiB}\n  g: {")
    loaded = load(text.replace(old, new, 1))
    assert loaded.policy is not None, [str(one) for one in loaded.errors]
    assert code in {problem.code for problem in doubts(loaded)}
    assert "unused_flavor" in {problem.code for problem in doubts(loaded)}
    assert ": warning " in str(doubts(loaded)[0])


def test_a_team_that_can_have_no_project_is_a_doubt() -> None:
    loaded = load("defaults: {environment: experiment}\nteams: {a: {}, b: {leads: [ann]}}\n")
    assert loaded.policy is not None
    assert [(one.code, one.path) for one in doubts(loaded)] == [("no_project", "teams.a")]
    assert set(loaded.policy.projects) == {"b"}


def test_size_depth_and_number_of_problems_are_bounded() -> None:
    assert [one.code for one in load("x" * (1024 * 1024 + 1)).problems] == ["too_large"]
    assert [one.code for one in load("a: " + "[" * 200 + "]" * 200).problems] == ["too_deep"]
    assert load("[" * 100_000).policy is None
    many = load("teams:\n" + "".join(f"  t{i}: {{paren: x}}\n" for i in range(2000)))
    assert many.policy is None
    assert len(many.problems) == 201
    assert many.problems[-1].code == "too_many"
    nodes = "".join(f"  n{i}: {{pool: p, count: 10000}}\n" for i in range(11))
    assert load(f"nodes:\n{nodes}").errors[0].code == "range"


@pytest.mark.parametrize("text", ["", "[]", "just words", "1", "null", "# nothing\n"])
def test_what_is_no_block_is_no_policy(text: str) -> None:
    loaded = load(text)
    assert loaded.policy is None
    assert [one.code for one in loaded.problems] == ["wrong_type"]


def test_scalars_are_read_without_the_surprises_of_yaml() -> None:
    words = "yes, on, 22:00, 010, 0x1F, 1_000, 1e3, .inf, 2026-03-02"
    text = f"a: [{words}, ~, true, 12, -3, 0.10, '12', \"true\"]\n7: x"
    values = read(text).values
    assert values["a"][:9] == words.split(", ")
    assert values["a"][9:13] == [None, True, 12, -3]
    assert str(values["a"][13]) == "0.10"
    assert values["a"][14:] == ["12", "true"]
    assert values["7"] == "x"


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ("[mon], from: 22:00, to: 08:00", "[tue], from: 07:59, to: 09:00", True),
        ("[mon], from: 22:00, to: 08:00", "[tue], from: 08:00, to: 22:00", False),
        ("[sun], from: 23:00, to: 01:00", "[mon], from: 00:30, to: 02:00", True),
        ("[sun], from: 23:00, to: 01:00", "[mon], from: 01:00, to: 02:00", False),
        ("mon-fri, from: 00:00, to: 24:00", "sat-sun, from: 00:00, to: 24:00", False),
        ("mon-sun, from: 00:00, to: 24:00", "[wed], from: 12:00, to: 12:01", True),
    ],
)
def test_windows_overlap_around_the_week(first: str, second: str, overlap: bool) -> None:
    row = "  - {team: vision, pool: p, flavor: g, lend: 0, window: %s}\n"
    windows = f"windows:\n  a: {{days: {first}}}\n  b: {{days: {second}}}\n"
    kept = BASE[: BASE.index("quotas:")] + "quotas:\n" + row % "a" + row % "b" + windows
    assert [one.code for one in load(kept).errors] == ["overlapping_windows"] * overlap


def test_a_value_that_the_reader_refused_is_never_taken_for_left_out() -> None:
    assert load("max_attached: !!int 5").policy is None
    assert load(f"max_attached: 1{'0' * 5000}").policy is None


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
@example("\ud800")
@example('"\\UFFFFFFFF"')
@example("%YAML 9.9\n---\na: b")
@example("\x00")
@example("? [a, b]\n: c")
@example("*a : 1")
@example("!")
@example("<<: *x")
def test_no_text_ever_raises(text: str) -> None:
    loaded = load(text)
    assert loaded.policy is not None or loaded.errors


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_edit_of_a_policy_ever_raises(data: st.DataObject) -> None:
    pieces = re.split(r"(\W)", BASE)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(pieces) - 1))
        pieces[place] = data.draw(
            st.one_of(st.sampled_from(pieces), st.sampled_from("[]{}:-,*&!|>'\"%@0"), st.just(""))
        )
    loaded = load("".join(pieces))
    assert loaded.policy is not None or loaded.errors


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SECTIONS = sorted(Document.model_fields)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(SECTIONS), PLAIN | st.dictionaries(st.just("a"), PLAIN), max_size=4))
def test_no_values_ever_raise(values: dict[str, object]) -> None:
    loaded = load(json.dumps(values))
    assert loaded.policy is not None or loaded.errors
