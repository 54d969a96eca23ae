"""Operations that follow one another as published: a Markov chain, each row of which is kept exactly."""

import random

from visits import Visitor


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


class Walker(Visitor):
    """A user who walks a chain, which all users of a point share."""

    flows: dict[str, dict[str, float]]
    # The published share of each operation.
    mix: dict[str, float]

    def come(self) -> None:
        """Come to where a user is who has just done something, so many at each as the mix says: no beginning shows."""
        if not self.point.shared:
            chance = random.Random(f"walk {self.asked['seed']} {self.number}")
            self.point.shared["walk"] = Chain({**self.flows, "coming": self.mix}, chance)
        self.last = self.point.shared["walk"].after("coming")

    def next(self) -> str:
        """What the walk lets follow."""
        self.last = self.point.shared["walk"].after(self.last)
        return self.last
