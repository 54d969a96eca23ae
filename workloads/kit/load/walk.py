"""Operations that follow one another as published: a Markov chain, each row of which is kept exactly."""

import random


class Chain:
    """Draws what follows, for all users of a load generator.

    flows: operation → what follows it → weight.  Of what follows an operation each has been drawn as often as its share
    says, within one: so a run has the published mix as nearly as its length allows.  Where it begins is drawn.
    """

    def __init__(self, flows: dict[str, dict[str, float]], chance: random.Random) -> None:
        self.flows = {
            name: {then: part / sum(row.values()) for then, part in row.items() if part} for name, row in flows.items()
        }
        self.due = {name: {then: chance.random() for then in row} for name, row in self.flows.items()}

    def after(self, operation: str) -> str:
        """The operation that follows."""
        due = self.due[operation]
        for then, share in self.flows[operation].items():
            due[then] += share
        chosen = max(due, key=due.__getitem__)
        due[chosen] -= 1
        return chosen


def mix(flows: dict[str, dict[str, float]]) -> dict[str, float]:
    """The share of each operation to which a chain leads."""
    found = dict.fromkeys(flows, 1 / len(flows))
    for _ in range(500):
        after = dict.fromkeys(flows, 0.0)
        for name, row in flows.items():
            for then, part in row.items():
                after[then] += found[name] * part / sum(row.values())
        # Half of both, so that a chain that only goes round ends too.
        found = {name: (found[name] + after[name]) / 2 for name in flows}
    return found
