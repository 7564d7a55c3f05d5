"""In the place of a training, without what takes seconds: `train ACT --out FOLDER [--resume]`.

It keeps its folder's lock, and ends where its input does, as `agents.sweeps.child` lets a training.
"""

import sys
import threading
from pathlib import Path

from agents.running.folder import CHECKPOINT, sole_writer
from agents.running.signals import StopRequest
from agents.sweeps.child import stop_at_the_end_of_input


def main(act: str, folder: Path) -> int:
    with sole_writer(folder), StopRequest() as stop:
        threading.Thread(target=stop_at_the_end_of_input, daemon=True).start()
        begun = folder / CHECKPOINT
        if act == "once" and not begun.exists():  # the first attempt lasts until it is stopped
            begun.touch()
            (folder.parent / f"{folder.name} lasts").touch()
            while stop.number is None:
                threading.Event().wait(0.02)
            return 128 + stop.number
        print("done", flush=True)
        begun.touch()
        return int(act) if act.isdigit() else 0


if __name__ == "__main__":
    _, act, _, folder, *rest = sys.argv[1:]
    sys.exit(main(act, Path(folder)))
