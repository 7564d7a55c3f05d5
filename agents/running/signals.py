"""Ctrl-C, SIGTERM and the end of the terminal, as requests to stop."""

import signal
import threading
from typing import Any


class StopRequest:
    """Turns the first Ctrl-C, SIGTERM or SIGHUP into a request; the second raises
    `KeyboardInterrupt`, once Python runs again: not before what JAX computes at the time is done.

    Use it as a context manager. `number` is the signal that came, or `None`. Outside the main
    thread, which signals do not reach, it does nothing.
    """

    def __init__(self):
        self.number: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            numbers = [signal.SIGINT, signal.SIGTERM]
            hangup = getattr(signal, "SIGHUP", None)  # Windows has none
            if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
                numbers.append(hangup)  # under nohup it stays ignored
            for number in numbers:
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: Any) -> None:
        if self.number is not None:
            raise KeyboardInterrupt
        self.number = number
