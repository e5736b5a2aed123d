"""The files on a script's command line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from neardup.engines.inputs import input_blocks
from neardup.options.settings import Settings
from neardup.reading.blocks import Block


def with_files(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("files", nargs="*", metavar="FILE", help="default: -, standard input")
    return parser


def blocks_to_read(args: Namespace, settings: Settings) -> Iterator[Block]:
    return input_blocks(args.against or [], args.files or ["-"], settings)
