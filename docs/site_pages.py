"""A hook of mkdocs that adds pages from outside docs/ to the site, and adapts links.

README.md becomes the start page.  A link to a file that is not a page, such as a module, becomes
its path, since the site has no source code.
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
    "bench/NOTES.md": "notes.md",
    **{f"bench/results/{p.name}": f"results/{p.name}" for p in ROOT.glob("bench/results/*.md")},
    **{f"docs/{p.name}": p.name for p in ROOT.glob("docs/*") if p.suffix != ".py"},
}
SOURCES = {page: source for source, page in PAGES.items()}
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in PAGES.items():
        if not source.startswith("docs/"):
            files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    return files


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

    return LINK.sub(link, markdown)
