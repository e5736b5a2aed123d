"""A hook of mkdocs that adds pages from outside docs/ to the site, and adapts links.

README.md becomes the start page.  A link to a file that is not a page, such as a module, becomes
its path, since the site has no source code.  Notebooks become pages: their cells of text are
Markdown, and the others are blocks of code.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# Path in the repository → path in the site; files of docs/ keep their names.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "RELEASING.md": "releasing.md",
    "SECURITY.md": "security.md",
    "SKILL.md": "skill.md",
    "bench/NOTES.md": "notes.md",
    **{f"bench/results/{p.name}": f"results/{p.name}" for p in ROOT.glob("bench/results/*.md")},
    **{f"docs/{p.name}": p.name for p in ROOT.glob("docs/*.*") if p.suffix != ".py"},
    **{
        f"docs/notebooks/{p.name}": f"notebooks/{p.name.replace('.py', '.md')}"
        for p in ROOT.glob("docs/notebooks/*.*")  # and their plots
    },
}
SOURCES = {page: source for source, page in PAGES.items()}
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in PAGES.items():
        text = (ROOT / source).read_text("utf-8") if source.endswith((".md", ".py")) else ""
        if source.endswith(".py"):
            files.append(File.generated(config, page, content=as_markdown(text)))
        elif not source.startswith("docs/"):
            files.append(File.generated(config, page, content=text))
    return files


def as_markdown(notebook: str) -> str:
    """Return a notebook of cells, in percent form, as Markdown.

    >>> as_markdown("# %% [markdown]\\n# # One\\n#\\n# two\\n\\n# %%\\nx = 3\\n")
    '# One\\n\\ntwo\\n\\n```python\\nx = 3\\n```\\n'
    """
    cells = []
    for head, cell in re.findall(r"^# %%(.*)\n((?:(?!# %%).*\n)*)", notebook, re.M):
        text = re.sub(r"^# ?", "", cell, flags=re.M).strip()
        cells.append(text if "markdown" in head else f"```python\n{cell.strip()}\n```")
    return "\n\n".join(cells) + "\n"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    here = page.file.src_uri
    folder = os.path.dirname(SOURCES[here])

    def link(found: re.Match[str]) -> str:
        mark, text, target = found.groups()
        path, hash_, anchor = target.partition("#")
        if not path or re.match(r"\w+:", path):
            return found[0]
        source = os.path.normpath(os.path.join(folder, path))
        if source not in PAGES:
            return text if text.strip("`") in source else f"{text} (`{source}`)"
        relative = os.path.relpath(PAGES[source], os.path.dirname(here) or ".")
        return f"{mark}[{text}]({relative}{hash_}{anchor})"

    return LINK.sub(link, plain_fences(markdown))


def plain_fences(markdown: str) -> str:
    """Return Markdown without what the tests need behind a language, which mkdocs cannot read.

    >>> plain_fences("```python pandas\\n>>> 1\\n1\\n```\\n")
    '```python\\n>>> 1\\n1\\n```\\n'
    """
    return re.sub(r"^```(\w+) .*$", r"```\1", markdown, flags=re.M)
