"""What is seen of the host around the cells that are measured together, mostly one alone."""

from collections.abc import Sequence

from strata.cell import quiet
from strata.experiment import plan
from strata.host import observe


class Surroundings:
    """The host before anything is brought up, before the first command, and after the last."""

    def __init__(self, experiment: dict) -> None:
        self.plan = experiment
        self.lookout = quiet.Lookout(experiment.get("quiet"), plan.daemons(experiment))
        self.ticks: list = []
        self.before: dict = {}

    def begin(self) -> None:
        """Look before anything is brought up.  Raises CellFailed where the machine is not as quiet as asked."""
        self.lookout.begin()
        self.ticks = [observe.cpu_times()]
        self.before = observe.moment()

    def ready(self) -> None:
        """Look before the first command is run."""
        self.ticks.append(observe.cpu_times())
        self.before |= observe.shares(*self.ticks) | self.lookout.before(self.before)

    def end(self, environments: Sequence[str], commands: Sequence[list[dict]]) -> dict:
        """Look after the last command in systems of these environments; what the record says of the host.

        commands: those of each cell.
        """
        after = observe.moment()
        during = observe.shares(self.ticks[1], observe.cpu_times())
        working = {name for environment in environments for name in self.plan["environments"][environment]["daemons"]}
        during |= self.lookout.during(after, working, commands)
        return {"static": observe.host(), "before": self.before, "after": after, "during": during}
