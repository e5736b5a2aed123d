"""A program called many times quickly: its modules are loaded once, and each call is a fork.

    python3 many_calls.py PROGRAM MODULE < calls > results

MODULE is loaded before.  Both files are JSON: of each call the words of the command line and what
is on stdin; of each result exit code, stdout and stderr.  Words are as in sys.argv, with bytes that
are no text as surrogates; and so is what a call has printed.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import sys
import tempfile
from importlib import import_module

SECONDS = 60  # of one call
STREAMS = 3


def main(program: str, module: str) -> None:
    import_module(module)
    results = [result(program, words, stdin) for words, stdin in json.load(sys.stdin)]
    json.dump(results, sys.stdout)


def result(program: str, words: list[str], stdin: str) -> tuple[int, str, str]:
    """Run one call; return (exit code, stdout, stderr), with a code below 0 for a signal."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(STREAMS)]
        files[0].write(os.fsencode(stdin))
        for file in files:
            file.seek(0)
        child = os.fork()
        if not child:
            for number, file in enumerate(files):
                os.dup2(file.fileno(), number)
            os._exit(be(program, words))
        _, status = os.waitpid(child, 0)
        for file in files:
            file.seek(0)
        out, err = (os.fsdecode(file.read()) for file in files[1:])
    return os.waitstatus_to_exitcode(status), out, err


def be(program: str, words: list[str]) -> int:
    """Run the program in the child; return its exit code."""
    signal.alarm(SECONDS)
    sys.stdin = os.fdopen(os.dup(0))
    sys.argv = [program, *words]
    try:
        if program.endswith(".py"):
            runpy.run_path(program, run_name="__main__")
        else:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        code: object = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
