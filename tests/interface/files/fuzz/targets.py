"""Every reader of a file, with a valid file of its kind, and ways to spoil one. Hypothesis and
atheris use the same.

A way to spoil a file takes its decisions from a string of bytes (`Choices`), so that whoever made
the bytes can change one decision at a time. What is hashed is hashed again: else the hash would be
all that is ever tested.
"""

import ast
import hashlib
import io
import json
import os
import shutil
import struct
import warnings
import zipfile
from collections.abc import Callable
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

import surefoot as sf
from surefoot.base.digest import digest

EPISODES = 10
DEEP = 20_000  # far beyond the depth at which Python's own readers give up
ODD_TEXTS = (
    "",
    "\ud800",
    "\x00",
    "a" * 5000,
    "../../x",
    "[[red]]",
    "{",
    "NaN",
    "é",
    "'; DROP TABLE log; --",
    '"',
)
ODD_NUMBERS = (
    0,
    -1,
    1,
    2,
    3,
    7,
    2**31,
    2**53 + 1,
    2**62,
    2**63 - 1,
    -(2**63),
    2**64,
    10**18,
    10**299,
    10**400,
)
ODD_FLOATS = (
    float("inf"),
    float("-inf"),
    float("nan"),
    1e308,
    -1e308,
    5e-324,
    0.5,
    -0.5,
    1e-300,
    1.0000001,
)
ODD = (
    None,
    True,
    False,
    *ODD_NUMBERS,
    *ODD_FLOATS,
    *ODD_TEXTS,
    [],
    {},
    [[]],
    [1, "a"],
    {"a": 1},
    "@deep",
    "@long",
)
DESCRIPTIONS = (
    "<f8",
    "<i8",
    ">f8",
    ">i8",
    "<f4",
    "<i4",
    "|i1",
    "|u1",
    "|b1",
    "<U3",
    "<U1",
    "|S8",
    "|O",
    "<c16",
    "<M8[s]",
)
SHAPES = (
    "()",
    "(1,)",
    "(0,)",
    "(2, 2)",
    "(1, 1, 1, 1)",
    "(3, 2, 3)",
    "(-1,)",
    "(1000000000000,)",
    "(4294967296, 4294967296)",
)


class Choices:
    """Decisions from bytes; when they are used up, always the first."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def below(self, n: int) -> int:
        """A number in 0..n-1."""
        size = 1 if n <= 256 else 2 if n <= 65536 else 4
        head, self.left = self.left[:size], self.left[size:]
        return int.from_bytes(head, "little") % n

    def one(self, some):
        """One of several."""
        return some[self.below(len(some))]

    def bytes(self, n: int) -> bytes:
        """Some bytes as they are."""
        head, self.left = self.left[:n], self.left[n:]
        return head


class Target(NamedTuple):
    """A reader, and what a valid file of it is called and holds."""

    name: str
    file: str  # the file that is spoilt, below the folder
    make: Callable[[Path], None]  # write valid files into a folder
    read: Callable[[Path], object]  # read them, and look at what was read
    structure: Callable[[bytes, Choices], bytes]  # spoil what it holds

    def spoil(self, whole: bytes, choose: Choices) -> bytes:
        """Spoil its bytes, or what it holds."""
        return (self.structure if choose.below(4) else damaged)(whole, choose)


def damaged(whole: bytes, choose: Choices) -> bytes:
    """Bytes changed, cut, put in, doubled; or others altogether."""
    way = choose.below(6)
    if way == 0:
        return choose.bytes(4096)
    spoilt = bytearray(whole)
    for _ in range(1 + choose.below(3)):
        at = choose.below(max(1, len(spoilt)))
        if way == 1:
            spoilt[at : at + 1] = bytes([choose.below(256)])
        elif way == 2:
            del spoilt[at:]
        elif way == 3:
            spoilt[at:at] = choose.bytes(1 + choose.below(8))
        elif way == 4:
            spoilt[at:at] = spoilt[at : at + 1 + choose.below(64)]
        else:
            spoilt[at : at + 4] = choose.one(
                (b"\xff" * 4, b"\x00" * 4, b"\x00\x00\x00\x80", b"\xff\xff\xff\x7f")
            )
    return bytes(spoilt)


# JSON
# --------------------------------------------------------------------------------------------------


def altered(value, choose: Choices):
    """One place of a nested value is another one."""
    if isinstance(value, dict) and value and choose.below(5):
        key = choose.one(sorted(value))
        way = choose.below(6)
        rest = {name: entry for name, entry in value.items() if name != key}
        if way == 0:
            return rest
        if way == 1:
            return {**value, choose.one(("extra", "about", "H", "")): choose.one(ODD)}
        return {**value, key: altered(value[key], choose)}
    if isinstance(value, list) and value and choose.below(4):
        i = choose.below(len(value))
        return choose.one(
            (value[:i], value + value[i:], [*value[:i], altered(value[i], choose), *value[i + 1 :]])
        )
    return choose.one(ODD)


def as_json(value) -> str:
    """With what Python's writer does not write."""
    text = json.dumps(value)
    text = text.replace('"@deep"', "[" * DEEP + "]" * DEEP).replace('"@long"', f'"{"x" * 100_000}"')
    return text.replace('"@twice": 0', '"states": ["z"], "kind": "other"')


def spoilt_json(whole: bytes, choose: Choices) -> bytes:
    """The structure under a new hash."""
    given = json.loads(whole)
    about = given.pop("about")
    for _ in range(1 + choose.below(3)):
        given = altered(given, choose)
    if choose.below(4) == 0:
        about = altered(about, choose)
    elif isinstance(given, dict):
        about = {**about, "digest": digest(given)} if choose.below(4) else {**about, "@twice": 0}
    content = {"about": about, **given} if isinstance(given, dict) else [about, given]
    return as_json(content).encode("utf-8", "replace")


# .npz
# --------------------------------------------------------------------------------------------------


class Member(NamedTuple):
    """An array as it lies in a file."""

    name: str
    descr: str
    order: str
    shape: str
    content: bytes

    def packed(self) -> bytes:
        """With its header."""
        text = (
            f"{{'descr': '{self.descr}', 'fortran_order': {self.order}, 'shape': {self.shape}, }}"
        )
        text += " " * (-(len(text) + 11) % 64) + "\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + self.content


def members_of(whole: bytes) -> list[Member]:
    """The arrays of a valid file."""
    with np.load(io.BytesIO(whole), allow_pickle=False) as data:
        arrays = {name: data[name] for name in data.files}
    return [
        Member(name, a.dtype.str, "False", str(a.shape), a.tobytes()) for name, a in arrays.items()
    ]


def hashed(members: list[Member]) -> list[Member]:
    """The same with a header whose digest is that of the arrays; where it can be computed at
    all.
    """
    fits = digest_of(members)
    return [
        with_text(m, {**json.loads(text_of(m)), "digest": fits}) if m.name == "about" else m
        for m in members
    ]


def digest_of(members: list[Member]) -> str:
    """The digest that a file of these members has to state."""
    return digest(
        {
            m.name: [ast.literal_eval(m.shape), m.descr, hashlib.sha256(m.content).hexdigest()]
            for m in members
            if m.name != "about"
        }
    )


def text_of(member: Member) -> str:
    return member.content.decode("utf-32-le", "replace")


def with_text(member: Member, value) -> Member:
    text = value if isinstance(value, str) else as_json(value)
    text = text or " "
    return member._replace(
        descr=f"<U{len(text)}", shape="()", content=text.encode("utf-32-le", "surrogatepass")
    )


def zipped(members: list[Member], choose: Choices) -> bytes:
    """A zip file of them; sometimes with a size in its directory that is a lie."""
    stream = io.BytesIO()
    compression = choose.one((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of a name that occurs twice
        for member in members:
            info = zipfile.ZipInfo(f"{member.name}.npy")
            info.compress_type = archive.compression
            archive.writestr(info, member.packed())
    whole = bytearray(stream.getvalue())
    if choose.below(8) == 7:
        entry = whole.find(b"PK\x01\x02")
        # compression, CRC, sizes, length of the name, place
        field = entry + choose.one((10, 16, 20, 24, 28, 42))
        whole[field : field + 4] = struct.pack(
            "<I", choose.one((0, 1, 12, 14, 2**31, 2**32 - 1, 10**9))
        )
    return bytes(whole)


FIELDS = (  # of a member, and what it may say instead
    ("name", ("extra", "planned_n_sas", "../x", "", "a" * 100, "é", "H", "x_sa")),
    ("descr", DESCRIPTIONS),
    ("shape", SHAPES),
    ("order", ("True", "1", "__import__('os')", "[" * 500)),
)


def changed(members: list[Member], choose: Choices) -> list[Member]:
    """One array is gone, doubled, called otherwise, or says or holds something else."""
    i = choose.below(len(members))
    way = choose.below(12)
    member, others = members[i], members[:i] + members[i + 1 :]
    if way == 0:
        return others
    if way == 1:
        return [*members, member]
    return [*others, another(member, members, way, choose)]


def another(member: Member, members: list[Member], way: int, choose: Choices) -> Member:  # noqa: PLR0911  (one way each)
    """This array with another name, shape or kind, or with other content."""
    if way == 2:
        return member._replace(content=choose.one(members).content)
    if way == 3:
        return choose.one(members)._replace(name=member.name)
    if way < 8:
        field, values = FIELDS[way - 4]
        return member._replace(**{field: choose.one(values)})
    if way == 8:
        size = 1 + choose.below(3)
        descr = choose.one(("<i8", "<f8", "|b1", "|i1"))
        shape = choose.one((f"({size},)", f"({size}, 1)", f"(1, {size})"))
        return member._replace(descr=descr, shape=shape, content=np.zeros(size, descr).tobytes())
    content = member.content
    if member.descr.startswith("<U"):
        text = text_of(member)
        with suppress(ValueError, RecursionError):  # one that was changed before
            value = json.loads(text) if text.startswith("{") else text
            return with_text(member, altered(value, choose))
    elif member.descr in ("<i8", "<f8") and content and len(content) % 8 == 0:
        array = np.frombuffer(content, dtype=member.descr).copy()
        pool = ODD_FLOATS if member.descr == "<f8" else [n for n in ODD_NUMBERS if abs(n) < 2**63]
        for _ in range(1 + choose.below(2)):
            array[choose.below(array.size)] = choose.one(pool)
        return member._replace(content=array.tobytes())
    return member._replace(content=damaged(content, choose))


def spoilt_npz(whole: bytes, choose: Choices) -> bytes:
    """Arrays under a new hash."""
    members = members_of(whole)
    for _ in range(1 + choose.below(3)):
        members = changed(members, choose) or members
    with suppress(ValueError, TypeError, RecursionError):  # its header is no longer one
        members = hashed(members)
    return zipped(members, choose)


# Text
# --------------------------------------------------------------------------------------------------

TOML_VALUES = (
    "0x" + "f" * 5000,
    "9" * 400,
    "9" * 5000,
    "-1",
    "0",
    "1e400",
    "inf",
    "nan",
    "true",
    '""',
    '"\\u0000"',
    "[]",
    "{}",
    "1979-05-27",
    "07:32:00",
    "[[[[1]]]]",
    "[" * 2000 + "]" * 2000,
    '"' + "x" * 5000 + '"',
    "{ name = 1 }",
    '{ name = "random", S = 1000000000 }',
    '{ name = "random-sparse", S = 100000, H = 100000 }',
    "{ eta = -1.0 }",
    '{ name = "queue", H = 1000000000000 }',
    '["promise", "promise"]',
    "100000",
    "1000000000000000",
    '"usual"',
)
LINES = (
    "a" + ".a" * 5000 + " = 1",
    "[" + "a." * 3000 + "a]",
    "[[scenarios]]",
    "[[agents]]",
    "[quick]",
    "[scenarios.log]",
    "x = 1",
)


def spoilt_toml(whole: bytes, choose: Choices) -> bytes:
    """Lines dropped, doubled, put in, and values that are others."""
    lines = whole.decode().splitlines()
    for _ in range(1 + choose.below(3)):
        i, way = choose.below(len(lines)), choose.below(5)
        if way == 0 and len(lines) > 1:
            del lines[i]
        elif way == 1:
            lines.insert(i, lines[choose.below(len(lines))])
        elif way == 2:
            lines.insert(i, choose.one(LINES))
        else:
            lines[i] = f"{lines[i].partition('=')[0]}= {choose.one(TOML_VALUES)}"
    return "\n".join(lines).encode()


CELLS = (
    "",
    "-1",
    "1e400",
    "nan",
    "inf",
    "9" * 30,
    "9223372036854775807",
    "9223372036854775808",
    "x" * 3000,
    '"',
    "\x00",
    "\ufeff",
    "0.5",
    "true",
    "null",
    "01",
    "1,1",
    "2000-01-01",
    "NULL",
    "é",
)


def spoilt_csv(whole: bytes, choose: Choices) -> bytes:
    """Cells that are others, rows and columns that come and go."""
    rows = [line.split(",") for line in whole.decode().splitlines()]
    for _ in range(1 + choose.below(3)):
        i, way = choose.below(len(rows)), choose.below(6)
        if way == 0 and len(rows) > 1:
            del rows[i]
        elif way == 1:
            rows.insert(i, rows[choose.below(len(rows))])
        elif way == 2:
            rows[i] = rows[i][: choose.below(8)]
        else:
            gone, place = choose.below(max(1, len(rows[i]))), choose.below(8)
            rows[i] = rows[i][:gone] + rows[i][gone + 1 :]
            rows[i].insert(place, choose.one(CELLS))
    return "\n".join(",".join(row) for row in rows).encode("utf-8", "surrogatepass")


def spoilt_lines(whole: bytes, choose: Choices) -> bytes:
    """Lines of JSON, some of them others."""
    rows = [json.loads(line) for line in whole.splitlines()]
    for _ in range(1 + choose.below(3)):
        i = choose.below(len(rows))
        rows[i] = altered(rows[i], choose)
    return "\n".join(as_json(row) for row in rows).encode("utf-8", "replace")


# Parquet
# --------------------------------------------------------------------------------------------------

SQL_VALUES = (
    "NULL",
    "-1",
    "9223372036854775807",
    "1e308",
    "'nan'::DOUBLE",
    "'inf'::DOUBLE",
    "'x'",
    "true",
    "[1, 2]",
    "[]::BIGINT[]",
    "[NULL]::DOUBLE[]",
    "{'a': 1}",
    "170141183460469231731687303715884105727::HUGEINT",
    "'2000-01-01'::DATE",
    "'\\xFF'::BLOB",
    "INTERVAL 1 DAY",
    "repeat('x', 10000)",
    "range(100000)",
    "['inf'::DOUBLE]",
    "0",
    "0.5",
    "1::UTINYINT",
    "1.5::DECIMAL(3, 1)",
    "[[1]]",
    "map {'a': 1}",
    "'5877642-06-24 (BC)'::DATE",
    "uuid()",
    "'\U0001f4a9'",
    "3",
    "'-inf'::DOUBLE",
)


QUERIES = (
    "SELECT * EXCLUDE ({column}) FROM t",
    "SELECT * FROM t WHERE rowid >= {row}",
    "SELECT * FROM t UNION ALL SELECT * FROM t LIMIT 9",
    "SELECT * RENAME ({column} AS other) FROM t",
    "SELECT * REPLACE (CASE WHEN rowid = {row} THEN try_cast({value} AS VARCHAR) "
    "ELSE {column}::VARCHAR END AS {column}) FROM t",
    *["SELECT * REPLACE ({value} AS {column}) FROM t"] * 2,
)


def spoilt_parquet(whole: bytes, choose: Choices) -> bytes:
    """Columns that are gone, or hold something else, and rows that come twice or not at all."""
    import duckdb

    given, out = (Path(_SCRATCH) / f"{name}.parquet" for name in ("in", "out"))
    given.write_bytes(whole)
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute(f"CREATE TABLE t AS FROM '{given}'")
        for _ in range(1 + choose.below(3)):
            names = [row[0] for row in con.execute("DESCRIBE t").fetchall()]
            column, query = choose.one(names), choose.one(QUERIES)
            value, row = choose.one(SQL_VALUES), choose.below(4)
            with suppress(duckdb.Error):
                query = query.format(column=column, value=value, row=row)
                con.execute(f"CREATE OR REPLACE TABLE u AS {query}")
                con.execute("CREATE OR REPLACE TABLE t AS FROM u")
        try:
            con.execute(f"COPY t TO '{out}' (FORMAT PARQUET)")
        except duckdb.Error:
            return damaged(whole, choose)
    return out.read_bytes()


_SCRATCH = "/nowhere"


def use_scratch(folder: Path) -> None:
    """Where tables lie while they are spoilt."""
    global _SCRATCH  # noqa: PLW0603  (one process, one folder)
    _SCRATCH = str(folder)


# The readers
# --------------------------------------------------------------------------------------------------


def _problem() -> sf.Problem:
    return sf.Problem(np.full((3, 2), 0.5), H=2)


def _counts() -> sf.Counts:
    counts = sf.Counts.zeros(_problem())
    for _ in range(2):
        counts.add(sf.Episode([0, 1, 2], [0, 1]))
    return counts


def make_policy(folder: Path) -> None:
    sf.save_policy(folder / "file.npz", sf.uniform(2, 3, 2))


def make_mixture(folder: Path) -> None:
    policy = sf.uniform(2, 3, 2)
    sf.save_policy(folder / "file.npz", sf.EpisodicMixture(policy, policy, 0.25))


def _read_policy(folder: Path) -> object:
    found = sf.load_policy(folder / "file.npz")
    sf.save_policy(folder / "again.npz", found)
    return repr(found)


def make_counts(folder: Path) -> None:
    counts = _counts()
    counts.planned = sf.Counts.zeros(_problem())
    counts.returns_of = "somebody"
    counts.save(folder / "file.npz")


def _read_counts(folder: Path) -> object:
    found = sf.Counts.load(folder / "file.npz")
    found.save(folder / "again.npz")
    assert sf.Counts.load(folder / "again.npz") == found
    return repr(found), found.n_sa, found.episodes if found.H is not None else None


def _agent() -> sf.StepMix:
    return sf.StepMix(_problem(), sf.uniform(2, 3, 2), 0.5)


def _learning() -> tuple[object, object]:
    """A run before its first episode, and what it is recognised by."""
    from surefoot import kernels
    from surefoot.audit.premises import Premises
    from surefoot.run.saved_state import RunIdentity, State

    agent, none = _agent(), sf.Counts.zeros(_problem())
    state = State(
        none, kernels.empty_tally(agent.problem.H, EPISODES, EPISODES), Premises.of(agent, none)
    )
    return state, RunIdentity(agent, ("", ""), agent.floor, EPISODES, 0, none, None)


def make_learning(folder: Path) -> None:
    state, run = _learning()
    state.counts = _counts()
    state.tally.totals[0] = 2
    for _ in range(2):
        state.history.add(0.5, True, sf.Plan.plain(sf.uniform(2, 3, 2)))
    state.save(folder / "file.npz", run.fingerprint)


def _read_learning(folder: Path) -> object:
    state, run = _learning()
    found = state.load(folder / "file.npz", run)
    found.save(folder / "again.npz", run.fingerprint)
    return repr(found.counts), found.history.record().mean


def make_guard(folder: Path) -> None:
    guard = sf.Guard(low=0.0, high=1.0)
    state = guard.admit(guard.begin(logged=[0.5, None, 1.0] * 10, run="r"), "c", "f")
    for k in range(20):
        state, ticket = guard.draw(state, guard.plan(state), np.random.default_rng(k))
        state = state if k % 5 == 0 else guard.settle(state, ticket, k / 20)
    guard.save(guard.admit(state, "d"), folder / "file.npz")


def _read_guard(folder: Path) -> object:
    guard = sf.Guard(low=0.0, high=1.0)
    found = guard.load(folder / "file.npz")
    guard.save(found, folder / "again.npz")
    assert guard.load(folder / "again.npz") == found
    return guard.plan(found).explain()


def _log_rows() -> list[tuple[object, ...]]:
    rng = np.random.default_rng(0)
    rows = []
    for episode in range(4):
        state = 0
        for step in range(2):
            after, action = int(rng.integers(3)), int(rng.integers(2))
            rows.append((episode, step, state, action, 0.5 * action, after))
            state = after
    return rows


NAMES = ("episode", "step", "state", "action", "reward", "next_state")


def make_csv(folder: Path) -> None:
    lines = [",".join(NAMES), *(",".join(map(str, row)) for row in _log_rows())]
    (folder / "log.csv").write_text("\n".join(lines) + "\n")


def make_lines(folder: Path) -> None:
    rows = [json.dumps(dict(zip(NAMES, row, strict=True))) for row in _log_rows()]
    (folder / "log.jsonl").write_text("\n".join(rows) + "\n")


def make_parquet(folder: Path) -> None:
    import duckdb

    make_csv(folder)
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute(
            f"COPY (FROM '{folder / 'log.csv'}') TO '{folder / 'log.parquet'}' (FORMAT PARQUET)"
        )


def _read_log(file: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        found = sf.check_log(folder / file, threads=1, reward_range=(0.0, 1.0))
        return str(found), None if found.counted is None else _looked_at(found.counted)

    return read


def _looked_at(log: sf.LogCounts) -> object:
    seen = (
        repr(log),
        log.counts,
        log.fold_counts,
        log.rewards,
        log.mean_return,
        log.coverage,
        log.notes,
    )
    try:
        return seen, log.problem(), log.problem("as logged")
    except sf.SurefootError:
        return seen


def make_log_counts(folder: Path) -> None:
    make_csv(folder)
    sf.count_log(folder / "log.csv", threads=1, reward_range=(0.0, 1.0)).save(folder / "file.npz")


def _read_log_counts(folder: Path) -> object:
    found = sf.LogCounts.load(folder / "file.npz")
    found.save(folder / "again.npz")
    return _looked_at(found)


def make_baseline(folder: Path) -> None:
    from surefoot.logs.baseline_file import Baseline

    make_csv(folder)
    log = sf.count_log(folder / "log.csv", threads=1, reward_range=(0.0, 1.0))
    Baseline.of(sf.robust_vi(log.counts, log.problem(), 0.1), log.codebook).save(
        folder / "file.npz"
    )


def _read_baseline(folder: Path) -> object:
    from surefoot.logs.baseline_file import load_baseline, rules

    found = load_baseline(folder / "file.npz")
    found.save(folder / "again.npz")
    return repr(found), found.words, json.dumps(rules(found)).encode()


def make_codebook(folder: Path) -> None:
    sf.Codebook(["new", "loyal"], [10, 20], absorbing=True).save(folder / "file.json")


def _read_codebook(folder: Path) -> object:
    found = sf.Codebook.load(folder / "file.json")
    found.save(folder / "again.json")
    return repr(found), found.S, found.A


STUDY = """name = "small"
title = "A small one"
question = "Does it read?"
seed = 3
trials = 1
delta = 0.1
episodes = 20
replan = 0.5
figures = ["return"]
claims = ["promise"]

[quick]
trials = 1

[[scenarios]]
id = "trap"
world = { name = "random", S = 2, A = 2, H = 2, seed = 1 }
baseline = { eta = 5.0 }
floor = { of_baseline = 0.9 }

[[agents]]
id = "stepmix"
agent = "stepmix"
bounds = "kl"
"""


def make_study(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY)


def _read_toml(folder: Path) -> object:
    from surefoot.studies.spec.study import parse_study, read_study

    found = read_study(folder / "study.toml")
    assert parse_study(found.as_table(), "again").digest == found.digest
    return (
        found.digest,
        found.made_quick(),
        [cell.label for cell in found.cells],
        [p.heading for p in found.scenarios],
    )


def make_results(folder: Path) -> None:
    from surefoot.studies.run.store import begin
    from surefoot.studies.run.trial import run_trial
    from surefoot.studies.spec.study import read_study

    make_study(folder)
    study = read_study(folder / "study.toml")
    results = begin(folder / "results", study, resume=False)
    results.write(run_trial(study.cells[0], 0))


def _read_results(folder: Path) -> object:
    from surefoot.studies.analysis.sql import answer
    from surefoot.studies.analysis.summary import summary
    from surefoot.studies.run.store import read_results

    found = read_results(folder / "results")
    names, rows = answer([folder / "results"], "SELECT * FROM summary")
    return summary(found), names, rows


DATASET = "shop/discounts-v0"


def make_minari(folder: Path) -> None:
    """Write the log's episodes by Minari itself."""
    import minari
    from gymnasium.spaces import Discrete
    from minari.data_collector import EpisodeBuffer

    episodes = [
        list(rows) for _, rows in groupby(_log_rows(), key=itemgetter(NAMES.index("episode")))
    ]
    columns = [dict(zip(NAMES, zip(*rows, strict=True), strict=True)) for rows in episodes]
    buffers = [
        EpisodeBuffer(
            observations=np.array([*of["state"], of["next_state"][-1]], dtype=np.int64),
            actions=np.array(of["action"], dtype=np.int64),
            rewards=np.array(of["reward"], dtype=np.float64),
            terminations=np.zeros(len(of["step"]), dtype=bool),
            truncations=np.arange(len(of["step"])) == len(of["step"]) - 1,
            infos={},
        )
        for of in columns
    ]
    with _datasets_in(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no author was named, and so on
        minari.create_dataset_from_buffers(
            DATASET,
            buffers,
            observation_space=Discrete(3),
            action_space=Discrete(2),
            data_format="hdf5",
        )


def _read_minari(folder: Path) -> object:
    with _datasets_in(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Gymnasium, about names of environments
        return sf.from_minari(DATASET, folder / "out.csv")


@contextmanager
def _datasets_in(folder: Path):
    """Minari's folder is said in the environment alone."""
    before = os.environ.get("MINARI_DATASETS_PATH")
    os.environ["MINARI_DATASETS_PATH"] = str(folder / "minari")
    try:
        yield
    finally:
        del os.environ["MINARI_DATASETS_PATH"]
        if before is not None:
            os.environ["MINARI_DATASETS_PATH"] = before


def spoilt_metadata(whole: bytes, choose: Choices) -> bytes:
    """The structure; spaces are JSON within JSON."""
    given = json.loads(whole)
    if choose.below(2):
        name = choose.one(("observation_space", "action_space"))
        given[name] = as_json(altered(json.loads(given[name]), choose))
    else:
        given = altered(given, choose)
    return as_json(given).encode("utf-8", "replace")


TRIAL = "results/trials/trap/stepmix/0000.parquet"
TARGETS = {
    target.name: target
    for target in (
        Target("policy", "file.npz", make_policy, _read_policy, spoilt_npz),
        Target("mixture", "file.npz", make_mixture, _read_policy, spoilt_npz),
        Target("counts", "file.npz", make_counts, _read_counts, spoilt_npz),
        Target("learning", "file.npz", make_learning, _read_learning, spoilt_npz),
        Target("guard", "file.npz", make_guard, _read_guard, spoilt_npz),
        Target("log-counts", "file.npz", make_log_counts, _read_log_counts, spoilt_npz),
        Target("baseline", "file.npz", make_baseline, _read_baseline, spoilt_npz),
        Target("codebook", "file.json", make_codebook, _read_codebook, spoilt_json),
        Target("study", "study.toml", make_study, _read_toml, spoilt_toml),
        Target("log-csv", "log.csv", make_csv, _read_log("log.csv"), spoilt_csv),
        Target("log-json", "log.jsonl", make_lines, _read_log("log.jsonl"), spoilt_lines),
        Target(
            "log-parquet", "log.parquet", make_parquet, _read_log("log.parquet"), spoilt_parquet
        ),
        Target("results", "results/study.json", make_results, _read_results, spoilt_json),
        Target("trial", TRIAL, make_results, _read_results, spoilt_parquet),
        Target(
            "minari-about",
            f"minari/{DATASET}/data/metadata.json",
            make_minari,
            _read_minari,
            spoilt_metadata,
        ),
        Target(
            "minari-data",
            f"minari/{DATASET}/data/main_data.hdf5",
            make_minari,
            _read_minari,
            damaged,
        ),
    )
}


def refresh(target: Target, valid: Path, folder: Path) -> bytes:
    """A folder with valid files, as a copy; and the content of the one that is to be spoilt."""
    shutil.copytree(valid, folder, dirs_exist_ok=True)
    return (folder / target.file).read_bytes()
