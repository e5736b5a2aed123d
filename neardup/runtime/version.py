"""The version: of the package, the command, and what a run's own file says."""

VERSION = "0.1.0"
