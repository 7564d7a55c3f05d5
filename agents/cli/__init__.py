"""The command line, a file for each command."""

from agents.cli.main import main as main

__all__ = ["main"]
