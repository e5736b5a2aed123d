"""--report: a page about a run, made from its pairs or edges before its folder is removed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO

from neardup.decisions.edge_file import as_number
from neardup.decisions.rules import as_decimals
from neardup.engines.local.plan import Plan
from neardup.evaluation.exact_answers import parsed_lines
from neardup.lines.answer_lines import EDGE, MEMBER, NO_PAIR, parse_edge_lines, parse_removed
from neardup.lines.tagged_ids import is_old
from neardup.reading.blocks import NEW
from neardup.report import facts, material, page
from neardup.report.facts import Found, Node
from neardup.runtime.manifest import RunFile
from neardup.runtime.program import write_to
from neardup.verification import RECORDS


def write_page(file: IO[bytes], plan: Plan, run: RunFile, new: Sequence[str]) -> None:
    """Write the page of a finished run; `new` are the names of its new files.

    A run that decides has edges, which are not all pairs: the page calls them links.
    """
    settings = plan.settings
    decides = bool(settings.output.decides)
    asked = material.asked_of(run, "the run", settings.form)
    old = [name for name, place in zip(plan.names, plan.places) if place < NEW]
    asked = replace(asked, files=list(new), old_files=old, links=asked.links or decides)
    pairs = [str(path) for path in plan.paths("pairs")]
    found = links(plan) if decides else parsed_lines(pairs, facts.found_pair)
    graph = facts.PairGraph.of(found)
    reasons = str(plan.path("reasons"))
    whole = material.gathered_material(
        plan.answer.name or "the run",
        asked,
        facts.facts_of(graph, asked.threshold, asked.form.bits),
        material.read_removed(reasons) if settings.output.decides == RECORDS else None,
        {},
        dict(zip(plan.names, plan.files)),
    )
    write_to(file, [page.page(whole, False).encode()])


def links(plan: Plan) -> Iterator[Found]:
    """Yield the edges of a decision, and each removed member of a dense cluster with its reason.

    A kept member of a dense cluster that is nobody's reason has no link.
    """
    tag, dense = plan.settings.tag, dict[bytes, Node]()
    assert tag

    def node(record: bytes) -> Node:
        return Node(tag.id_of(record), is_old(record))

    edges = [str(path) for path in plan.paths("pairs")]
    for fields in parsed_lines(edges, lambda line: parse_edge_lines([line])[0]):
        if len(fields) == EDGE:
            similarity = as_decimals(as_number(fields[2])).decode()
            yield Found(node(fields[0]), node(fields[1]), _millionths(similarity))
        elif len(fields) == MEMBER:
            member = node(fields[0])
            dense[member.id] = max(member, dense.get(member.id, member))
    if dense:
        reasons = parsed_lines([str(plan.path("reasons"))], parse_removed)
        for id_, kept, similarity in reasons:
            if id_ in dense and kept in dense and similarity != NO_PAIR.decode():
                yield Found(Node(id_), dense[kept], _millionths(similarity))


def _millionths(similarity: str) -> int:
    return int(similarity.replace(".", ""))
