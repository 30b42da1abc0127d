"""Files from anywhere: whatever a file holds, reading it gives a valid object or one of surefoot's
own errors.

No other exception, no traceback of the command, nothing that runs, no room made for what is merely
declared, no wait.
"""

import importlib.util
import io
import json
import os
import re
import resource
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import surefoot as sf
from modules import loaded
from surefoot.base.digest import digest
from surefoot.cli.main import main
from surefoot.evidence.tables import STREAM
from surefoot.studies.analysis.sql import answer, save_answer
from surefoot.studies.run.store import read_results, read_trials
from surefoot.studies.spec.study import read_study

HERE = Path(__file__).parent / "fuzz"
GIB = 2**30


targets = loaded(HERE / "targets.py")  # which atheris runs as well
npz, STUDY = targets.zipped, targets.STUDY


@pytest.fixture(autouse=True)
def little_memory():
    """What takes more than 3 GiB beyond what there is now is a MemoryError, which is none of
    surefoot's errors.
    """
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 3 * GIB, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


# Every reader, fuzzed
# -------------------------------------------------------------------------------------------------

FEW = dict.fromkeys(targets.TARGETS, 60)
FEW |= {
    name: 12
    for name in ("log-csv", "log-json", "log-parquet", "trial", "minari-about", "minari-data")
}
FEW |= {"results": 20}
GUIDED = 60  # seconds that atheris is given for each reader
# of the whole process. Not a measure of speed: it ends a run that hangs, on a busy machine
GUIDED_LIMIT = 30 * GUIDED
MANY = {name: 60 if n == 12 else 120 for name, n in FEW.items()} | {"trial": 96}
LONGEST_MESSAGE, SECONDS = 2000, 2.0


def prepared(name, folder):
    """A target, where it is read, and the content that is spoilt."""
    target = targets.TARGETS[name]
    for part in ("valid", "scratch"):
        (folder / part).mkdir()
    targets.use_scratch(folder / "scratch")
    target.make(folder / "valid")
    whole = targets.refresh(target, folder / "valid", folder / "work")
    return target, folder / "work", whole


def outcome(target, work):
    """'read' or 'refused'; anything else is raised."""
    begun = time.process_time()
    try:
        target.read(work)
        how = "read"
    except sf.SurefootError as refusal:
        assert 20 < len(str(refusal)) < LONGEST_MESSAGE
        how = "refused"
    assert time.process_time() - begun < SECONDS
    return how


@pytest.mark.parametrize(
    "examples", [FEW, pytest.param(MANY, marks=pytest.mark.full)], ids=["few", "many"]
)
@pytest.mark.parametrize("name", targets.TARGETS)
def test_whatever_a_file_holds_it_is_read_or_refused(name, examples, tmp_path):
    """The draws are fixed. Both outcomes occur: a fuzzer that only ever meets the first check tests
    nothing.

    Few draws are long, so that no decision is left out; among many some are short, and most
    decisions the first.
    """
    if name.startswith("minari"):
        pytest.importorskip("minari")
    target, work, whole = prepared(name, tmp_path)
    assert outcome(target, work) == "read"
    seen = []

    @settings(
        max_examples=examples[name],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.binary(min_size=60 if examples is FEW else 4, max_size=80))
    def fuzz(data):
        (work / target.file).write_bytes(target.spoil(whole, targets.Choices(data)))
        seen.append(outcome(target, work))

    fuzz()
    assert seen.count("refused") > len(seen) // 3
    assert "read" in seen or examples is FEW  # some files survive one time in fifty


def naive_counts(folder):
    """A reader as one would write it: numpy's, then JSON's."""
    with np.load(io.BytesIO((folder / "file.npz").read_bytes()), allow_pickle=False) as data:
        arrays = {name: data[name] for name in data.files}
    about = json.loads(str(arrays["about"]))
    if about["kind"] != "counts":
        raise sf.InvalidFile("This is a file of another kind: expected counts.")
    return sf.Counts(
        arrays["n_sas"],
        H=int(arrays["H"]),
        s1=int(arrays["s1"]),
        baseline_returns=arrays["baseline_returns"],
    )


def naive_codebook(folder):
    given = json.loads((folder / "file.json").read_text())
    return sf.Codebook(given["states"], given["actions"], given["rest"])


@pytest.mark.parametrize(("name", "read"), [("counts", naive_counts), ("codebook", naive_codebook)])
def test_the_same_files_break_a_plain_reader(name, read, tmp_path):
    """The control: under the same draws a reader without these checks raises errors that are not
    surefoot's.
    """
    target, work, whole = prepared(name, tmp_path)
    rng, strange = np.random.default_rng(0), set()
    for _ in range(120):
        (work / target.file).write_bytes(target.spoil(whole, targets.Choices(rng.bytes(60))))
        try:
            outcome(target._replace(read=read), work)
        except Exception as reason:
            strange.add(type(reason).__name__)
    assert len(strange) >= 3


@pytest.mark.full
@pytest.mark.parametrize("name", targets.TARGETS)
def test_coverage_guided(name, tmp_path):
    """atheris looks for inputs that reach new code, a minute per reader
    (tests/interface/files/fuzz/guided.py).

    Before that minute begins, the process compiles and reads 64 files, and it may wait for other
    work.
    """
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed: pip install atheris (CPython on Linux)")
    settings = f"{name} --seconds {GUIDED} --folder {tmp_path}".split()
    command = [sys.executable, str(HERE / "guided.py"), *settings]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=GUIDED_LIMIT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done " in done.stderr


# Sizes before memory
# --------------------------------------------------------------------------------------------------

MEASURED = """
import json, resource, sys, time, tracemalloc
import surefoot as sf
from pathlib import Path
import numpy, surefoot.base.files
readers = {".npz": sf.Counts.load, ".json": sf.Codebook.load}
for read in readers.values():
    try:
        read("nowhere")
    except sf.SurefootError:
        pass
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 2**30, 2**40))
for path in sys.argv[1:]:
    tracemalloc.start()
    begun = time.process_time()
    try:
        readers[Path(path).suffix](path)
        said = "read"
    except sf.SurefootError as reason:
        said = f"{type(reason).__name__}: {reason}"
    taken = time.process_time() - begun
    print(json.dumps([Path(path).stem, [said, taken, tracemalloc.get_traced_memory()[1]]]))
    tracemalloc.stop()
"""


def header(descr="<i8", shape="(1, 1, 1)"):
    return targets.Member("n_sas", descr, "False", shape, b"").packed()


def about(fits=""):
    """A header of counts, with a digest."""
    content = {"format": 1, "kind": "counts", "digest": fits}
    return targets.with_text(targets.Member("about", "", "False", "()", b""), content).packed()


BLOCK = 2**24


def bomb(path, size, claimed=None, descr="<i8"):
    """A zip file whose one large array is `size` zero bytes, and whose directory may claim
    another size.
    """
    head = header(descr, f"({size // int(descr[-1])}, 1, 1)")
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = deflate.compress(head) + deflate.flush(zlib.Z_FULL_FLUSH)
    block = deflate.compress(bytes(BLOCK)) + deflate.flush(
        zlib.Z_FULL_FLUSH
    )  # stands for itself, so it can be repeated
    content = first + block * (size // BLOCK) + deflate.flush()
    checksum = zlib.crc32(head)
    for _ in range(size // BLOCK if size < GIB else 0):
        checksum = zlib.crc32(bytes(BLOCK), checksum)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("about.npy", about())
        archive.writestr("n_sas.npy", content)
    whole = bytearray(path.read_bytes())
    full = len(head) + size if claimed is None else claimed
    for at, method, sizes in (
        (whole.find(b"n_sas.npy") - 30, 8, 14),
        (whole.rfind(b"PK\x01\x02"), 10, 16),
    ):
        whole[at + method : at + method + 2] = struct.pack("<H", zipfile.ZIP_DEFLATED)
        whole[at + sizes : at + sizes + 12] = struct.pack("<III", checksum, len(content), full)
    path.write_bytes(whole)


SHAPES = ["(137438953472,)", "(4294967296, 4294967296, 4294967296)", "(1000000000, 8, 2, 8)"]
CLAIMED = [1000, 900 * 2**20]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What a process of 1 GiB says of each hostile file, how long it took, and how many bytes it
    asked for at most.
    """
    folder = tmp_path_factory.mktemp("hostile")
    bomb(folder / "bomb.npz", 3 * GIB)
    assert (folder / "bomb.npz").stat().st_size < 4e6
    # in a file of 1 kB; the directory tells the truth, so that the header is read
    for i, shape in enumerate(SHAPES):
        with zipfile.ZipFile(folder / f"header {i}.npz", "w") as archive:
            archive.writestr("about.npy", about())
            archive.writestr("n_sas.npy", header(shape=shape) + bytes(64))
    for claimed in CLAIMED:
        bomb(folder / f"liar {claimed}.npz", 2**26, claimed)
    bomb(folder / "bytes.npz", 10 * BLOCK, descr="|i1")
    with zipfile.ZipFile(folder / "many.npz", "w") as archive:
        for i in range(2_000):
            archive.writestr(f"a{i}.npy", b"")
    with (folder / "large.json").open("wb") as stream:
        stream.truncate(10 * GIB)  # zeros that take no room on disk
    command = [sys.executable, "-c", MEASURED, *map(str, sorted(folder.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


HOSTILE = {  # and what is said of each
    # three megabytes that stand for three gigabytes: refused by the directory
    "bomb": r"arrays take 3 GiB, expected at most 1 GiB\. Nothing of it was read\..*LARGEST_FILE=",
    # the header of an array declares a tebibyte
    **dict.fromkeys(
        [f"header {i}" for i in range(len(SHAPES))], "is not a surefoot file, or a damaged one"
    ),
    # the directory says 1 kB, or 900 MiB; the content is 64 MiB, as the header of the array says
    **dict.fromkeys([f"liar {claimed}" for claimed in CLAIMED], ""),
    # 160 million entries of one byte are 1.25 GiB of int64
    "bytes": "its arrays take 1.25 GiB, expected at most 1 GiB",
    # zipfile makes a record of each name: a short file may list any number of them
    "many": "is not a surefoot file",
    "large": "has more than 16,777,216 bytes",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_too_large_is_refused_unopened(measured, name):
    """In no time and no memory: never more is unpacked than was declared."""
    said, seconds, peak = measured[name]
    assert re.match(f"InvalidFile: .*{HOSTILE[name]}", said)
    assert seconds < 0.5
    assert peak < (6e7 if name == "large" else 2e6)


def test_the_control_reads_the_bomb(tmp_path):
    """numpy's own reader makes room for all of it: what is refused above is what it would have
    read.
    """
    path = tmp_path / "bomb.npz"
    bomb(path, 2**26)
    with np.load(path, allow_pickle=False) as data:
        assert data["n_sas"].nbytes == 2**26


def test_the_limit_can_be_lifted_and_lowered(tmp_path, monkeypatch, assert_refused):
    path = tmp_path / "counts.npz"
    counts = sf.Counts(np.ones((40, 2, 40), dtype=np.int64), H=3)  # 77 kB
    counts.save(path)
    assert sf.Counts.load(path) == counts
    monkeypatch.setenv("SUREFOOT_LARGEST_FILE", "60000")
    with pytest.raises(sf.InvalidFile, match=r"expected at most 5\.59e-05 GiB") as refusal:
        sf.Counts.load(path)
    lifted = str(refusal.value).split("SUREFOOT_LARGEST_FILE=")[1].split(" ")[0]
    monkeypatch.setenv("SUREFOOT_LARGEST_FILE", str(2 * int(lifted)))
    assert sf.Counts.load(path) == counts
    for word in ("lots", "-1", "1e9", "", "9" * 30):
        monkeypatch.setenv("SUREFOOT_LARGEST_FILE", word)
        assert_refused(sf.InvalidSetting, "expected a number of bytes", sf.Counts.load, path)


def hand_made(path, *members, fits="", compression=zipfile.ZIP_STORED):
    """An .npz of (name, bytes), beside a header of ours."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("about.npy", about(fits))
        for name, content in members:
            archive.writestr(name, content)


ONE = header() + bytes(8)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("n_sas", ONE),
        ("../x", ONE),
        ("logged", header("|O") + bytes(8)),
        ("logged", header("|V8") + bytes(8)),
        ("logged", header("<i8", "(-1, 1, 1)") + bytes(8)),
        ("logged", header("<i8", "(1, 1, 1) + (1,)") + bytes(8)),
        ("logged", header().replace(b"False", b"fa()]") + bytes(8)),
        ("logged", ONE + b"x"),
        ("logged", ONE[:-1]),
        ("logged", header("|b1", "()") + b"\x02"),
        ("returns_of", header("<U1", "()") + b"\x00\xd8\x00\x00"),
    ],
)
def test_what_no_file_of_ours_holds(tmp_path, name, content, assert_refused):
    hand_made(tmp_path / "file.npz", ("n_sas.npy", ONE), (f"{name}.npy", content))
    assert_refused(
        sf.InvalidFile,
        "is not a surefoot file, or a damaged one",
        sf.Counts.load,
        tmp_path / "file.npz",
    )


def test_hand_made_files_are_read(tmp_path, assert_refused):
    """The control of the test above: but for what is wrong with each, those files are good."""
    number = header("<i8", "()")
    needed = [("H.npy", number + (1).to_bytes(8, "little")), ("episodes.npy", number + bytes(8))]
    needed += [("n_sas.npy", header("<i8", "(3, 0)"))]
    needed += [("list_shape.npy", header("<i8", "(3,)") + np.array([0, 1, 1]).tobytes())]
    needed += [("played.npy", header("<i8", "(1, 1)") + bytes(8))]
    needed += [("stream.npy", header("<U22", "()") + STREAM.encode("utf-32-le"))]
    hand_made(tmp_path / "file.npz", *needed)
    with np.load(tmp_path / "file.npz") as data:
        fits = digest({name: data[name] for name in data.files if name != "about"})
    hand_made(tmp_path / "file.npz", *needed, fits=fits)
    assert sf.Counts.load(tmp_path / "file.npz") == sf.Counts(np.zeros((1, 1, 1), dtype=int), H=1)
    hand_made(tmp_path / "file.npz", *needed, ("extra.npy", ONE))
    assert_refused(
        sf.InvalidFile,
        "has an array 'extra', which this version of surefoot does not write",
        sf.Counts.load,
        tmp_path / "file.npz",
    )
    for compression in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        hand_made(tmp_path / "file.npz", ("n_sas.npy", ONE), compression=compression)
        assert_refused(
            sf.InvalidFile, "is not a surefoot file", sf.Counts.load, tmp_path / "file.npz"
        )


# What fuzzing found, kept
# ---------------------------------------------------------------------------------------------


def rewritten(path, **arrays):
    """A valid file with some arrays replaced, under a new hash; None: left out."""
    with np.load(path, allow_pickle=False) as data:
        held = {name: data[name] for name in data.files}
    about = json.loads(str(held.pop("about")))
    held = {
        name: np.asarray(array) for name, array in {**held, **arrays}.items() if array is not None
    }
    np.savez(path, about=np.array(json.dumps({**about, "digest": digest(held)})), **held)


@pytest.mark.parametrize(
    "arrays",
    [
        {"H": np.int64(2**62), "n_sas": np.zeros((3, 2, 3), dtype=np.int64)},
        {"baseline_returns": np.array([2**62, 0])},
        {"ledger": np.array([0, 2**62, 0])},
        {"s1": np.int64(3)},
        {"returns_of": np.arange(3)},
        {"n_sas": np.full((2, 3, 2, 3), 2**62)},
        {"planned_n_sas": np.full((2, 3, 2, 3), 7)},
        {"planned_planned_n_sas": np.zeros((2, 3, 2, 3), dtype=int)},
    ],
)
def test_counts_that_are_of_no_episodes(tmp_path, arrays):
    """Products and sums of these leave int64, or belong to nothing; a warning of numpy's is not
    an answer.
    """
    path = tmp_path / "file.npz"
    targets.make_counts(tmp_path)
    rewritten(path)
    sf.Counts.load(path)  # the control: unchanged, it is read
    rewritten(path, **arrays)
    with pytest.raises((sf.InvalidFile, sf.InvalidCounts)):
        sf.Counts.load(path)


def log_text(path, **entries):
    with np.load(path, allow_pickle=False) as data:
        about = json.loads(str(data["log"]))
    return np.array(json.dumps({**about, **entries}).replace("Infinity", "1e999"))


@pytest.mark.parametrize(
    "entries",
    [
        {"H": float("inf")},
        {"H": 10**12},
        {"H": 10**299},
        {"H": 2**61},
        {"episodes": float("inf")},
        {"reward_range": [-1e308, 1e308]},
        {"last_ends": 10**6},
        {"seed": -1},
    ],
)
def test_a_log_whose_sizes_cannot_be(tmp_path, entries):
    targets.make_log_counts(tmp_path)
    path = tmp_path / "file.npz"
    rewritten(path, log=log_text(path))
    sf.LogCounts.load(path)  # the control
    rewritten(path, log=log_text(path, **entries))
    with pytest.raises(sf.InvalidFile):
        sf.LogCounts.load(path)


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "codebook",
    [
        '{"states": 1000000000, "actions": ["a"], "rest": false}',
        '{"states": 9007199254740993, "actions": 1, "rest": false}',
        f'{{"states": {DEEP}, "actions": ["a"], "rest": false}}',
        '{"states": ["a"], "states": ["b"], "actions": ["a"], "rest": false}',
        '{"states": [NaN], "actions": ["a"], "rest": false}',
        '{"states": ["\\ud800"], "actions": ["a"], "rest": false}',
        '{"states": ["a"], "actions": [' + "9" * 400 + '], "rest": false}',
        '{"states": ["a"], "actions": [' + "9" * 10_000 + '], "rest": false}',
        '["a"]',
    ],
)
def test_a_codebook_that_is_none(tmp_path, codebook, assert_refused):
    """As JSON of its own, and within counts of a log."""
    content = codebook.encode()
    about = b'{"about": {"format": 1, "kind": "codebook"}, '
    (tmp_path / "file.json").write_bytes(about + content[1:])
    with pytest.raises(sf.InvalidFile):
        sf.Codebook.load(tmp_path / "file.json")
    targets.make_log_counts(tmp_path)
    rewritten(tmp_path / "file.npz", codebook=np.array(codebook))
    assert_refused(sf.InvalidFile, "codebook is damaged", sf.LogCounts.load, tmp_path / "file.npz")


def test_json_files_have_a_size(tmp_path):
    with pytest.raises(sf.InvalidFile, match="could not be read again"):
        sf.Codebook([f"{i:0100d}" for i in range(200_000)], 2).save(tmp_path / "codebook.json")


@pytest.mark.parametrize(
    "load", [sf.Counts.load, sf.load_policy, sf.LogCounts.load, sf.Codebook.load]
)
def test_pipes_devices_and_folders_are_not_waited_for(tmp_path, load, assert_refused):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null"), tmp_path):
        assert_refused(sf.InvalidFile, "is not a surefoot file", load, path)
    assert_refused(sf.InvalidFile, "expected a text such as", load, Path("a\0b"))


# Studies
# --------------------------------------------------------------------------------------------------


def study(**changes):
    """The small study with some lines replaced, by how they begin."""
    lines = STUDY.splitlines()
    for word, line in changes.items():
        assert any(old.startswith(f"{word} =") for old in lines)
        lines = [line if old.startswith(f"{word} =") else old for old in lines]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            study(trials="trials = 0x" + "f" * 10_000),
            "is a number of 40000 bits, expected a whole number",
        ),
        (study(delta="delta = 0x" + "f" * 10_000), "is a number of 40000 bits, expected a number"),
        (study(trials="trials = " + "9" * 10_000), "is not TOML"),
        (study(trials="trials = " + "[" * 5000 + "]" * 5000), "is not TOML"),
        (study(title="title = 1" + "0" * 90), "expected text"),
        (study(name=f'name = "{"x" * 50_000}"'), "expected at most 60 of"),
        (
            study(world='world = { name = "random", S = 1000000000 }'),
            "a world of 15,000,000,000,000,000,000 trans",
        ),
        (
            study(world='world = { name = "random-sparse", S = 3000, H = 100 }'),
            "expected at most 134,217,728",
        ),
        (
            study(world='world = { name = "queue", H = 1000000000 }'),
            "over 1,000,000,000 steps, expected",
        ),
        (
            study(world='world = { name = "deep-sea", N = 5000 }'),
            "a world of 125,000,000,000 transitions",
        ),
        (study(world=f'world = {{ name = "{"y" * 50_000}" }}'), "There is no world 'yyy"),
        (study(world=f"world{'.a' * 30_000} = 1"), "more than eight parts with dots between"),
        ("[" + "a." * 30_000 + "a]", "more than eight parts with dots between"),
        ("x = {" + "'a'." * 20_000 + '"b" = 1}', "more than eight parts with dots between"),
        ("a = 1\n" * 200_000, "has more than 1,000,000 bytes"),
        ("\n".join(f"w{i} = 1" for i in range(9000)), "has no field 'w0'"),
    ],
)
def test_studies_that_ask_for_too_much(tmp_path, content, words):
    """Refused by the reader, at once, in a message of a length that one can read."""
    path = tmp_path / "study.toml"
    path.write_text(content)
    begun = time.process_time()
    with pytest.raises(sf.InvalidStudy) as refusal:
        read_study(path)
    assert time.process_time() - begun < SECONDS
    assert words in str(refusal.value)
    assert len(str(refusal.value)) < LONGEST_MESSAGE


def test_studies_of_more_cells_than_anybody_runs(tmp_path, assert_refused):
    """90 kB that would be millions of cells, and 1.5e11 files."""
    panels = "".join(f"[[scenarios]]\nid='p{i}'\nworld.name='trap'\n" for i in range(1000))
    learners = "".join(f"[[agents]]\nid='l{i}'\nagent='stepmix'\nbounds='kl'\n" for i in range(700))
    head = STUDY.partition("[quick]")[0].replace("trials = 1", "trials = 100000")
    (tmp_path / "study.toml").write_text(head + panels + learners)
    assert_refused(
        sf.InvalidStudy,
        r"asks for 70,000,000,000 runs \(1,000 scenarios, 700 agents",
        read_study,
        tmp_path / "study.toml",
    )


def test_the_study_that_is_spoilt_is_a_good_one(tmp_path, assert_refused):
    for content in (study(), study(title='title = "See a.b.c.d and 1.2.3.4 ... and so on"')):
        (tmp_path / "study.toml").write_text(content)
        assert read_study(tmp_path / "study.toml").trials == 1
    os.mkfifo(tmp_path / "pipe.toml")
    assert_refused(sf.InvalidStudy, "is not a file", read_study, tmp_path / "pipe.toml")


# Results
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    targets.make_results(folder)
    return folder / "results"


ESCAPES = (
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM glob('{folder}/*')",
    "COPY summary TO '{folder}/stolen.csv'",
    "EXPORT DATABASE '{folder}/stolen'",
    "ATTACH '{folder}/stolen.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "SET allowed_paths = ['{secret}']",
    "SELECT 1; SELECT * FROM read_text('{secret}')",
    "SELECT * FROM folders",
)


@pytest.mark.parametrize("sql", ESCAPES)
def test_a_question_reads_the_results_and_nothing_else(results, tmp_path, sql):
    (tmp_path / "secret.csv").write_text("word\nsesame\n")
    asked = sql.format(secret=tmp_path / "secret.csv", folder=tmp_path)
    with pytest.raises(sf.InvalidSetting):
        answer([results], asked)
    with pytest.raises(sf.InvalidSetting):
        save_answer([results], asked, tmp_path / "answer.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_other_questions_are_answered(results, tmp_path):
    """The control of the test above."""
    assert answer([results], "SELECT trials FROM summary") == (["trials"], [(1,)])
    save_answer([results], "SELECT trials FROM summary", tmp_path / "answer.csv")
    assert (tmp_path / "answer.csv").read_text().split() == ["trials", "1"]


def test_a_trial_that_stands_for_millions_of_numbers(
    results, tmp_path, monkeypatch, assert_refused
):
    """A few kilobytes of Parquet are a long list of zeros: refused by what the file says of
    itself.
    """
    import duckdb

    targets.shutil.copytree(results, tmp_path / "copy")
    trial = next((tmp_path / "copy").rglob("*.parquet"))
    monkeypatch.setattr("surefoot.studies.run.store.MOST_VALUES", 100_000)
    many = "list_resize([0::BIGINT], 600000, 0)"
    with duckdb.connect() as con:
        query = f"SELECT * REPLACE ({many} AS curve_episode) FROM '{trial}'"
        con.execute(
            f"COPY ({query}) TO '{tmp_path / 'big.parquet'}' (FORMAT PARQUET, COMPRESSION ZSTD)"
        )
    trial.write_bytes((tmp_path / "big.parquet").read_bytes())
    assert trial.stat().st_size < 200_000
    for read in (
        lambda: read_results(tmp_path / "copy"),
        lambda: answer([tmp_path / "copy"], "SELECT 1"),
    ):
        assert_refused(
            sf.InvalidFile, r"says that it holds 60\d,\d{3} numbers, expected at most 100,000", read
        )
    assert len(read_trials([next(results.rglob("*.parquet"))])) == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("knows_baseline_value", "[true, false]"),
        ("knows_baseline_value", "NULL"),
        ("on_baseline", "'x'"),
        ("curve_mean", "1.5"),
        ("episodes", "[20]"),
    ],
)
def test_a_trial_with_a_column_of_another_kind(results, tmp_path, column, value, assert_refused):
    """A list where one value belongs was taken for an array, and the table of results tripped
    over it.
    """
    import duckdb

    trial = next(results.rglob("*.parquet"))
    with duckdb.connect() as con:
        query = f"SELECT * REPLACE ({value} AS {column}) FROM '{trial}'"
        con.execute(f"COPY ({query}) TO '{tmp_path / 'other.parquet'}' (FORMAT PARQUET)")
    assert_refused(
        sf.InvalidFile,
        f"is not what a trial's file is.*{column} is not",
        read_trials,
        [tmp_path / "other.parquet"],
    )


# Minari
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """A dataset of Minari's, and the folder of its data."""
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    targets.make_minari(tmp_path)
    return tmp_path / "minari" / targets.DATASET / "data"


def with_environment(dataset, marker):
    """Metadata without a space, and with an environment that is a command."""
    from gymnasium.envs.registration import EnvSpec

    spec = EnvSpec(
        "Own-v0",
        "subprocess:check_output",
        disable_env_checker=True,
        kwargs={"args": ["touch", str(marker)]},
    )
    metadata = json.loads((dataset / "metadata.json").read_text())
    del metadata["observation_space"]
    (dataset / "metadata.json").write_text(json.dumps({**metadata, "env_spec": spec.to_json()}))


@pytest.mark.filterwarnings("ignore")
def test_the_environment_that_a_dataset_names_is_not_made(dataset, tmp_path, assert_refused):
    """The control: Minari itself makes it, and that runs what the file says."""
    import minari

    with_environment(dataset, tmp_path / "ran")
    assert_refused(
        sf.InvalidLog,
        r"lack the observation_space, and the environment .* is not run",
        sf.from_minari,
        targets.DATASET,
        tmp_path / "log.csv",
    )
    assert not (tmp_path / "ran").exists()
    with pytest.raises(Exception, match="must inherit from"):
        minari.load_dataset(targets.DATASET)
    assert (tmp_path / "ran").exists()


def test_data_of_a_dataset_that_lie_elsewhere_or_are_too_large(dataset, tmp_path, assert_refused):
    import h5py

    path, secret = dataset / "main_data.hdf5", tmp_path / "secret"
    secret.write_bytes(struct.pack("<3d", 1.0, 2.0, 3.0))
    whole = path.read_bytes()

    def of_another_file(file):
        file.create_dataset("episode_0/rewards", (2,), np.float64, external=[(str(secret), 0, 16)])

    def linked(file):
        file["episode_0/rewards"] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), "x")

    def huge(file):
        file.create_dataset("episode_0/rewards", (2**40,), np.float64, chunks=(1024,))

    for spoil, words in (
        (of_another_file, "stored outside"),
        (linked, "stored outside"),
        (huge, "8.19e.03 GiB"),
    ):
        path.write_bytes(whole)
        with h5py.File(path, "a") as file:
            del file["episode_0/rewards"]
            spoil(file)
        assert_refused(sf.InvalidLog, words, sf.from_minari, targets.DATASET, tmp_path / "log.csv")
    path.write_bytes(whole)
    sf.from_minari(targets.DATASET, tmp_path / "log.csv")  # the control


def with_arrays(path, **options):
    """Write the arrays of the first episode again, with these options of hdf5."""
    import h5py

    with h5py.File(path, "a") as file:
        for name in ("observations", "actions", "rewards", "terminations", "truncations"):
            content = file["episode_0"][name][()]
            del file["episode_0"][name]
            file["episode_0"].create_dataset(name, data=content, **options)


@pytest.mark.parametrize("entries", [3, 2**20])
def test_entries_of_a_dataset_that_are_not_in_the_file(dataset, tmp_path, entries, assert_refused):
    """A small file states many entries in chunks of two: each chunk would take 4 kB of memory.

    The control: read by h5py alone, a million of them take more than a gigabyte.
    """
    import h5py

    path = dataset / "main_data.hdf5"
    with h5py.File(path, "a") as file:
        file["episode_0/actions"].resize((entries,))
    assert path.stat().st_size < 1e5
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + GIB, resource.getrlimit(resource.RLIMIT_AS)[1]))
    assert_refused(
        sf.InvalidLog,
        f"'episode_0/actions' states that it has {entries:,} entries, but not all",
        sf.from_minari,
        targets.DATASET,
        tmp_path / "log.csv",
    )
    with h5py.File(path, "r") as file:
        if entries == 3:
            assert file["episode_0/actions"][2] == 0  # it was never stored
        else:
            with pytest.raises(OSError, match="memory allocation failed"):
                file["episode_0/actions"][()]


@pytest.mark.parametrize(
    "options", [{}, {"chunks": (1,)}, {"chunks": True, "compression": "gzip"}, {"chunks": (9,)}]
)
def test_a_dataset_stored_in_another_way_is_read(dataset, tmp_path, options):
    """The control: contiguous, in small chunks, compressed, in chunks that are not full."""
    sf.from_minari(targets.DATASET, tmp_path / "before.csv")
    options = {**options, "maxshape": (None,)} if options.get("chunks") == (9,) else options
    with_arrays(dataset / "main_data.hdf5", **options)
    sf.from_minari(targets.DATASET, tmp_path / "after.csv")
    assert (tmp_path / "after.csv").read_bytes() == (tmp_path / "before.csv").read_bytes()


def test_the_arrays_of_an_episode_are_added_up(dataset, tmp_path, assert_refused):
    """Three arrays of 0.4 GiB, all stored, compressed to little: each is small enough, all of
    them are not.
    """
    import h5py

    length, zeros = 2**20, zlib.compress(bytes(8 * 2**20))
    with h5py.File(dataset / "main_data.hdf5", "a") as file:
        for name in ("a", "b", "c"):
            options = {"chunks": (length,), "compression": "gzip"}
            array = file.create_dataset(
                f"episode_0/infos/{name}", (51 * length,), np.float64, **options
            )
            for i in range(51):
                array.id.write_direct_chunk((i * length,), zeros)
    assert_refused(
        sf.InvalidLog,
        r"'episode_0' states that it takes 1\.2 GiB, expected at most 1 GiB",
        sf.from_minari,
        targets.DATASET,
        tmp_path / "log.csv",
    )


@pytest.mark.parametrize(
    "claim", [{"total_episodes": 10**12}, {"total_steps": -1}, {"total_episodes": "4"}]
)
def test_a_dataset_that_claims_what_cannot_be(dataset, tmp_path, claim, assert_refused):
    metadata = json.loads((dataset / "metadata.json").read_text())
    (dataset / "metadata.json").write_text(json.dumps({**metadata, **claim}))
    assert_refused(
        sf.InvalidLog,
        f"its metadata state that {next(iter(claim))} is",
        sf.from_minari,
        targets.DATASET,
        tmp_path / "log.csv",
    )


# The command
# --------------------------------------------------------------------------------------------------

BAD_FILES = {
    "empty": b"",
    "noise": bytes(range(256)) * 8,
    "zip": b"PK\x03\x04" + bytes(100),
    "parquet": b"PAR1" + b"\xff" * 60 + b"PAR1",
    "deep": DEEP.encode(),
    "quotes": b'"' * 5000,
    "half": b'{"about": {"format": 1, "kind": "study"}',
}
MINARI = "minari/shop/old-v0/data/metadata.json"
COMMANDS = [
    ("show {file}", "file.npz"),
    ("baseline {file} --out {folder}/b.npz", "file.npz"),
    ("baseline {file} --out {folder}/b.npz", "file.csv"),
    ("baseline {file} --out {folder}/b.npz", "file.parquet"),
    ("logs check {file}", "file.csv"),
    ("logs check {file}", "file.csv.gz"),
    ("logs check {file}", "file.json"),
    ("logs check {file}", "file.parquet"),
    ("logs count {file} --out {folder}/c.npz", "file.jsonl"),
    ("logs from-minari shop/old-v0 --out {folder}/l.csv", MINARI),
    ("run {file} --out {folder}/r", "file.toml"),
    ("run {good} --out {folder} --resume", "study.json"),
    ("studies {file}", "file.toml"),
    ("report {folder}", "study.json"),
    ("results {folder}", "study.json"),
    ("results {folder} --sql SELECT", "study.json"),
]


@pytest.mark.parametrize("kind", BAD_FILES)
@pytest.mark.parametrize(("command", "name"), COMMANDS)
def test_a_bad_file_is_one_sentence_of_the_command(
    command, name, kind, tmp_path, monkeypatch, capsys
):
    if name == MINARI:
        pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    file, good = tmp_path / name, tmp_path.parent / f"{tmp_path.name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(BAD_FILES[kind])
    good.write_text(study())
    given = command.format(file=file, folder=tmp_path, good=good).split()
    monkeypatch.setattr(sys, "argv", ["surefoot", *given])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    assert end.value.code in (1, 2)
    assert "Traceback" not in said.err + said.out
    text = said.err or said.out
    finds = "logs check" in command or "baseline" in command  # these tell all that is wrong
    assert finds or text.startswith("surefoot: Invalid")
    assert 20 < len(text) < LONGEST_MESSAGE
