"""Which process runs which test, when there are several."""

from collections.abc import Callable

from xdist.scheduler import LoadScopeScheduling


class Grouped(LoadScopeScheduling):
    """Tests of one group run in one process, one after the other.

    Unlike xdist's own, it goes on where a process has crashed: the test that crashed has failed,
    and others run what is left of its group.
    """

    def __init__(self, config, log, group: Callable[[str], str]):
        """**Arguments:**

        - `config`, `log`: as xdist gives them.
        - `group`: a test's group by pytest's name of the test.
        """
        super().__init__(config, log)
        self._group = group

    def _split_scope(self, nodeid):
        return self._group(nodeid)

    def _reschedule(self, node):
        super()._reschedule(node)
        # A process keeps its last test back until it has another one or is told to finish. xdist
        # gives one that replaces another a single group, and so it would wait for ever.
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)

    def remove_node(self, node):
        """Take a process away that has finished or crashed; gives the test that crashed."""
        # xdist would run that test again, and hand out groups of which nothing is left, from which
        # no process ever comes back.
        unfinished = {
            group: {test: done for test, done in tests.items() if not done}
            for group, tests in self.assigned_work[node].items()
        }
        crashed = next((test for tests in unfinished.values() for test in tests), None)
        for tests in unfinished.values():
            tests.pop(crashed, None)
        self.assigned_work[node] = {group: tests for group, tests in unfinished.items() if tests}
        super().remove_node(node)
        return crashed
