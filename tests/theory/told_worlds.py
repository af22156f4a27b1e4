"""Tiny worlds in which the best analyst against `theory.told` is found by trying everything.

A row is one of a few atoms with known probabilities; a sample is how often each occurs, and a set
of samples a whole number, one bit for each. The analyst knows the law. What she learns is the set
of samples that would have told her the same; from there on, and with the history that she has
made, the best she can do is a maximum over all questions. Chances are whole numbers over one
denominator, tails exact fractions; levels and codes are those of the package, rounded up.
A claim counts as false even if the law lies exactly on its end (`_SLACK` is for that rounding).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import TypeVar

from holdfast.theory import told
from holdfast.theory.told import Code, History, Windows

_SLACK = Fraction(1 + 10**9, 10**9)

Sample = tuple[int, ...]


@dataclass(frozen=True)
class World:
    """Atoms with probabilities, and the numbers of rows of each epoch (one, mostly)."""

    masses: tuple[Fraction, ...]
    rows: tuple[int, ...]

    @cached_property
    def samples(self) -> list[tuple[Sample, ...]]:
        """For each epoch, how often each atom occurs."""
        atoms = range(len(self.masses))
        parts = [
            [c for c in product(range(n + 1), repeat=len(atoms)) if sum(c) == n] for n in self.rows
        ]
        return list(product(*parts))

    @cached_property
    def _laws(self) -> list[Fraction]:
        laws = []
        for sample in self.samples:
            law = Fraction(1)
            for counts in sample:
                law *= math.factorial(sum(counts))
                for mass, n in zip(self.masses, counts, strict=True):
                    law *= mass**n / math.factorial(n)
            laws.append(law)
        return laws

    @cached_property
    def whole(self) -> int:
        return math.lcm(*(law.denominator for law in self._laws))

    @cached_property
    def weights(self) -> list[int]:
        """The multinomial law, times `whole`."""
        return [int(law * self.whole) for law in self._laws]

    def chance(self, cell: int) -> int:
        weights, total = self.weights, 0
        while cell:
            low = cell & -cell
            total += weights[low.bit_length() - 1]
            cell ^= low
        return total

    @property
    def everything(self) -> int:
        return (1 << len(self.samples)) - 1

    def count(self, atoms: Iterable[int], i: int, epochs: slice = slice(None)) -> int:
        return sum(counts[a] for counts in self.samples[i][epochs] for a in atoms)

    def by_count(self, atoms: Iterable[int], epochs: slice = slice(None)) -> dict[int, int]:
        """The samples by the number of rows, of these epochs, that are in these atoms."""
        cells: dict[int, int] = {}
        for i in range(len(self.samples)):
            key = self.count(atoms, i, epochs)
            cells[key] = cells.get(key, 0) | 1 << i
        return cells

    def mass(self, atoms: Iterable[int]) -> Fraction:
        return sum((self.masses[a] for a in atoms), Fraction(0))

    @property
    def sets(self) -> list[tuple[int, ...]]:
        atoms = range(len(self.masses))
        return [s for size in range(1, len(self.masses)) for s in combinations(atoms, size)]


@dataclass(frozen=True)
class State:
    """The history, and what codes of the tests remember beside it."""

    history: History
    gap: int = 0


Outcome = tuple[int, bool, State]  # samples, whether the claim is false, what follows
Question = Callable[[State], Sequence[Outcome]]
Level = Callable[..., float]
S = TypeVar("S")


def best(
    world: World,
    questions: Sequence[Callable[[S], Sequence[tuple[int, bool, S]]]],
    left: int,
    state: S,
) -> Fraction:
    """The largest chance that a claim is ever false, with `left` questions."""
    answers: dict[tuple[int, S], Sequence[tuple[int, bool, S]]] = {}
    values: dict[tuple[int, S, int], int] = {}

    def ask(i: int, state: S) -> Sequence[tuple[int, bool, S]]:
        key = (i, state)
        if key not in answers:
            answers[key] = questions[i](state)
        return answers[key]

    def value(cell: int, state: S, left: int) -> int:
        if not cell or not left:
            return 0
        key = (cell, state, left)
        if key not in values:
            most, whole = 0, world.chance(cell)
            for i in range(len(questions)):
                total = 0
                for samples, false, after in ask(i, state):
                    inside = samples & cell
                    if inside:
                        total += world.chance(inside) if false else value(inside, after, left - 1)
                most = max(most, total)
                if most == whole:
                    break
            values[key] = most
        return values[key]

    return Fraction(value(world.everything, state, left), world.whole)


def ratio(world: World, questions: Sequence[Question], left: int, history: History) -> float:
    """Optimum/certified."""
    return float(best(world, questions, left, State(history)) / Fraction(history.failure))


def _tails(n: int, mass: Fraction) -> list[Fraction]:
    """P[Bin(n, mass) ≥ c] for c = 0 … n + 1."""
    law = [math.comb(n, i) * mass**i * (1 - mass) ** (n - i) for i in range(n + 1)]
    return [sum(law[c:], Fraction(0)) for c in range(n + 2)]


def small(chance: Fraction, nats: float) -> bool:
    """chance ≤ e^(−nats), but for rounding."""
    return math.isfinite(nats) and chance <= Fraction(math.exp(-nats)) * _SLACK


def tail_claims(
    world: World,
    atoms: Sequence[int],
    windows: Windows,
    code: Code,
    level: float,
    epochs: slice = slice(None),
    *,
    whole_mass: bool = False,
) -> Iterator[tuple[int, int, bool]]:
    """Letter, samples, whether its claim is false: the tail rule, ends made monotone.

    M < lower end of a letter up to a ⟺ P[count ≥ its first] ≤ e^(−level)·q(≥ it). `whole_mass`
    is a mistake: both ends take q = 1.
    """
    mass, n = world.mass(atoms), sum(world.rows[epochs])
    up, down = _tails(n, mass), _tails(n, 1 - mass)
    cells: dict[int, int] = {}
    for count, samples in world.by_count(atoms, epochs).items():
        letter = windows.letter(count)
        cells[letter] = cells.get(letter, 0) | samples
    letters = sorted(cells)
    low = [
        small(up[windows.counts(a)[0]], level + (0 if whole_mass else code.nats_at_least(a)))
        for a in letters
    ]
    high = [
        small(down[n - windows.counts(a)[1]], level + (0 if whole_mass else code.nats_at_most(a)))
        for a in letters
    ]
    for i, letter in enumerate(letters):
        yield letter, cells[letter], any(low[: i + 1]) or any(high[i:])


def confirm(
    world: World,
    atoms: Sequence[int],
    windows: Windows,
    *,
    level: Level = told.level,
    gaps: bool = False,
    whole_mass: bool = False,
) -> Question:
    """A share is confirmed by windows, with the learnt code (or the one of gaps)."""

    def question(state: State) -> list[Outcome]:
        h = state.history
        epsilon = told.gap_epsilon(state.gap) if gaps else h.confirmations.epsilon
        code = told.Outward(epsilon)
        outcomes = []
        at = level(h, 1)
        for a, samples, false in tail_claims(
            world, atoms, windows, code, at, whole_mass=whole_mass
        ):
            after = h.tell(code.nats(a), confirmation=a != 0)
            outcomes.append((samples, false, State(after, 0 if a else state.gap + 1)))
        return outcomes

    return question


def coded(
    world: World,
    atoms: Sequence[int],
    windows: Windows,
    code: Code,
    *,
    level: Level = told.level,
    account: int = 1,
    newest: int | None = None,
) -> Question:
    """Windows of a share with any code, read from the rows of epochs `account` to `newest`.

    After a letter of code 0 nothing can be certified any more.
    """
    epochs = slice(account - 1, newest)

    def question(state: State) -> list[Outcome]:
        h, outcomes = state.history, []
        at = level(h, account)
        for a, samples, false in tail_claims(world, atoms, windows, code, at, epochs):
            after = h.tell(min(told.NATS_MAX, code.nats(a)), newest=newest)
            outcomes.append((samples, false, State(after)))
        return outcomes

    return question


def tell(cells: Sequence[int], code: Code) -> Question:
    """A letter without a claim: letter i on these samples."""

    def question(state: State) -> list[Outcome]:
        after = [State(state.history.tell(code.nats(i))) for i in range(len(cells))]
        return [(cell, False, state) for cell, state in zip(cells, after, strict=True)]

    return question


def windows_of(n: int, widths: Sequence[int] = (1,)) -> list[Windows]:
    """All expected windows, and windows of these widths beside them."""
    return [
        Windows(n, first, last, width)
        for first in range(n + 1)
        for last in range(first, n + 1)
        for width in widths
        if (first, last) != (0, n)
    ]


@dataclass(frozen=True)
class Sure(Code):
    """All of the code on one letter: for the last question of an analyst who chooses codes."""

    letter: int

    def at(self, letter: int) -> float:
        return float(letter == self.letter)

    def at_least(self, letter: int) -> float:
        return float(letter <= self.letter)

    def at_most(self, letter: int) -> float:
        return float(letter >= self.letter)


def shifted(
    world: World, atoms: Sequence[int], guess: float, half: float, *, level: Level = told.level
) -> Question:
    """The letter rule: the first shifted and widened interval that contains the data's own."""
    n, mass = sum(world.rows), world.mass(atoms)

    def question(state: State) -> list[Outcome]:
        h = state.history
        code, at, outcomes = told.Shifts(h.confirmations.epsilon), level(h), []
        for count, samples in world.by_count(atoms).items():
            for c, j in code.letters(6):
                low, high = code.interval(c, j, guess, half, cell=0.1)
                if high <= 0 or low >= 1:
                    continue
                nats = at + code.nats(c, j)
                below = low <= 0 or told.log_share_above(n, count, low) <= -nats
                if below and (high >= 1 or told.log_share_below(n, count, high) <= -nats):
                    break
            after = State(h.tell(code.nats(c, j), confirmation=(c, j) != (0, 0)))
            outcomes.append((samples, not Fraction(low) <= mass <= Fraction(high), after))
        return outcomes

    return question


def winner(world: World, candidates: Sequence[Sequence[int]]) -> Question:
    """Which candidate has the most rows, the first of equals; no claim."""
    cells = [0] * len(candidates)
    for i in range(len(world.samples)):
        counts = [world.count(atoms, i) for atoms in candidates]
        cells[counts.index(max(counts))] |= 1 << i
    return tell(cells, told.Even(len(candidates)))


def batch(
    world: World,
    parts: Sequence[tuple[Sequence[int], Windows, Code]],
    *,
    extra: Callable[[int], float] = told.batch_together,
) -> Question:
    """Questions that are answered at once: the product code, each at level + ln m."""

    def question(state: State) -> list[Outcome]:
        h = state.history
        at = told.level(h) + extra(len(parts))
        answers = [
            [
                (samples, false, code.nats(a))
                for a, samples, false in tail_claims(world, atoms, windows, code, at)
            ]
            for atoms, windows, code in parts
        ]
        outcomes = []
        for letter in product(*answers):
            samples = world.everything
            for cell, _, _ in letter:
                samples &= cell
            after = h.tell(min(told.NATS_MAX, sum(nats for _, _, nats in letter)))
            outcomes.append((samples, any(false for _, false, _ in letter), State(after)))
        return outcomes

    return question


def ladder(
    world: World, signs: Sequence[int], code: Callable[[History], Code], level: Level = told.level
) -> Question:
    """worse / not shown / better by McNemar's test; on an atom B wins (+1), loses (−1), ties."""
    wins = [a for a, sign in enumerate(signs) if sign > 0]
    losses = [a for a, sign in enumerate(signs) if sign < 0]
    gain = world.mass(wins) - world.mass(losses)

    def question(state: State) -> list[Outcome]:
        h, outcomes = state.history, []
        letters, at = code(h), level(h)
        for i in range(len(world.samples)):
            won, lost = (world.count(atoms, i) for atoms in (wins, losses))
            letter, false = 1, False
            if told.log_mcnemar(won, lost) <= -(at + letters.nats(2)) + 1e-9:
                letter, false = 2, gain <= 0
            elif told.log_mcnemar(lost, won) <= -(at + letters.nats(0)) + 1e-9:
                letter, false = 0, gain >= 0
            nats = min(told.NATS_MAX, letters.nats(letter))
            after = h.tell(nats, verdict=letter != getattr(letters, "expected", letter))
            outcomes.append((1 << i, false, State(after)))
        return outcomes

    return question


def bits_then_claim(failure: float, bits: int, atoms: int, level: Level = told.level) -> float:
    """Optimum/certified for one row, uniform on so many atoms: bits of her choice, then one claim.

    Each sequence of expected answers and surprises tells a set of atoms of her choice; then a share
    of at most e^(−level) is asked about, and its only row is in it: "M ≥ e^(−level)" is false.
    """
    false = 0
    for sequence in product((False, True), repeat=bits):
        h = History(failure, extends=False)
        for surprise in sequence:
            h = h.tell(h.verdicts.nats(surprise), verdict=surprise)
        false += math.floor(Fraction(math.exp(-level(h))) * _SLACK * atoms)
    return false / atoms / failure


def stratified(classes: int, rows: int, failure: float) -> float:
    """How often one claim is false over β, if the open part has the sealed part's class counts.

    Classes are equally likely. She asks for the share of the classes that are frequent in the open
    part, so that every row of theirs is counted: a split by class tells what no letter told.
    """
    world = World((Fraction(1, classes),) * classes, (rows,))
    false, sizes = 0, range(1, classes)
    ends = {
        (size, count): told.share_low(rows, count, -math.log(failure)) > size / classes
        for size in sizes
        for count in range(rows + 1)
    }
    for weight, (sample,) in zip(world.weights, world.samples, strict=True):
        ordered = sorted(sample, reverse=True)
        false += weight * any(ends[size, sum(ordered[:size])] for size in sizes)
    return float(Fraction(false, world.whole)) / failure


def look_after_a_letter(m: int, slip: Fraction) -> float:
    """Optimum over the bound e^B·β′ of a look beside an exact letter of B = ln m nats.

    One row, uniform on m atoms. A look at an atom errs with probability `slip` if the row is there.
    Alone she chooses an atom, beside the letter, which tells the row's atom, one for each letter.
    """
    each, atoms = slip / m, range(m)
    alone = max(sum(each for x in atoms if x == at) for at in atoms)
    beside = max(sum(each for x in atoms if x == at[x]) for at in product(atoms, repeat=m))
    return float(beside / alone) * math.exp(-told.Even(m).nats(0))


def claim_after_a_look(failure: float, *, priced: bool = True) -> float:
    """Optimum/certified: a noisy bit about six rows, then one claim.

    For every noise the look is a letter of two values; she does not see the noise.
    """
    n, world = 6, World((Fraction(1, 2), Fraction(1, 2)), (6,))
    cells, best_total = world.by_count((0,)), Fraction(0)
    nats = told.Even(2).nats(0) if priced else 0.0
    h = History(failure, extends=False).tell(nats)
    for threshold in range(1, n + 1):
        total = Fraction(0)
        for verdict in (False, True):
            most = Fraction(0)
            for at in range(1, n + 1):  # claims "M ≥ lower end" from counts ≥ at, or the mirror
                for up in (False, True):
                    tail = sum(
                        world.chance(cell)
                        * sum((c + z >= threshold) == verdict for z in (-1, 0, 1))
                        for c, cell in cells.items()
                        if (c >= at if up else n - c >= at)
                    )
                    if small(_tails(n, Fraction(1, 2))[at], told.level(h)):
                        most = max(most, Fraction(tail, 3 * world.whole))
            total += most
        best_total = max(best_total, total)
    return float(best_total / Fraction(failure))
