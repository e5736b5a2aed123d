"""The two ways a stage can end early; `neardup.streaming.run` turns them into messages."""


class StageError(Exception):
    """The input, or the machine, does not allow to go on: a message, and exit code 1."""


class UsageError(Exception):
    """The command line asks for something wrong or impossible: a message, and exit code 2."""
