"""A second opinion on what is told: levels, codes and claims of a ledger, from its rows alone.

Written from docs/explanation/theory/told.md and the format in docs/explanation/ledger.md, with
nothing of the product: sequences in exact fractions, binomial tails by plain sums in thirty digits.
Of a row the letter and what the open part says are taken as given; all else is made again.
`disagreements` compares; it is empty if they agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath

__all__ = ["Oracle", "differing", "disagreements", "remade", "share_low", "tail"]

TEN_DIGITS = 1e-9
ROWS = "these-rows-fresh-labels"
AT_SHARES = "rule-at-these-class-shares"
Body = Mapping[str, Any]
Told = dict[str, Any]
Letters = Callable[[list[int]], Told]

mp = mpmath.mp.clone()
mp.dps = 30


# Codes.


def sequence(a: Fraction, b: Fraction, surprises: int, expected: int) -> Fraction:
    """The probability of one sequence of answers by a Beta code, factor by factor."""
    found = Fraction(1)
    for i in range(surprises):
        found *= a + i
    for i in range(expected):
        found *= b + i
    for i in range(surprises + expected):
        found /= a + b + i
    return found


def surprise_code(surprises: int, expected: int) -> float:
    """ε: by how much the average of two codes shrinks if the next answer is a surprise."""
    codes = (Fraction(1, 2), Fraction(3, 2)), (Fraction(1, 20), Fraction(1))
    now = sum(sequence(a, b, surprises, expected) for a, b in codes)
    return float(sum(sequence(a, b, surprises + 1, expected) for a, b in codes) / now)


def away(c: int) -> float:
    return 0.5 if c == 0 else 1 / (4 * abs(c) * (abs(c) + 1))


def cauchy_above(x: float) -> float:
    return 0.5 - math.atan(x) / math.pi


def share_left(place: int, kept: float) -> float:
    """Of β: 1 − kept for the first, kept/(j(j−1)) for the j-th."""
    return 1 - kept if place == 1 else kept / (place * (place - 1))


# What rows say.


def tail(n: int, p: Any, c: int) -> Any:
    """P[Bin(n, p) ≥ c], added up."""
    if c <= 0:
        return mp.mpf(1)
    p = mp.mpf(p)
    if p == 0 or c > n:
        return mp.mpf(0)
    if p == 1:
        return mp.mpf(1)
    term = mp.binomial(n, c) * p**c * (1 - p) ** (n - c)
    total = term
    for k in range(c, n):
        term *= (n - k) * p / ((k + 1) * (1 - p))
        total += term
        if k > n * p and term < total * mp.mpf(10) ** -35:
            break
    return total


@lru_cache(maxsize=1_024)
def share_low(n: int, c: int, nats: float, *, fixed: bool) -> float:
    """Clopper and Pearson's lower end; of rows that are not alike Hoeffding's (theorem 4)."""
    if c == 0:
        return 0.0
    wanted = mp.exp(-mp.mpf(nats))
    if fixed and c == 1:
        return float(wanted / n)
    low, high = mp.mpf(0), mp.mpf(c) / n
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(n, middle, c) <= wanted else (low, middle)
    return min(float(low), (c - 1) / n) if fixed else float(low)


def share_high(n: int, c: int, nats: float, *, fixed: bool) -> float:
    return 1 - share_low(n, n - c, nats, fixed=fixed)


def half_width(sd: float, n: int, nats: float, mean: float = 0.5) -> float:
    """What a bet's end is predicted to be away: sd·√(2L/n) where the stake is not at its limit."""
    paid, sd = nats + math.log(1.25), max(1e-9, sd)
    bet = min(0.95 / max(1e-9, mean), math.sqrt(2 * paid / n) / sd)
    return paid / (n * bet) + bet * sd * sd / 2


class Oracle:
    """The history of a holdout, made again row by row."""

    def __init__(self, created: Body) -> None:
        (only,) = created["sets"]
        plan = only["plan"]
        self.failure, self.queries = 1 - plan["confidence"], plan["queries"]
        self.blocks = plan["blocks"]
        self.rows = plan["blocks"] * created["manifest"]["block_units"]
        self.kept_for_later = 0.1 if plan["extends"] else 0.0
        self.told = 0.0
        self.answers = 0
        self.readings: list[str] = []
        self.values, self.verdicts = [0, 0], [0, 0]  # expected answers, surprises
        self.last: dict[str, int] = {}
        self.offsets: dict[str, list[float]] = {}
        self.sides: list[float] = []

    # Levels.

    def reading(self, question: Body) -> str:
        about = question["estimator"]
        return ROWS + about.get("target", "") if about.get("reading") == ROWS else ""

    def level(self, question: Body | None = None) -> float:
        """ln 1/β of its reading, and all nats told before."""
        place, name = 1, "" if question is None else self.reading(question)
        if question is not None:
            known = name in self.readings
            place = self.readings.index(name) + 1 if known else len(self.readings) + 1
        beta = self.failure * share_left(1, self.kept_for_later) * share_left(place, 0.05)
        return math.log(1 / beta) + self.told

    # What is public.

    def ends(self, question: Body) -> tuple[float, float]:
        low, high = question.get("range", (0.0, 1.0))
        return (low - high, high - low) if self.paired(question) else (low, high)

    def paired(self, question: Body) -> bool:
        return question["verb"] in ("compare", "gate") and question.get("candidates") == 2

    def is_share(self, question: Body) -> bool:
        plain = tuple(question.get("range", (0.0, 1.0))) == (0.0, 1.0)
        return bool(question.get("share")) and not self.paired(question) and plain

    def sd(self, question: Body, known: Body) -> float:
        low, high = self.ends(question)
        if "sd" in known and not self.is_share(question):
            return float(known["sd"])
        if self.paired(question):
            return (high - low) / 4
        n = max(1.0, known.get("rows", self.rows))
        share = (known["guess"] - low) / (high - low) if "guess" in known else 0.5
        share = (min(1.0, max(0.0, share)) * n + 1) / (n + 2)
        return (high - low) * math.sqrt(share * (1 - share))

    def expects(self, question: Body, given: Body) -> Told:
        """What was expected, from what the open part says."""
        known = {name: given[name] for name in ("open", "sd", "rows", "differ") if name in given}
        low, high = self.ends(question)
        if question["verb"] in ("ask", "interval", "verify"):
            known |= {"guess": given["guess"]} if "guess" in given else {}
            return known | ({"guess": question["guess"]} if "guess" in question else {})
        error = question.get("error")
        if "guess" in question:
            known["guess"] = question["guess"]
        elif "open" in given:
            error, offset, many = given["error"], 0.0, 1
            if question["verb"] == "score" and question["metric"] in self.offsets:
                seen = self.offsets[question["metric"]]
                offset, many = math.fsum(seen) / len(seen), len(seen)
            by_chance = 12 * error * error / many
            carried = offset - by_chance / offset if offset * offset > by_chance else 0.0
            known["guess"] = min(high, max(low, given["open"] + carried))
        if "guess" not in known:
            return known
        if error is None:
            n = max(1, round(known.get("rows", self.rows)))
            error = self.sd(question, known) * math.sqrt(2 / n)
        return known | {"error": error}

    # Rules: what a letter costs and claims.

    def value(self, question: Body, known: Body, at: float) -> tuple[Letters, list[int]]:
        """The rule for a value, and its first letter."""
        low, high = self.ends(question)
        span, rows = high - low, self.rows
        whole, share = "where" not in question["estimator"], self.is_share(question)
        n = rows if whole else max(1.0, known.get("rows", rows))
        sd = max(1e-6, self.sd(question, known) / span)
        cell, precise = sd / math.sqrt(n), bool(question.get("precise"))
        if "guess" not in known:
            if share and whole:
                width = max(1, round(rows * cell / 2))
                m = math.ceil((rows + 1) / width)
                return self.windows(question, at, 0, width - 1, width, m), [m // 2]
            m = math.ceil(2 / cell)
            return self.lattice(at, 0.0, cell / 2, sd, n, (low, high), m), [m // 2, 0]
        guess = min(1.0, max(0.0, (known["guess"] - low) / span))
        error = min(1.0, known["error"] / span)
        if precise:
            error = max(error, cell / 2)  # no guess is better, whatever its author says
            if not (share and whole):
                made = self.lattice(at, guess, cell / 2, sd, n, (low, high), error)
                return made, [0, 0]
            width = max(1, round(rows * cell / 2))
            first = max(0, round(rows * guess) - (width - 1) // 2)
            scale = error * rows / width
            return self.windows(question, at, first, first + width - 1, width, scale), [0]
        k = max(20, self.queries, sum(self.values) + 1)
        tau = error * math.sqrt(2 * math.log(k))
        epsilon = surprise_code(self.values[1], self.values[0])
        if share and whole:
            middle = round(rows * guess)
            first = max(0, min(middle, math.ceil(rows * (guess - tau))))
            last = min(rows, max(middle, math.floor(rows * (guess + tau))))
            width = max(1, round(rows * 1.5 * cell))
            return self.windows(question, at, first, last, width, (epsilon, known["guess"])), [0]
        paid, few = at + math.log(1 / (1 - epsilon)), max(1, round(n))
        half = tau + max(half_width(sd, few, paid), 1.15 * (paid + 1) / few)

        def shifted(letter: list[int]) -> Told:
            c, j = letter
            q = 1 - epsilon if c == j == 0 else epsilon * away(c) / 2 ** (j + 1) / 0.75
            centre = guess + c * 1.5 * cell
            reach = half * math.sqrt(2) ** j
            ends = [low + span * min(1.0, max(0.0, x)) for x in (centre - reach, centre + reach)]
            middle = low + span * min(1.0, max(0.0, centre))
            said = {"low": ends[0], "high": ends[1], "surprise": letter != [0, 0]}
            return said | {"nats": -math.log(q), "value": min(ends[1], max(ends[0], middle))}

        return shifted, [0, 0]

    def windows(
        self, question: Body, at: float, first: int, last: int, width: int, code: Any
    ) -> Letters:
        """Windows of counts by the tail rule: m alike, around a guess, or one that is expected."""
        n, fixed = self.rows, question["estimator"].get("reading") in (ROWS, AT_SHARES)

        def above(a: int) -> float:
            """q(letters ≥ a)."""
            if isinstance(code, int):
                return (code - a) / code
            if isinstance(code, float):
                return cauchy_above((a - 0.5) / code)
            return float(code[0] / 2 / a if a > 0 else 1 - code[0] / 2 / (1 - a))

        def told(letter: list[int]) -> Told:
            (a,) = letter
            start, stop = first, last
            if a > 0:
                start, stop = last + 1 + (a - 1) * width, last + a * width
            elif a < 0:
                start, stop = first + a * width, first + (a + 1) * width - 1
            start, stop = max(0, start), min(n, stop)
            up, down = above(a), 1 - above(a + 1)
            low = share_low(n, start, at - math.log(up), fixed=fixed)
            high = share_high(n, stop, at - math.log(down), fixed=fixed)
            found: Told = {"low": low, "high": high, "nats": -math.log(up - above(a + 1))}
            value = (start + stop) / (2 * n)
            if isinstance(code, tuple):
                found["surprise"] = a != 0
                value = value if a else code[1]
            return found | {"value": min(high, max(low, value)), "counts": (start, stop)}

        return told

    def lattice(
        self,
        at: float,
        guess: float,
        cell: float,
        sd: float,
        n: float,
        ends: tuple[float, float],
        code: float,
    ) -> Letters:
        """Both ends on points `cell` apart: m places alike, or around a guess of this error."""
        apart = math.ceil(2 * half_width(sd, max(1, round(n)), at + 0.6) / cell)
        start = 0.0 if isinstance(code, int) else guess - apart * cell / 2

        def told(letter: list[int]) -> Told:
            a, e = letter
            q = 1 / code
            if isinstance(code, float):
                q = cauchy_above((a - 0.5) * cell / code) - cauchy_above((a + 0.5) * cell / code)
            points = start + a * cell, start + (a + e + apart) * cell
            low, high = (
                ends[0] + (ends[1] - ends[0]) * min(1.0, max(0.0, point)) for point in points
            )
            nats = -math.log(q * away(e))
            return {"low": low, "high": high, "value": (low + high) / 2, "nats": nats}

        return told

    def on_grid(self, question: Body, known: Body, at: float) -> Letters:
        """Both ends on a linear grid, for the median over blocks."""
        kept = question["grid"]
        size = round((kept["high"] - kept["low"]) / kept["step"]) + 1
        signs = math.sqrt((at + 2) / (2 * self.blocks))
        first, apart = 0, min(size - 1, max(1, round(size * min(0.5, signs))))
        scale: float | None = None
        if "guess" in known and "sd" in known:
            reach, step = 2.5 * known["sd"] * min(1.0, signs), kept["step"]
            apart = min(size - 1, max(1, math.ceil(2 * reach / step)))
            first = math.ceil((known["guess"] - reach - kept["low"]) / step)
            first = min(size - 1, max(0, first))
            scale = max(step / 8, 1.25 * known["sd"] * math.sqrt(2 / self.blocks)) / step

        def told(letter: list[int]) -> Told:
            a, e = letter
            q = 1 / size
            if scale is not None:
                q = cauchy_above((a - 0.5) / scale) - cauchy_above((a + 0.5) / scale)
            places = first + a, first + a + e + apart
            middle = min(size - 1, max(0, first + (a + a + e + apart) // 2))
            points = [kept["low"] + kept["step"] * each for each in (*places, middle)]
            found = {"nats": -math.log(q * away(e)), "value": points[2]}
            found |= {"low": points[0]} if places[0] > 0 else {}
            found |= {"high": points[1]} if places[1] < size - 1 else {}
            low, high = found.get("low", -math.inf), found.get("high", math.inf)
            return found | {"value": max(low, min(high, points[2]))}

        return told

    def verdict(self, question: Body, known: Body, at: float) -> Letters:
        """Worse, not shown, better; fail, unclear, pass: one is expected."""
        verb, near = question["verb"], question.get("tolerance", 0.0)
        epsilon = surprise_code(self.verdicts[1], self.verdicts[0])
        if verb == "verify":
            ends = (question["guess"] - near, question["guess"] + near)
            known, last = {}, 1
        else:
            v = question.get("margin", question.get("threshold"))
            gate = (v, v - near) if question.get("claim") == "at least" else (v + near, v)
            ends, last = ((-v, v) if verb == "compare" else gate), self.last.get(verb, 1)
        expected, upwards = last, True
        if "guess" in known:
            about = {**known, "guess": v} if self.is_share(question) else known
            paid = at - math.log(1 - epsilon)
            reach = self.sd(question, about) * math.sqrt(2 * paid / self.rows)
            upwards = 2 * known["guess"] >= sum(ends)
            expected = 2 if known["guess"] - ends[1] >= reach else 1
            expected = 0 if expected == 1 and ends[0] - known["guess"] >= reach else expected
        near_by = 1 if expected != 1 else 2 if upwards else 0

        def told(letter: list[int]) -> Told:
            (a,) = letter
            q = 1 - epsilon if a == expected else epsilon * (7 if a == near_by else 1) / 8
            found: Told = {"nats": -math.log(q), "surprise": a != expected}
            found |= {"low": ends[1]} if a == 2 else {}
            return found | ({"high": ends[0]} if a == 0 else {})

        return told

    # Rows of the ledger.

    def rule(self, question: Body, known: Body, at: float) -> Letters:
        verb = question["verb"]
        if verb == "best":
            return lambda letter: {"nats": math.log(question["candidates"])}
        if verb in ("gate", "verify") or "margin" in question:
            return self.verdict(question, known, at)
        if verb in ("ask", "interval"):
            return self.on_grid(question, known, at)
        return self.value(question, known, at)[0]

    def one(self, question: Body, drawn: Body, at: float) -> Told:
        known = self.expects(question, drawn["expects"])
        found = self.rule(question, known, at)(drawn["letter"])
        found.pop("counts", None)
        return found | {"letter": drawn["letter"], "level": at, "expects": known}

    def batch(self, question: Body, drawn: Body) -> Told:
        """In order, each paying for those before; or at once, each paying ln m."""
        at, m = self.level(question), len(drawn["batch"])
        guesses = question.get("guesses", [None] * m)
        each = [question if g is None else {**question, "guess": g} for g in guesses]
        nats = []
        for one, given in zip(each, drawn["batch"], strict=True):
            rule, first = self.value(one, self.expects(one, given["expects"]), at)
            nats.append(rule(first)["nats"])
        in_order, made = sum(nats[:-1]) <= math.log(m), list[Told]()
        for one, given in zip(each, drawn["batch"], strict=True):
            more = sum(before["nats"] for before in made) if in_order else math.log(m)
            made.append(self.one(one, given, at + more))
        paid = sum(one["nats"] for one in made)
        return {"batch": made, "letter": [], "level": at, "nats": paid}

    def read(self, question: Body, drawn: Body) -> Told:
        """What a row should have drawn; and on to the next one."""
        verb = question["verb"]
        if verb == "scores":
            made = self.batch(question, drawn)
        else:
            made = self.one(question, drawn, self.level(None if verb == "best" else question))
        many, above = len(self.sides), sum(each > 0 for each in self.sides)
        most = max(above, many - above)
        if many >= 3 and most >= 3 * many // 4:
            made["leaning"] = -sum(self.sides) / many
        self.told += made["nats"]
        self.answers += 1
        if verb != "best" and self.reading(question) not in self.readings:
            self.readings.append(self.reading(question))
        verdict = verb in ("gate", "verify") or "margin" in question
        if "surprise" in made:
            counts = self.verdicts if verdict else self.values
            counts[made["surprise"]] += 1
        if verdict:
            self.last[verb] = made["letter"][0]
        self.learn(question, made)
        return made | {"so_far": self.told, "answers": self.answers}

    def learn(self, question: Body, made: Told) -> None:
        """What a score says of the next guess from the open part."""
        known = made.get("expects", {})
        if question["verb"] != "score" or made.get("surprise") is False:
            return
        if "open" in known:
            self.offsets.setdefault(question["metric"], []).append(made["value"] - known["open"])
        if made.get("surprise") and ("guess" in question or "open" in known):
            self.sides.append(made["value"] - question.get("guess", known.get("open")))


def differing(one: Any, other: Any, where: str = "") -> Iterable[str]:
    """Where two pieces of plain data are not the same to nine digits."""
    if isinstance(one, Mapping) and isinstance(other, Mapping) and {*one} == {*other}:
        for name in one:
            yield from differing(one[name], other[name], f"{where} {name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, pair in enumerate(zip(one, other, strict=True)):
            yield from differing(*pair, f"{where} {place}")
    elif isinstance(one, float) and isinstance(other, float | int):
        if not math.isclose(one, other, rel_tol=TEN_DIGITS, abs_tol=TEN_DIGITS):
            yield f"{where}: {one!r}, and follows as {other!r}"
    elif one != other:
        yield f"{where}: {one!r}, and follows as {other!r}"


def remade(created: Body, recorded: Sequence[Body]) -> list[Told]:
    """What every row of a told holdout should have drawn."""
    oracle = Oracle(created)
    return [oracle.read(body["question"], body["drawn"]) for body in recorded]


def disagreements(created: Body, recorded: Sequence[Body]) -> list[str]:
    """What the rows of a told holdout say and this does not."""
    found = list[str]()
    for body, made in zip(recorded, remade(created, recorded), strict=True):
        found += differing(body["drawn"], made, f"answer {made['answers']}:")
    return found
