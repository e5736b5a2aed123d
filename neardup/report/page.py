"""The page: one document of HTML with its style in it, that loads nothing and runs nothing."""

from __future__ import annotations

from pathlib import Path

from neardup.report.examples import (
    chains,
    clusters,
    counted,
    least_similar,
    most_similar,
    percent,
    removals,
    section,
    similar,
    threshold_words,
)
from neardup.report.facts import bars
from neardup.report.material import Material
from neardup.report.style import STYLE, safe
from neardup.runtime import VERSION

# Nothing but the style that is in it: whatever a text might smuggle in would be refused.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(material: Material) -> str:
    """In the order in which a person wants it: found, asked, figures, pictures, examples."""
    sections = [
        _shapes(material),
        clusters(material),
        most_similar(material),
        least_similar(material),
        removals(material),
        chains(material),
    ]
    title = f"Near-duplicates in {_names(material.sources.records)}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{_header(material, title)}
{_figures(material)}
{_asked(material)}
{"".join(sections) if material.facts.pairs else ""}
<footer>Made by neardup {VERSION} from {_names([material.sources.pairs])} and
{_names(material.sources.records)}.
This page is one file: it loads nothing, and needs no network.</footer>
</main>
</body>
</html>
"""


def _names(files: list[str]) -> str:
    """
    >>> _names(["a/pairs.tsv"]), _names(["x", "y", "z"])
    ('pairs.tsv', 'x and 2 more files')
    """
    name = "standard input" if files[0] == "-" else Path(files[0]).name
    more = f" and {counted(len(files) - 1, 'more file')}" if len(files) > 1 else ""
    return safe(name) + more


def _header(material: Material, title: str) -> str:
    facts = material.facts
    if not facts.pairs:
        head = f"No two of {counted(material.records, 'record')} are similar enough."
        return f'<header><p class="over">{title}</p><h1>{head}</h1></header>'
    of = f" of {material.records:,}" if material.records else ""
    head = f"{facts.records:,}{of} records have a near-duplicate."
    kind = "link" if material.asked.links else "pair"
    lead = (
        f"They form {counted(facts.pairs, kind)} {threshold_words(material.asked)}, which "
        f"connect them to {counted(facts.clusters, 'cluster')}. "
    )
    if gone := material.sources.removed:
        lead += (
            f"{counted(gone.count, 'record')} went{percent(gone.count, material.records)}, because "
            f"of {gone.kept:,} that stay."
        )
    else:
        lead += (
            f"If one record of each cluster stays, {facts.would_go:,} go"
            f"{percent(facts.would_go, material.records)}."
        )
    return f'<header><p class="over">{title}</p><h1>{head}</h1><p class="lead">{lead}</p></header>'


def _figures(material: Material) -> str:
    facts, gone = material.facts, material.sources.removed
    figures = [
        (f"{material.records:,}" if material.records else "–", "records"),
        (f"{facts.records:,}", f"of them in pairs{percent(facts.records, material.records)}"),
        (f"{facts.pairs:,}", "links" if material.asked.links else "pairs"),
        (f"{facts.equal:,}", "of them of similarity 1"),
        (f"{facts.clusters:,}", "clusters"),
        (f"{facts.would_go:,}", "would go, if one of each cluster stayed"),
    ]
    if gone:
        figures[-1] = (f"{gone.count:,}", "removed")
    shown = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for value, name in figures)
    return f'<dl class="figures">{shown}</dl>'


def _asked(material: Material) -> str:
    rows = "".join(f"<dt>{name}</dt><dd>{said}</dd>" for name, said in _answers(material))
    source = material.asked.source
    told = f"From {safe(source)}." if source else "All that is known of it."
    return section("What was asked", told, f'<dl class="asked">{rows}</dl>')


def _answers(material: Material) -> list[tuple[str, str]]:
    asked, unknown = material.asked, '<span class="unknown">not known</span>'
    at_least = f"{float(asked.threshold):.9g} or more" if asked.threshold else unknown
    options = " ".join(f"<code>{safe(option)}</code>" for option in asked.shown_options())
    rows = [
        ("Similarity", f"{at_least}, by {safe(asked.measure)}" if asked.measure else at_least),
        ("Options", options or "none but the defaults"),
        ("Promise", safe(asked.promise) if asked.promise else unknown),
    ]
    for name in ("recall", "precision"):
        if name in material.sources.audit:
            value, note = material.sources.audit[name]
            ids, how = material.sources.audit["ids looked at"]
            said = f"<b>{safe(value)}</b>" + (f", {safe(note)}" if note else "")
            rows.append((f"Audited {name}", f"{said}; from {safe(ids)} ids, {safe(how)}"))
    bad = material.bad_lines
    reasons = ", ".join(f"{n:,} {safe(reason)}" for reason, n in sorted(bad.items()))
    if asked.counts:
        rows.append(("Bad lines", f"{sum(bad.values()):,} ({reasons})" if bad else "none"))
    else:
        rows.append(("Bad lines", unknown))
    return rows


def _shapes(material: Material) -> str:
    facts = material.facts
    sizes = bars(("records", "clusters"), facts.sizes, logarithmic=True)
    alike = bars(("similarity", "pairs"), facts.similarities)
    equal = f"{similar(facts.equal)} of similarity 1: all their shingles are the same. "
    return section(
        "Shapes",
        equal + "The bars of the clusters are logarithmic, those of the pairs are not.",
        '<div class="two"><figure><figcaption>Clusters by size</figcaption>'
        f"{sizes}</figure><figure><figcaption>Pairs by similarity</figcaption>{alike}</figure>"
        "</div>",
    )
