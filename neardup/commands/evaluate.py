"""`evaluate`: compare the pairs of a run with the exact answer.

    precision = tp / (tp + fp)                 share of the printed pairs that are true
    recall    = tp / (tp + fn)                 share of the true pairs that were printed
    F1        = 2·tp / (2·tp + fp + fn)        harmonic mean of both

The interval is of the probability with which the job finds a pair of this collection, over the
draw of its hash functions, if pairs are found independently.  Those of a dense cluster are not, and
then the true interval is wider.

A pair is the two ids of a line, in this order.  The pairs of both files are held in memory.
"""

import sys

from neardup.commands.truth import CONFIDENCE, check_all_pairs, row
from neardup.lines.answer_lines import ALL_PAIRS, exact_pair, parsed_lines
from neardup.options.command_parser import CommandParser
from neardup.reading.input_files import check_files
from neardup.runtime.flags import flags
from neardup.similarity.intervals import interval, ratio

DESCRIPTION = """Compare the pairs of a run with the true ones: precision, recall and F1.

Both files are pairs, as lines or as rows, in any order, plain or compressed; - is standard input.

    ./run_local.sh videos.txt | python3 -m neardup evaluate - truth.tsv
"""


def main() -> None:
    parser = CommandParser("python3 -m neardup evaluate", DESCRIPTION)
    parser.add(
        *flags(
            """
            pairs PAIRS     the pairs that the job wrote
            truth TRUTH     the pairs that `neardup truth` wrote
            """
        ),
        CONFIDENCE._replace(help="confidence of the interval of the recall"),
    )
    args = parser.parse_args()
    check_files([args.pairs, args.truth])
    check_all_pairs(args.pairs)
    pairs, true = (parsed_lines([name], exact_pair, ALL_PAIRS) for name in (args.pairs, args.truth))
    truth = {(a, b): similarity for a, b, similarity in true}
    printed: set[tuple[bytes, bytes]] = set()
    lines, differ = 0, 0
    for a, b, similarity in pairs:
        printed.add((a, b))
        lines += 1
        differ += truth.get((a, b), similarity) != similarity
    print(*table(len(printed & truth.keys()), len(printed), len(truth), args.confidence), sep="\n")
    if lines > len(printed):
        print(f"lines that repeat a pair: {lines - len(printed):,}", file=sys.stderr)
    if differ:
        print(f"lines with another similarity than in {args.truth}: {differ:,}", file=sys.stderr)


def table(both: int, printed: int, true: int, confidence: float) -> list[str]:
    """Return lines with precision, recall and F1 for numbers of common, printed and true pairs.

    >>> for line in table(788, 788, 790, 0.95): print(line)
    true positives                           788  printed, and true
    false positives                            0  printed, but not true
    false negatives                            2  true, but not printed
    precision                           1.000000
    recall                              0.997468  0.990885 to 0.999694 with confidence 0.95
    F1                                  0.998732
    """
    return [
        row("true positives", both, "printed, and true"),
        row("false positives", printed - both, "printed, but not true"),
        row("false negatives", true - both, "true, but not printed"),
        row("precision", ratio(both, printed)),
        row("recall", ratio(both, true), interval(both, true, confidence)),
        row("F1", ratio(2 * both, printed + true)),
    ]
