"""`python -m agents leaderboard`."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console

from agents.cli.words import CompilingCommand, Count, KeyValues

if TYPE_CHECKING:
    from agents.experiments import Experiment
    from agents.experiments.leaderboard import Table

_EMPTY = "the board is empty; `leaderboard run` fills it"
Action = tyro.conf.Positional[
    Annotated[Literal["show", "run", "add"], tyro.conf.arg(metavar="[{show,run,add}]")]
]


@dataclass(frozen=True, kw_only=True)
class Leaderboard(CompilingCommand):
    """Show which memories learn POPGym's tasks, run what the board lacks, or add a memory of yours.

    What the board has is not run again; what was stopped goes on."""

    action: Action = "show"
    """`show` ranks; `run` fills the board; `add` runs a memory of yours, with everybody's settings,
    on the tasks that the others have run."""
    tasks: tuple[str, ...] = ()
    """Only these; by default all that the board has, and with `run` all of the level Easy."""
    memories: tuple[str, ...] = ()
    """With `run`: only these; all by default."""
    label: str = ""
    """With `add`: what the memory is called on the board."""
    memory: str = ""
    """With `add`: the name of its cell; one of yours is registered by the module in --import."""
    hidden: Count = 64
    """With `add`: recurrent units."""
    memory_options: KeyValues = ()
    """With `add`: an option of the cell; may be given several times."""
    gradient: Literal["bptt", "rtrl"] = "bptt"
    """With `add`: how credit reaches back; rtrl in segments of 8 steps."""
    scale: str = "small"
    """How long: `small` is the board's own; `quick`, to see that it works, and `full`, 15 million
    steps of 10 seeds, fill boards apart."""
    out: Path | None = None
    """The folder for runs and results; by default runs/leaderboard-SCALE."""

    def __call__(self, console: Console) -> None:
        from agents.experiments import leaderboard
        from agents.experiments.leaderboard.board import is_twin
        from agents.experiments.results import RESULTS
        from agents.experiments.runner import check_known

        if self.action != "run":
            self._refuse("memories")
        if self.action != "add":
            self._refuse("label", "memory", "memory_options", "hidden", "gradient")
        if self.scale not in leaderboard.BOARD.scales:
            raise ValueError(
                f"--scale (={self.scale!r}) must be one of {', '.join(leaderboard.BOARD.scales)}"
            )
        out = self.out or Path(f"runs/leaderboard-{self.scale}")
        known = leaderboard.Table()
        if (out / RESULTS).exists():
            known = leaderboard.read_table(out)
        elif self.scale == "small":
            known = leaderboard.read_table()
        board, memories, tasks = leaderboard.BOARD, self.memories, self.tasks
        there = dict.fromkeys(row.environment for row in known.rows)
        labels = there if self.action == "show" else board.environments
        for task in self.tasks:
            check_known("tasks", task, [label for label in labels if not is_twin(label)])
        for memory in self.memories:
            check_known("memories", memory, board.variants)
        if self.action == "show":
            if self.out is not None and not (out / RESULTS).exists():
                raise ValueError(f"--out (={out}) holds no board: there is no {RESULTS} in it")
            self._show(known, console)
            return
        if self.action == "add":
            board, memories = self._entered(), (self.label,)
            if not (tasks or known.rows):
                raise ValueError(_EMPTY)
            tasks = tasks or leaderboard.standings(known)[0]
            leaderboard.check_label(known, out, tasks, self.label)
        memories, runs = memories or tuple(board.variants), []
        for task in tasks or leaderboard.tasks("Easy"):
            runs += [(task, memory) for memory in memories]
            if self.action == "run" and leaderboard.MEMORYLESS in memories:
                runs.append((leaderboard.twin(task), leaderboard.MEMORYLESS))
        say = lambda text: console.print(text, soft_wrap=True, highlight=False)  # noqa: E731
        table = leaderboard.fill(board, known, out, runs, scale=self.scale, say=say)
        try:
            self._show(table, console)
        except ValueError as error:  # what was run is kept all the same
            say(f"nothing is ranked: {error}")
        console.print(f"results: {out / RESULTS}", soft_wrap=True, highlight=False)

    def _refuse(self, *names: str) -> None:
        for field in dataclasses.fields(self):
            if field.name in names and getattr(self, field.name) != field.default:
                flag = field.name.replace("_", "-")
                raise ValueError(f"--{flag} has no meaning with `{self.action}`")

    def _entered(self) -> "Experiment":
        """The board with the memory that the words describe."""
        import zoo
        from agents.experiments import leaderboard
        from agents.learning import BPTT, RTRL
        from zoo.options import parse_options

        for name in ("label", "memory"):
            if not getattr(self, name):
                raise ValueError(f"add needs --{name}")
        options = parse_options(self.memory_options, "--memory-options")
        gradient = RTRL(8) if self.gradient == "rtrl" else BPTT()
        memory = zoo.spec(self.memory, hidden=self.hidden, **options)
        return leaderboard.entrant(leaderboard.BOARD, self.label, memory, gradient)

    def _show(self, known: "Table", console: Console) -> None:
        from agents.cli.tables import table, with_ends
        from agents.experiments import leaderboard

        if not known.rows:
            raise ValueError(_EMPTY)
        tasks, standings = leaderboard.standings(known, self.tasks)
        title = f"final return, {len(tasks)} tasks: {', '.join(tasks)}"
        columns = ["memory", "mean", "iqm", "better", "gain"]
        shown = table(title, columns, narrow=True)
        for s in standings:
            mean, gain = with_ends(*s.mean), with_ends(*s.gain)
            shown.add_row(s.memory, mean, f"{s.iqm[0]:.3f}", f"{s.better:.2f}", gain)
        console.print(shown)
        ranked = {s.memory for s in standings}
        others = dict.fromkeys(r.variant for r in known.rows if r.variant not in ranked)
        if others:
            console.print(f"not on all of these: {', '.join(others)}", soft_wrap=True)
