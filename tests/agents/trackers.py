"""Packages of trackers that keep what they are sent, with the parts of their interfaces in use."""

import sys
from types import ModuleType


def install_tracker(monkeypatch, name, broken=None):
    """Let `import` find a package of that name; the calls it gets, as a list that grows.

    `broken`: which of `init`, `log` and `finish` raises.
    """
    sent = []

    def note(call, *what):
        if call == broken:
            raise ConnectionError(f"{call} is broken")
        sent.append((call, *what))

    class Run:
        def log(self, data, step=None):
            note("log", data, step)

    class WandbRun(Run):
        def finish(self, exit_code=None):
            note("finish", {"exit_code": exit_code})

    class TrackioRun(Run):
        def finish(self):
            note("finish", {})

    def wandb_init(
        *, project, name, id, resume, dir, config, allow_val_change=None, reinit="return_previous"
    ):
        assert allow_val_change and reinit == "create_new" and not set(id) & set("/\\#?%:")
        begun = {"project": project, "name": name, "id": id, "resume": resume, "dir": dir}
        note("init", begun | {"config": config})
        return WandbRun()

    def trackio_init(project, name=None, config=None, resume="never"):
        begun = {"project": project, "name": name, "resume": resume}
        note("init", begun | {"config": config})
        return TrackioRun()

    package = ModuleType(name)
    package.init = {"wandb": wandb_init, "trackio": trackio_init}[name]
    monkeypatch.setitem(sys.modules, name, package)
    return sent
