"""In a user's process, the library starts no process, writes no output and changes no state."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import neardup
from tests.support.programs import ROOT

ROWS = [[*range(i // 4, i // 4 + 60), 1000 + i % 2] for i in range(400)]

WATCHED = """
import os, signal, sys

def watch(event, args):
    writes = event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes or event in ("os.fork", "os.posix_spawn", "subprocess.Popen", "tempfile.mkstemp"):
        wrong.append((event, args))

import neardup
assert "numpy" not in sys.modules
wrong, rows = [], [[*range(i // 4, i // 4 + 60), 1000 + i % 2] for i in range(400)]
neardup.pairs(["to load", "what is needed"])
import warnings, random, numpy, logging
def state():
    signals = [signal.getsignal(n) for n in signal.valid_signals()]
    return (signals, dict(os.environ), os.getcwd(), os.umask(0o22), numpy.geterr(),
            warnings.filters[:], random.getstate(), numpy.random.get_state()[2], sys.argv[:],
            logging.root.handlers[:], os.listdir("/proc/self/fd"), sys.getrecursionlimit())
before = state()
sys.stdout = sys.stderr = None
sys.addaudithook(watch)
assert len(neardup.pairs(rows)) > 400
assert neardup.clusters(rows)
assert neardup.deduplicate(rows, rule="cluster").removed
assert neardup.deduplicate([[1, *range(9)]] * 5000).removed
assert neardup.deduplicate(rows, exact=True).removed
open(os.devnull, "w").close()
sys.stderr, sys.stdout = sys.__stderr__, sys.__stdout__
assert [event for event, _ in wrong] == ["open"], wrong
assert state() == before
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
def test_a_call_leaves_no_trace(tmp_path):
    done = subprocess.run(
        [sys.executable, "-B", "-c", WATCHED],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        env={"PYTHONPATH": str(ROOT), "PATH": "/nowhere", "TMPDIR": "/nowhere"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_threads_have_the_same_answers():
    expected = neardup.pairs(ROWS)
    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(neardup.pairs, [ROWS] * 8)] == [expected] * 8


def test_in_a_running_event_loop():
    async def cell():
        here = neardup.deduplicate(ROWS)
        return here, await asyncio.to_thread(neardup.deduplicate, ROWS)

    here, elsewhere = asyncio.run(cell())
    assert here == elsewhere
    assert here.removed


def test_what_is_given_stays_as_it_is():
    records = [["b", "a"], {"a", "b"}, ["c"]]
    neardup.deduplicate(records)
    assert records == [["b", "a"], {"a", "b"}, ["c"]]


@pytest.mark.slow
def test_thousands_of_copies_are_decided_in_one_go():
    answer = neardup.deduplicate(["to be or not to be"] * 20_000)
    assert answer.kept == [0]
    assert {(reason.because, reason.similarity) for reason in answer.removed} == {(0, 1)}
    (cluster,) = neardup.clusters([[1, 2, 3]] * 20_000)
    assert cluster == [*range(20_000)]


def test_the_names_that_are_offered():
    assert set(neardup.__all__) <= set(dir(neardup))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        neardup.nothing  # noqa: B018


INTERRUPTED = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "numpy.linalg":
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
try:
    {first}
    sys.exit("not interrupted")
except KeyboardInterrupt:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
import neardup
assert len(neardup.pairs(["to load", "to load"])) == 1
"""


@pytest.mark.first_case
@pytest.mark.parametrize("first", ["import neardup; neardup.pairs", "import neardup.library.spark"])
def test_an_interrupt_while_it_is_loaded_leaves_it_usable(first: str) -> None:
    program = INTERRUPTED.format(first=first)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_it_is_loaded_in_a_thread() -> None:
    program = (
        "from concurrent.futures import ThreadPoolExecutor as Pool\nimport neardup\n"
        "print(Pool().submit(lambda: neardup.pairs).result().__name__)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], cwd=ROOT) == b"pairs\n"
