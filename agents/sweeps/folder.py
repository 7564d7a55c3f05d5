"""A sweep's folder: its list of runs, their folders and their logs.

```
OUT/sweep.json            the words of `train` for each run
OUT/runs/NAME/            an ordinary run
OUT/logs/NAME.log, .exit  what it said, and the exit code of the last attempt
```
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from agents.running.files import write_whole

SWEEP, RUNS, LOGS = "sweep.json", "runs", "logs"


def write_list(out: Path, runs: Mapping[str, Sequence[str]]) -> None:
    """Add runs, by name with their words, to the list of a sweep; the folder is made.

    **Raises:**

    `ValueError` where there is a file of that name that is no such list; `OSError` if it cannot be
    written.
    """
    out.mkdir(parents=True, exist_ok=True)
    listed = read_list(out) if (out / SWEEP).exists() else {}
    listed |= {name: list(words) for name, words in runs.items()}
    text = json.dumps({"runs": listed}, indent=2) + "\n"
    write_whole(out / SWEEP, text.encode())


def read_list(out: Path) -> dict[str, list[str]]:
    """Read the runs of a sweep, by name with their words.

    **Raises:**

    `ValueError` if there are none.
    """
    path = out / SWEEP
    try:
        return dict(json.loads(path.read_text())["runs"])
    except FileNotFoundError:
        raise ValueError(f"{out} holds no sweep: there is no {SWEEP} in it") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{path} is no list of a sweep's runs") from None


def exit_code(out: Path, name: str) -> int | None:
    """Return the exit code of a run's last attempt; `None` while it lasts, or where it is lost."""
    try:
        return int((out / LOGS / f"{name}.exit").read_text())
    except (OSError, ValueError):
        return None


def write_exit_code(out: Path, name: str, code: int) -> None:
    """Write the exit code of a run's last attempt, into the folder of logs.

    **Raises:**

    `OSError` if it cannot be written.
    """
    (out / LOGS / f"{name}.exit").write_text(f"{code}\n")
