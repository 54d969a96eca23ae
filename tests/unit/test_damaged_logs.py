"""Damaged logs: each is refused, or gives the very values of the whole log.

Few edited digits are an exception, which only the digest in the record shows.  A sample of all
damages is tried, always the same; the long tests try twenty times as many.
"""

import random
from collections.abc import Iterator

import pytest
from captured import BY_NAME, LOGS, same

each_log = pytest.mark.parametrize("log", LOGS, ids=list(BY_NAME))
FOREIGN = ["", "{", "{}", '{"x": 1}', "null", "} {", "a message"]
FOREIGN += ['{"done": true}', '{"point": "x"}', '{"end": "x"}']


def structural(lines: list[str]) -> Iterator[list[str]]:
    """The log with lines missing, doubled, in another place, foreign, joined or broken."""
    for at, line in enumerate(lines):
        before, after, half = lines[:at], lines[at + 1 :], len(line) // 2
        yield before
        yield [*before, line[:half]]
        yield [*before, *after]
        yield [*before, line, line, *after]
        yield [*before, line[:half], line[half:], *after]
        yield [*before, f" {line}", *after]
        yield [*before, *after[:1], line, *after[1:]]
        yield [*before, line + "".join(after[:1]), *after[1:]]
        for foreign in FOREIGN:
            yield [*before, foreign, line, *after]
    yield lines[::-1]


def edited(lines: list[str], chance: random.Random) -> list[str]:
    """The log with one character changed, missing or doubled."""
    at = chance.choice([number for number, line in enumerate(lines) if line])
    line = lines[at]
    place = chance.randrange(len(line))
    old = line[place]
    others = ["x" if old.isalpha() else "-"]
    if old.isdigit():
        others = [str((int(old) + 1) % 10), str((int(old) + 9) % 10)]
    new = chance.choice([*others, "", old * 2, old + "0"])
    return [*lines[:at], line[:place] + new + line[place + 1 :], *lines[at + 1 :]]


def with_other_values(log, damaged) -> list[list[str]]:
    """The damaged logs that are not refused, and give other values."""
    lines_of_logs = []
    for lines in damaged:
        values = log.parse(lines)
        if values is not None and not same(values, log.values):
            lines_of_logs.append(lines)
    return lines_of_logs


def structural_of_long(log) -> Iterator[list[str]]:
    """Damages of some lines of a long log."""
    chance = random.Random(2014)
    cut = sorted(chance.sample(range(len(log.lines)), 60))
    for at in cut:
        yield log.lines[:at]
        yield log.lines[:at] + log.lines[at + 1 :]
        yield log.lines[: at + 1] + log.lines[at:]
        yield [*log.lines[:at], '{"done": true}', *log.lines[at:]]


# Twenty times as many in the long tests.
each_number = pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.long)])


@each_number
@each_log
def test_no_line_can_be_missing_doubled_moved_or_foreign(log, times):
    damages = (
        list(structural(log.lines)) if len(log.lines) < 1000 else list(structural_of_long(log))
    )
    chosen = random.Random(2014).sample(damages, min(120 * times, len(damages)))
    # A start is one line, without an end of its own.
    if log.workload != "startup":
        assert with_other_values(log, chosen) == []


@each_number
@each_log
def test_edited_logs_are_refused_or_give_the_same_values_but_for_few(log, times):
    count = (15 if len(log.lines) > 1000 and times == 1 else 120) * times
    chance = random.Random(2014)
    other = with_other_values(log, [edited(log.lines, chance) for _ in range(count)])
    # A parser does not repeat a program's arithmetic: the record holds the log's digest.
    # A start is one line, with times that no other line has; of a command little is known, and of
    # memory nothing but how it grows.
    most = {"startup": 0.5, "start": 0.4, "command": 0.15, "density": 0.15}
    assert len(other) <= most.get(log.workload, 0.06) * count
