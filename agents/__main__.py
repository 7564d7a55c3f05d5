"""`python -m agents`."""

import sys

from agents.cli import main

if __name__ == "__main__":
    sys.exit(main())
