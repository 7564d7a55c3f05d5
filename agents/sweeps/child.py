"""`python -m agents`, which is asked to stop where whoever started it has ended.

Standard input is a pipe that nobody writes to. Its other end is closed with the process that holds
it, also where that is killed, on every system: otherwise a training would go on in a folder that
belongs to nobody.
"""

import os
import runpy
import signal
import threading


def stop_at_the_end_of_input() -> None:
    """Wait for the end of standard input, and send SIGTERM to this process."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=stop_at_the_end_of_input, daemon=True).start()
    runpy.run_module("agents", run_name="__main__", alter_sys=True)
