"""Options that define when two videos are a pair, for `neardup videos` and `step.py videos`.

>>> read_time("1.5m"), read_share("0.8")
(90.0, 0.8)
"""

from __future__ import annotations

import argparse
import math
import re

from neardup.media.videos.video_join import MEASURES, JoinOptions
from neardup.options.command_parser import flags
from neardup.runtime.program import one_of, whole

NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def read_share(text: str) -> float:
    """Parse a share T with 0 < T <= 1; ValueError for anything else.

    >>> read_share("0.8")
    0.8
    """
    value = float(text) if NUMBER.fullmatch(text) else 0.0
    if not 0 < value <= 1:
        raise ValueError(f"expected 0 < T <= 1, such as 0.8, got {text!r}")
    return value


def read_time(text: str) -> float:
    """Parse a duration such as 10s, 1.5m or 2h to seconds; ValueError for anything else.

    >>> read_time("10s"), read_time("1.5m"), read_time("2h"), read_time("10")
    (10.0, 90.0, 7200.0, 10.0)
    """
    number, unit = text.rstrip("hms"), text.lstrip("0123456789.")
    if not NUMBER.fullmatch(number) or unit not in UNITS or not 0 < float(number) < math.inf:
        raise ValueError(f"expected a time above 0, such as 10s or 2m, got {text!r}")
    return float(number) * UNITS[unit]


(TICKS,) = flags(
    "--ticks N  frames compared per second, twice as many in a short video [4]", ticks=whole(1, 25)
)
JOIN_OPTIONS = flags(
    """
    --measure NAME      which videos are a pair: copy, if enough of the shorter one is in the other
                        (--threshold); containment, if one stretch alone covers that share; common,
                        as copy, or if they share a part: a stretch of enough time (--at-least)
                        [common]
                        -h: common, copy or containment (default: common)
    --threshold T       the minimum share of the shorter video that is in the other (default: 0.5)
    --at-least TIME     the minimum time of a part, such as 10s or 2m (default: 5s)
                        -h: the minimum time of a shared part, such as 10s (default: 5s)
    """,
    measure=one_of(*MEASURES),
    threshold=read_share,
    at_least=read_time,
)


def join_options(args: argparse.Namespace) -> JoinOptions:
    """Return the options of a video join that JOIN_OPTIONS give."""
    given = {name: getattr(args, name) for name in ("measure", "threshold", "at_least")}
    return JoinOptions(**{name: value for name, value in given.items() if value is not None})
