"""A second opinion on every protocol: what an answer costs and says, from plain data alone.

Plan, question and draw come as a ledger keeps them (`plan.kept()`, `Question.facts`, what was
drawn). Nothing of `holdfast.protocols` is used: coins and bars are the theory's, the rest is
written down again. `disagreement` compares it with what a protocol says; it is empty if they agree.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from holdfast.grids import Grid, grid
from holdfast.theory.bars import mean_bar
from holdfast.theory.coins import refusal_price, steepest_coin, verdict_coin
from holdfast.theory.divergence import RenyiCurve
from holdfast.theory.means import direct_bars, search_profile

Charge = tuple[str, Fraction, int, int]  # part, price, looks, noes
Clause = tuple[float, str, float]  # a share of fresh blocks, a comparison, a value
PART = 2.0**-17 + 2.0**-50  # what a term of a mean may be off by


@dataclass(frozen=True)
class Opinion:
    """What an answer should have cost, and what it should say."""

    charges: list[Charge]
    tails: tuple[float, float]
    value: float | None = None
    ends: tuple[float | None, float | None] = (None, None)
    refused: bool | None = None
    clauses: list[Clause] = field(default_factory=list)
    """What its sentence says of fresh blocks."""
    correction: Opinion | None = None

    @property
    def price(self) -> float:
        """Of the part that was asked: a correction has a price of its own."""
        own = [each for each in self.charges if each[0] == self.charges[-1][0]]
        # Rounds are paid for in refusals, whatever looks cost.
        return float(sum(each[3] if each[0] == "rounds" else each[1] for each in own))


@lru_cache
def prices(kind: str, order: float, *numbers: float) -> tuple[Fraction, Fraction]:
    """Of a look that says No, and of one that says Yes."""
    if kind in ("search", "direct"):
        flat = Fraction(steepest_coin(order, *numbers).price(order))
        return flat, flat
    no = refusal_price(verdict_coin(order, *numbers), order, numbers[1])
    scale = (1 + 1e-15) / (order - 1)
    return Fraction(no * scale), Fraction(numbers[1] * scale)


def prices_of(part: dict[str, Any], order: float) -> tuple[Fraction, Fraction]:
    names = ("no_price", "yes_price", "false_yes", "false_no")
    if part["kind"] in ("search", "direct"):
        names = ("look_price", "floor")  # type: ignore[assignment]
    return prices(part["kind"], order, *(part[name] for name in names))


def opinion(plan: dict[str, Any], facts: dict[str, Any], drawn: Any, units: int) -> Opinion:
    """What should have been charged and said."""
    if plan["kind"] != "joint":
        return _own(plan, facts, drawn, units)
    joint = plan["plan"]
    part = next(each for each in joint["parts"] if each["name"] == facts["part"])
    verb, kind = facts["verb"], part["kind"]
    no, yes = prices_of(part, joint["order"])
    if kind == "verdict":
        return _guess(joint, part, facts, drawn, (no, yes), units)
    if kind == "direct":
        return _direct(joint, part, facts, drawn, no)
    if kind == "weights":
        steps = drawn.get("steps", [])
        paid = [
            (yes * (side != "at most") + no, 1 + (side != "at most"), 1) for _, side, _ in steps
        ]
        charges = [(part["name"], *each) for each in [*paid, (2 * yes, 2, 0)]]
        return _on_grid(charges, (part["tail"],) * 2, facts, drawn, units)
    tails = part["tail_low"], part["tail_high"]
    if part["subblocks"] > 1:
        tails = (part["subblock_tail"],) * 2
    if verb == "verify":
        return _near(part, facts, drawn, no, tails)
    points = _points(facts, part)
    looks = math.ceil(math.log2(points.size)) * (2 if verb == "interval" else 1)
    charges = [(part["name"], looks * no, looks, 0)]
    if verb == "interval":
        low, high = points.cell(drawn["first"])[0], points.cell(drawn["last"])[1]
        middle = (points.point(drawn["first"]) + points.point(drawn["last"])) / 2
        said = [(0.5, "or less", high), (0.5, "or more", low)]
        clauses = [(share, how, end) for share, how, end in said if end is not None]
        return Opinion(charges, (tails[0],) * 2, middle, (low, high), clauses=clauses)
    if verb == "mean":
        return _median(charges, tails, facts, drawn, points, units)
    return _on_grid(charges, tails, facts, drawn, units)


def _own(plan: dict[str, Any], facts: dict[str, Any], drawn: Any, units: int) -> Opinion:
    kind = plan["kind"]
    if kind == "rounds":
        guesses = plan["verification"]
        asked = {**facts, "verb": "verify", "guess": 0.0, "part": "verify"}
        charged = opinion(guesses, asked, drawn, units).charges
        tails = (guesses["plan"]["parts"][0]["tail_low"],) * 2
        return _as_it_came([(kind, *each[1:]) for each in charged], tails, drawn)
    assert kind == "split"
    return _as_it_came([(kind, Fraction(1), 1, 0)], (plan["tail_low"], plan["tail_high"]), drawn)


def _guess(
    joint: dict[str, Any],
    part: dict[str, Any],
    facts: dict[str, Any],
    drawn: Any,
    price: tuple[Fraction, Fraction],
    units: int,
) -> Opinion:
    tails, (no, yes) = (part["tail_low"], part["tail_high"]), price
    if drawn is None:
        return Opinion([], tails)
    sides = 2 if facts.get("claim", "equals") == "equals" else 1
    refused = drawn["yes"] < sides
    worth = drawn["yes"] * yes + (no if refused else 0)
    charges: list[Charge] = [(part["name"], worth, drawn["yes"] + refused, int(refused))]
    correction = None
    if facts["verb"] == "correct":
        search = next(each for each in joint["parts"] if each["protocol"] == "estimate")
        looks = math.ceil(math.log2(_points(facts).size)) if refused else 0
        charge = search["name"], looks * prices_of(search, joint["order"])[0], looks, 0
        charges.insert(0, charge)
        if refused:
            around = search["tail_low"], search["tail_high"]
            correction = _on_grid([charge], around, facts, drawn, units)
    clauses = _verdict(facts, refused, tails)
    return Opinion(charges, tails, refused=refused, clauses=clauses, correction=correction)


def _verdict(facts: dict[str, Any], refused: bool, tails: tuple[float, float]) -> list[Clause]:
    asked = {"equals": ("or less", "or more"), "at most": ("or less",), "at least": ("or more",)}
    sides, guess = asked[facts.get("claim", "equals")], facts["guess"]
    if refused and 1 - tails[1] < 0.01:
        beyond = {"or less": "more than", "or more": "less than"}
        return [(1 - tails[1], beyond[side], guess) for side in sides]
    return [(tails[1] if refused else tails[0], side, guess) for side in sides]


def _near(
    part: dict[str, Any],
    facts: dict[str, Any],
    drawn: Any,
    no: Fraction,
    tails: tuple[float, float],
) -> Opinion:
    if drawn is None:
        return Opinion([], tails)
    low, high = (facts["guess"] + sign * facts.get("tolerance", 0.0) for sign in (-1, 1))
    stands = [(tails[0], "or less", high), (tails[1], "or more", low)]
    beyond = [(tails[0], "less than", low), (tails[1], "more than", high)]
    refused = drawn["refused"]
    charges = [(part["name"], 2 * no, 2, 0)]
    return Opinion(charges, tails, refused=refused, clauses=beyond if refused else stands)


def _points(facts: dict[str, Any], part: dict[str, Any] | None = None) -> Grid:
    if "grid" in facts:
        return Grid.from_json(facts["grid"])
    assert part is not None
    return grid(*facts.get("range", (0, 1)), points=part["grid"])


def _on_grid(
    charges: list[Charge], tails: tuple[float, float], facts: dict[str, Any], drawn: Any, units: int
) -> Opinion:
    points = _points(facts)
    ends: tuple[float | None, float | None] = (None, None)
    below, above = points.cell(drawn["index"])
    if "shape" in facts:
        shape = facts["shape"]
        ends = _bar((below, above), units, tails, shape["low"], shape["high"])
    said = [(tails[0], "or less", above), (tails[1], "more than", below)]
    clauses = [(share, how, edge) for share, how, edge in said if edge is not None]
    return Opinion(charges, tails, points.point(drawn["index"]), ends, clauses=clauses)


def _as_it_came(charges: list[Charge], tails: tuple[float, float], drawn: Any) -> Opinion:
    value = float(drawn["value"])
    clauses = [(tails[0], "or less", value), (tails[1], "or more", value)]
    return Opinion(charges, tails, value, clauses=clauses)


def _bar(
    cell: tuple[Any, Any], units: int, tails: tuple[float, float], low: float, high: float
) -> tuple[float, float]:
    """Bounds on a mean; the range bounds what the grid does not."""
    below, above = mean_bar(*cell, units, *tails, low, high)
    return low if below is None else below, high if above is None else above


def _median(
    charges: list[Charge],
    tails: tuple[float, float],
    facts: dict[str, Any],
    drawn: Any,
    points: Grid,
    units: int,
) -> Opinion:
    if "where" in facts["estimator"]:
        given = {**facts, "grid": points.to_json()}
        return _on_grid(charges, tails, given, drawn, units)
    low, high = facts.get("range", (0.0, 1.0))
    bar = _bar(points.cell(drawn["index"]), units, tails, low, high)
    slack = PART * (high - low)
    ends = max(low, bar[0] - slack), min(high, bar[1] + slack)
    return Opinion(charges, tails, points.point(drawn["index"]), ends)


def _direct(
    joint: dict[str, Any], part: dict[str, Any], facts: dict[str, Any], drawn: Any, no: Fraction
) -> Opinion:
    blocks, order, apart = joint["blocks"], joint["order"], part["apart"]
    count = max(1, blocks // apart)
    targets = [blocks + apart * (2 * j + 1 - count) for j in range(count)]
    coin = steepest_coin(order, part["look_price"], part["floor"])
    profile = search_profile(coin, part["looks"], math.ceil(math.log2(count + 1)))
    curve = RenyiCurve(order, joint["budget"])
    bars = direct_bars(
        *(curve, profile, blocks, targets, part["failure"]),
        exact=part["exact"],
        slope=part["slope"],
    )
    low, high = facts.get("range", (0.0, 1.0))
    ends = bars.low[drawn["cell"]], bars.high[drawn["cell"]]
    below, above = (low + (high - low) * each for each in ends)
    charges = [(part["name"], no, 1, 0)]
    return Opinion(charges, (0.0, 0.0), (below + above) / 2, (below, above))


# The comparison.


def share_in(text: str) -> Fraction:
    """`at least 5 in 100`: the share that it speaks of."""
    found = re.search(r"([\d,]+) in ([\d,]+)$", text)
    assert found, text
    count, of = (int(number.replace(",", "")) for number in found.groups())
    return Fraction(count, of)


def clauses(text: str) -> list[tuple[Fraction, str, float]]:
    """Every `at least K in N (blocks) give(s) V or less`: share, comparison, value."""
    whole = re.compile(
        r"(half|[\d,]+ in [\d,]+)(?: of all)?(?: fresh blocks of [\d,]+ units?)? "
        r"gives? (?:(more than|less than) (\S+)|(\S+) (or less|or more))"
    )
    found = []
    for share, beyond, limit, value, side in whole.findall(text):
        part = Fraction(1, 2) if share == "half" else share_in(share)
        found.append((part, beyond or side, float((limit or value).rstrip(",;"))))
    return found


def disagreement(mine: Opinion, charges: list[Charge], result: Any) -> str:
    """What a protocol charged or said otherwise; empty if it agrees."""
    charged, due = ([x for x in each if any(x[1:4])] for each in (charges, mine.charges))
    if charged != due:  # what was given back is no charge
        return f"charged {charges}, not {mine.charges}"
    if not hasattr(result, "correction"):
        return _said(mine, result)
    if (result.correction is None) != (mine.correction is None):
        return f"corrected by {result.correction}, not {mine.correction}"
    corrected = mine.correction and _said(mine.correction, result.correction)
    return corrected or _said(mine, result.verdict)


def _said(mine: Opinion, result: Any) -> str:
    """Numbers to nine digits, and sentences that say no more than they may."""
    if (result.tail_low, result.tail_high, result.price) != (*mine.tails, mine.price):
        return f"{result.tail_low, result.tail_high, result.price}, not {mine.tails, mine.price}"
    if mine.value is None:
        if result.refused != mine.refused:
            return f"refused {result.refused}, not {mine.refused}"
    else:
        pairs = zip((result.value, result.low, result.high), (mine.value, *mine.ends), strict=True)
        if not all(_near_to(said, due) for said, due in pairs):
            return f"{result.value, result.low, result.high}, not {mine.value, mine.ends}"
    found = clauses(result.promise)
    if len(found) != len(mine.clauses):
        return f"it says {result.promise!r}, not {mine.clauses}"
    for (share, how, limit), (due, wanted, edge) in zip(found, mine.clauses, strict=True):
        fewer = mine.refused and how in ("or less", "or more")  # than so many
        right = share >= Fraction(repr(due)) if fewer else share <= Fraction(repr(due))
        close = math.isclose(share, due, rel_tol=0.03) and _near_to(limit, edge)
        if how != wanted or not right or not close:
            return f"it says {share} {how} {limit}, not {due} {wanted} {edge}"
    return ""


def _near_to(said: float | None, due: float | None) -> bool:
    if said is None or due is None:
        return said is due
    return math.isclose(said, due, rel_tol=1e-9, abs_tol=1e-9)
