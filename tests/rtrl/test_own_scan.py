"""A user's own `scan.py`, or a folder of that name."""

import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

import rtrl

HINT = Path(rtrl.__file__).with_name("_own_scan.py")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_another_scan_is_named(kind, monkeypatch):
    other = ModuleType("scan")
    if kind == "file":
        other.__file__ = "/home/user/scan.py"
    else:
        other.__path__ = ["/home/user/scan.py"]
    monkeypatch.setitem(sys.modules, "scan", other)
    with pytest.raises(ImportError, match=r"`scan` is /home/user/scan.py, not the package of"):
        runpy.run_path(str(HINT))


def test_ours_is_let_pass():
    runpy.run_path(str(HINT))
