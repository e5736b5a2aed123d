"""Examples on the page: groups and pairs, with their texts side by side.

Numbers in words, and words in their place.

What was found, shown: clusters, pairs, who went because of whom, chains; with their texts.
"""

from __future__ import annotations

from collections.abc import Sequence

from neardup.report.facts import Cluster, bar
from neardup.report.material import Asked, Gone, Material, RemovedRecords
from neardup.report.pair_graph import MILLION, Found, Node
from neardup.report.passages import both, left_side, passages, right_side
from neardup.report.style import safe_id


def counted(count: int, noun: str) -> str:
    """
    >>> counted(1, "pair"), counted(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def similar(count: int) -> str:
    """
    >>> similar(0), similar(1), similar(7)
    ('No pair is', 'One pair is', '7 pairs are')
    """
    few = {0: "No pair is", 1: "One pair is"}
    return few.get(count, f"{count:,} pairs are")


def percent(part: int, whole: int) -> str:
    """In brackets; nothing where the whole is not known.

    >>> percent(1, 8), percent(1, 0)
    (' (12.5 %)', '')
    """
    return f" ({100 * part / whole:.1f} %)" if whole else ""


def millionths(similarity: int) -> str:
    """
    >>> millionths(912345), millionths(1000000)
    ('0.912345', '1.000000')
    """
    return "{}.{:06}".format(*divmod(similarity, 10**6))


def threshold_words(asked: Asked) -> str:
    if asked.threshold is None:
        return "(at what similarity was not said)"
    return f"of similarity {float(asked.threshold):.9g} or more"


def section(name: str, lead: str, body: str) -> str:
    """A part of the page; all three are HTML."""
    return f"<section><div><h2>{name}</h2><p>{lead}</p></div><div>{body}</div></section>"


MEMBER_ROOM, REMOVED_ROOM, LITTLE = 400, 160, 3  # letters of a text; words of context
MOST_LINKS = 12  # of a chain
UNKNOWN = '<span class="unknown">the text is not in --records</span>'
LEGEND = (
    "Words that only the first one has are <del>struck</del>, words that only the second one has "
    "are <ins>underlined</ins>; … 12 … stands for 12 words that are left out."
)


def clusters(material: Material) -> str:
    shown = material.facts.largest
    lead = (
        f"The {counted(len(shown), 'largest cluster')} of {material.facts.clusters:,}. The first "
        "member stands as it is; of the others, words that it lacks are <ins>underlined</ins>, and "
        "words of it that they lack <del>struck</del>."
    )
    return section("Largest clusters", lead, "".join(_cluster(material, each) for each in shown))


def _cluster(material: Material, cluster: Cluster) -> str:
    first = cluster.members[0]
    members = [
        (node, passages(material.difference(first, node), LITTLE, MEMBER_ROOM))
        for node in cluster.members
    ]
    rows = "".join(
        f"<li>{_name(material, node)}<p dir='auto'>{both(parts) or UNKNOWN}</p></li>"
        for node, parts in members
    )
    more = cluster.size - len(members)
    rest = f'<p class="more">and {counted(more, "more member")}</p>' if more else ""
    couples = cluster.size * (cluster.size - 1) // 2
    what = f"of {couples:,} couples are pairs"
    if material.asked.links or material.facts.old:  # which are not all that there may be
        what = "links" if material.asked.links else "pairs"
    return (
        f'<article class="cluster"><h3><b>{cluster.size:,}</b> records '
        f"<small>{cluster.pairs:,} {what}</small></h3><ol>{rows}</ol>{rest}</article>"
    )


def most_similar(material: Material) -> str:
    pairs = material.most_similar()
    equal = material.facts.equal
    lead = f"{similar(equal)} of similarity 1, and not shown here. " if equal else ""
    if any(pair.similarity == MILLION for pair in pairs):
        lead = f"{similar(equal)} of similarity 1; those are shown whose texts differ. "
    if not pairs:
        return section("Most similar", f"{lead}There is no other pair.", "")
    return _pairs(material, "Most similar", lead, pairs)


def least_similar(material: Material) -> str:
    return _pairs(material, "Least similar", "", material.facts.least)


def _pairs(material: Material, name: str, lead: str, pairs: Sequence[Found]) -> str:
    clusters = {id_ for pair in pairs for id_ in (pair.a, pair.b)}
    distinct = ", one of each cluster" if len(clusters) == 2 * len(pairs) else ""
    head = f"The {counted(len(pairs), f'{name.lower()} pair')}{distinct}. {lead}{LEGEND}"
    return section(name, head, "".join(_pair(material, pair) for pair in pairs))


def _pair(material: Material, pair: Found) -> str:
    head = f"<h3><b>{millionths(pair.similarity)}</b></h3>"
    return f'<article class="pair">{head}{_side_by_side(material, pair.a, pair.b)}</article>'


def _side_by_side(material: Material, a: Node, b: Node) -> str:
    parts = passages(material.difference(a, b))
    sides = (a, left_side(parts)), (b, right_side(parts))
    shown = "".join(
        f"<div>{_name(material, node)}<p dir='auto'>{text or UNKNOWN}</p></div>"
        for node, text in sides
    )
    same = all(kind in ("same", "gap") for kind, _ in parts)
    note = '<p class="more">The texts are the same.</p>' if same and parts else ""
    return f'<div class="two sides">{shown}</div>{note}'


def _name(material: Material, node: Node) -> str:
    """The id, with what one has to know of it."""
    old = ' <span class="tag">old</span>' if node.old else ""
    again = ' <span class="tag">the first record of this id</span>'
    return f"<h4>{safe_id(node.id)}{old}{again if node in material.repeated else ''}</h4>"


def removals(material: Material) -> str:
    gone = material.sources.removed
    if gone is None or not gone.count:
        return ""
    chained = f", {gone.chained:,} of them by a chain alone" if gone.chained else ""
    lead = (
        f"{counted(gone.count, 'record')} went{chained}, because of {gone.kept:,} that stay. "
        "Words that only the record that went has are <del>struck</del>, words that only the one "
        "that stays has are <ins>underlined</ins>."
    )
    return section("Removed because of", lead, _reasons(material, gone) + _gone(material, gone))


def _reasons(material: Material, gone: RemovedRecords) -> str:
    top = gone.reasons[0][1]
    rows = "".join(
        f'<tr><th scope="row">{safe_id(id_)}</th><td class="n">{count:,}</td>'
        f"<td>{bar(100 * count / top)}</td></tr>"
        for id_, count in gone.reasons
    )
    head = '<th scope="col">stays</th><th scope="col" colspan="2">records that went</th>'
    rest = gone.kept - len(gone.reasons)
    more = f'<p class="more">and {counted(rest, "more record")} that stay</p>' if rest else ""
    return (
        "<h3>Most frequent reasons</h3>"
        f'<table class="bars ids"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}'
    )


def _gone(material: Material, gone: RemovedRecords) -> str:
    rows = "".join(_gone_row(material, one) for one in gone.first)
    rest = gone.count - len(gone.first)
    more = f'<p class="more">and {counted(rest, "more record")} that went</p>' if rest else ""
    names = ("went", "stays", "similarity")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return (
        "<h3>The first of them</h3>"
        f'<table class="gone"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}'
    )


def _gone_row(material: Material, one: Gone) -> str:
    a = Node(one.id)
    nodes = (Node(one.kept, old) for old in (False, True))
    b = next((node for node in nodes if node in material.texts), Node(one.kept))
    differing = both(passages(material.difference(a, b), LITTLE, REMOVED_ROOM))
    alike = "chained" if one.similarity == "-" else one.similarity
    return (
        f'<tr><td>{safe_id(one.id)}</td><td>{safe_id(one.kept)}</td><td class="n">{alike}</td></tr>'
        f"<tr><td colspan='3' dir='auto'>{differing or UNKNOWN}</td></tr>"
    )


def chains(material: Material) -> str:
    found = material.facts.chains
    if material.asked.links:
        return section("Chains", "Links are not all pairs: where chains are is not known.", "")
    if material.facts.old:
        lead = "Old records are not compared with each other: where chains are is not known."
        return section("Chains", lead, "")
    if not found.clusters:
        return section("Chains", "None: in each cluster every two records are a pair.", "")
    clusters = material.facts.clusters
    lead = (
        f"In {found.clusters:,} of {counted(clusters, 'cluster')} some members are no pair, and "
        f"only chained: {found.apart:,} of all {found.couples:,} couples. To keep one of such a "
        "cluster is to lose records that are not similar to it."
    )
    if found.searched < found.clusters:
        lead += f" The {found.searched:,} largest of them were searched for the longest chain."
    return section("Chains", lead, _chain(material, found.longest))


def _chain(material: Material, longest: Sequence[Found]) -> str:
    nodes = _along(longest)
    ends = nodes[0], nodes[-1]
    shown: list[str] = []
    for node, link in list(zip(nodes[1:], longest))[:MOST_LINKS]:
        shown.append(f"<li><span>{millionths(link.similarity)}</span>{_name(material, node)}</li>")
    rest = len(longest) - MOST_LINKS
    more = f'<p class="more">and {counted(rest, "more step")}</p>' if rest > 0 else ""
    return (
        f"<h3>The longest that was found: {counted(len(longest), 'step')}</h3>"
        f'<ol class="chain"><li>{_name(material, nodes[0])}</li>{"".join(shown)}</ol>{more}'
        "<h3>Its ends, which are no pair</h3>"
        f'<article class="pair">{_side_by_side(material, *ends)}</article>'
    )


def _along(links: Sequence[Found]) -> list[Node]:
    """The records of a chain of two pairs or more, in order."""
    first, second = links[0], links[1]
    nodes = [first.a if first.b in (second.a, second.b) else first.b]
    for link in links:
        nodes.append(link.b if link.a == nodes[-1] else link.a)
    return nodes
