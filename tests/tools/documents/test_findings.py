"""Findings: baselines by content, SARIF, exit codes, the pre-commit hook and the action."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
import yaml

from neardup.tools.documents.findings import HEADER, uri_of
from tests.support.engines import NEARDUP, ROOT, refuse, run, succeed

TEXT = "".join(f"Line {i} of a text\n" for i in range(100))
ODD = os.fsdecode(b'a "b"/\xff #1.txt')
HOOKS = ".pre-commit-hooks.yaml"
LEAKS = [*NEARDUP, "leaks", "-q", "train.jsonl", "--test", "test.jsonl"]


def documents(*words: str) -> list[str]:
    return [*NEARDUP, "documents", "-q", *words, "docs"]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / 'a "b"').mkdir(parents=True)
    (folder / ODD).write_text(TEXT)
    (folder / "c.txt").write_text(TEXT + "more\n")
    rows = [{"id": "t", "text": "now: who wrote hamlet"}, {"id": "u", "text": "weather"}]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "test.jsonl").write_text('{"id": "q", "text": "who wrote hamlet"}\n')
    return folder


def lines_of(command: list[str], folder: Path, code: int) -> list[bytes]:
    done = run(command, folder, cwd=folder)
    assert done.code == code, done.err
    return done.out.splitlines()


def test_a_baseline_knows_contents_and_counts_them(docs: Path, tmp_path: Path) -> None:
    assert len(lines_of(documents("--fail"), tmp_path, 1)) == 1
    assert len(lines_of(documents("--accept=base"), tmp_path, 0)) == 1
    new = documents("--baseline=base")
    assert lines_of(new, tmp_path, 0) == []
    (docs / ODD).rename(docs / "z.txt")
    (docs / "c.txt").rename(docs / "y.txt")
    assert lines_of(new, tmp_path, 0) == []
    shutil.copy(docs / "z.txt", docs / "a.txt")  # its pair with y.txt has the accepted content
    ids = {tuple(line.split(b"\t")[:2]) for line in lines_of(new, tmp_path, 1)}
    assert len(ids) == 2
    assert (b"docs/a.txt", b"docs/z.txt") in ids
    lines_of(documents("--accept=base"), tmp_path, 0)
    (docs / "b.txt").write_text((docs / "a.txt").read_text())
    ids = {tuple(line.split(b"\t")[:2]) for line in lines_of(new, tmp_path, 1)}
    assert all(b"docs/b.txt" in both for both in ids)  # not the accepted ones of the same content
    assert len(ids) == 3


def test_a_baseline_of_leaks(docs: Path, tmp_path: Path) -> None:
    assert len(lines_of(LEAKS, tmp_path, 1)) == 1
    lines_of([*LEAKS, "--accept=base"], tmp_path, 0)
    train = tmp_path / "train.jsonl"
    row, other = train.read_text().splitlines()
    train.write_text(f"{other}\n{row}\n")  # moved
    assert lines_of([*LEAKS, "--baseline=base"], tmp_path, 0) == []
    again = "".join(f"{row}\n" for _ in range(150))  # more than are listed without a baseline
    train.write_text(f"{other}\n{again}")
    assert len(lines_of([*LEAKS, "--baseline=base"], tmp_path, 1)) == 149


def check_sarif(log: dict) -> list[dict]:
    """Check what SARIF 2.1.0 requires of the parts that are used; return the results."""
    assert log["version"] == "2.1.0"
    (each,) = log["runs"]
    rules = [rule["id"] for rule in each["tool"]["driver"]["rules"]]
    assert set(each) == {"tool", "results"}
    for result in each["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        assert result.get("baselineState", "new") in ("new", "unchanged", "updated", "absent")
        assert all(isinstance(key, str) for key in result["partialFingerprints"].values())
        for place in (*result["locations"], *result["relatedLocations"]):
            where = place["physicalLocation"]
            assert where["artifactLocation"]["uri"].isascii()
            assert " " not in where["artifactLocation"]["uri"]
            assert where["region"]["startLine"] >= 1
    return each["results"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [(b'./a "b"/\xff%.txt', "a%20%22b%22/%FF%25.txt"), (b"/a:b.zip!c", "file:///a%3Ab.zip")],
    ids=["odd", "archive"],
)
def test_uris(path: bytes, uri: str) -> None:
    assert uri_of(path) == uri


def test_sarif(docs: Path, tmp_path: Path) -> None:
    assert run(documents("-o", "x.sarif"), tmp_path, cwd=tmp_path).code == 0
    (result,) = check_sarif(json.loads((tmp_path / "x.sarif").read_bytes()))
    uris = [
        place["physicalLocation"]["artifactLocation"]["uri"]
        for place in (*result["locations"], *result["relatedLocations"])
    ]
    assert {unquote_to_bytes(uri) for uri in uris} == {b"docs/c.txt", os.fsencode(f"docs/{ODD}")}
    assert run([*LEAKS, "-o", "y.sarif"], tmp_path, cwd=tmp_path).code == 1
    (result,) = check_sarif(json.loads((tmp_path / "y.sarif").read_bytes()))
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("train.jsonl", 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"", "is empty"),
        (b"neardup baseline 2\tdocuments\n", "begins with"),
        (HEADER + b"leaks\n", "begins with"),
        (HEADER + b"documents\nkey\ta", "is damaged"),
        (HEADER + b"documents\nkey\ta\n", "is damaged"),
    ],
    ids=["none", "empty", "version", "command", "cut", "fields"],
)
def test_other_baselines_are_refused(
    docs: Path, tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "base").write_bytes(content)
    words = said, "type: --accept base instead of --baseline"
    refuse(documents("--baseline=base"), tmp_path, *words, cwd=tmp_path)


@pytest.mark.parametrize("words", [["--fail"], ["-o", "x.sarif"], ["--accept=b"]], ids=" ".join)
def test_decisions_have_no_findings(docs: Path, tmp_path: Path, words: list[str]) -> None:
    command = documents("--output=removed", *words)
    refuse(command, tmp_path, "type: --output pairs", cwd=tmp_path)


def steps() -> list[dict]:
    return yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]


@pytest.mark.slow
def test_the_action_has_the_form_of_actions() -> None:
    check = ["check-jsonschema", "--builtin-schema", "vendor.github-actions"]
    succeed([sys.executable, "-m", check[0].replace("-", "_"), *check[1:], "action.yml"], ROOT)


@pytest.mark.parametrize(
    ("command", "arguments", "code"),
    [
        ("documents", "docs\n--include\n*.txt", 1),
        ("leaks", "train.jsonl\n--test\ntest.jsonl", 1),
        ("documents", "--unit\nfunction\nsource", 1),
        ("documents", "docs\n--include\nc.txt", 0),
    ],
    ids=["documents", "leaks", "functions", "nothing"],
)
def test_the_lines_of_the_action(
    docs: Path, tmp_path: Path, command: str, arguments: str, code: int
) -> None:
    clones(tmp_path)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    given = {"COMMAND": command, "ARGUMENTS": arguments, "BASELINE": "", "SARIF": "a b.sarif"}
    done = subprocess.run(
        ["bash", "-e", "-c", steps()[1]["run"]], cwd=tmp_path, env={"PATH": path, **given}
    )
    assert done.returncode == code
    assert bool(check_sarif(json.loads((tmp_path / "a b.sarif").read_bytes()))) == (code == 1)


def clones(folder: Path) -> None:
    """Write two files in source/ with one function, under two names."""
    (folder / "source").mkdir()
    lines = "".join(f"    x = x * {k} + len(str(x))\n" for k in range(9))
    for name in ("mean", "average"):
        text = f"def {name}(x):\n{lines}    return x\n"
        (folder / "source" / f"{name}.py").write_text(text)


@pytest.mark.parametrize(
    ("extras", "wanted"),
    [("", "/a b"), ("code", "/a b[code]"), ("code,images", "/a b[code,images]")],
)
def test_the_action_installs_what_is_asked_for(extras: str, wanted: str) -> None:
    """Without extras the action installs none; functions of code need some."""
    line = f'python3() {{ echo "${{@: -1}}"; }}; {steps()[0]["run"]}'
    given = {"GITHUB_ACTION_PATH": "/a b", "EXTRAS": extras}
    done = subprocess.run(["bash", "-e", "-c", line], env=given, capture_output=True, text=True)
    assert done.stdout == f"{wanted}\n"


def test_the_hook_for_functions_installs_its_packages_and_fails(tmp_path: Path) -> None:
    clones(tmp_path)
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / HOOKS).read_text())}
    hook = hooks["neardup-functions"]
    assert hook["additional_dependencies"] == [".[code]"]
    words = [sys.executable, "-m", *shlex.split(hook["entry"]), *hook["args"]]
    done = run(words, tmp_path, cwd=tmp_path)
    assert (done.code, done.out.count(b"\n")) == (1, 1), done


@pytest.mark.slow
def test_the_hook(docs: Path, tmp_path: Path) -> None:
    """Run the hook with pre-commit, in an environment that has the packages of this one."""
    pytest.importorskip("pre_commit")
    if not (ROOT / ".git").exists():
        pytest.skip("an sdist is no repository")
    (docs / ODD).rename(docs / "b.txt")  # pre-commit itself reads no such name
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@host"]
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    env = {
        **os.environ,
        "PRE_COMMIT_HOME": str(tmp_path / "home"),
        "PIP_NO_DEPS": "1",
        "PYTHONPATH": packages,
    }
    hook = tmp_path / "hook"
    subprocess.run(["git", "clone", "-q", ROOT, hook], check=True)
    for name in (HOOKS, "neardup"):
        subprocess.run(["cp", "-r", ROOT / name, hook], check=True)
    subprocess.run([*git, "-C", hook, "add", "-A"], check=True)
    subprocess.run([*git, "-C", hook, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
    for command in (["init", "-q", "."], ["add", "docs"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    hooked = [sys.executable, "-m", "pre_commit", "try-repo", str(hook), "neardup-documents"]
    done = subprocess.run([*hooked, "-a"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 1, done
    assert "docs/c.txt\t" in done.stdout
