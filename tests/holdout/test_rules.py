"""The rules that carry the promise, one by one, for every kind of plan."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.engines.source import Engines
from holdfast.errors import Exhausted, HoldfastError, InvalidInput
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.tokens import Asker
from holdfast.protocols.shapes import KnownSd
from tests.holdout import plans
from tests.holdout.tables import Still, blocks_from, broken, refusing, sealed, sources
from tests.mechanisms import laws

POINTS = hf.grid(0, 1, points=8)

Ask = Callable[[Holdout], Any]

ASKS: dict[str, tuple[Callable[[], Any], Ask]] = {
    "estimate": (plans.mixed, lambda h: h.ask("avg(x)", grid=POINTS)),
    "interval": (plans.mixed, lambda h: h.interval("avg(x)", grid=hf.grid(0, 1, points=4))),
    "verify": (plans.mixed, lambda h: h.verify("avg(x)", 0.5)),
    "correct": (plans.mixed, lambda h: h.correct("avg(x)", 0.9, grid=POINTS)),
    "near": (plans.estimates, lambda h: h.verify("avg(x)", 0.5, tolerance=0.1)),
    "median mean": (plans.medians, lambda h: h.mean("y = 1")),
    "direct mean": (plans.direct, lambda h: h.mean("y = 1")),
    "simple": (plans.simple, lambda h: h.ask("avg(x)", grid=POINTS)),
    "amplified": (plans.amplified, lambda h: h.ask("avg(x)", grid=POINTS)),
    "rounds": (plans.rounds, lambda h: h.ask("avg(x)")),
    "split": (plans.split, lambda h: h.ask("avg(x)")),
}
EVERY = pytest.mark.parametrize("kind", ASKS)


@pytest.fixture
def holdout(kind: str, tmp_path: Path) -> Iterator[Holdout]:
    with sealed(tmp_path / "a.holdfast", ASKS[kind][0]()) as made:
        yield made


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[Holdout]:
    with sealed(tmp_path / "a.holdfast", plans.mixed()) as made:
        yield made


def rows(holdout: Holdout) -> list[str]:
    return [row.kind for row in holdout.journal.ledger.rows()]


def spent(holdout: Holdout) -> float:
    return sum(each.spent for each in holdout.status().sets)


def worst(kind: str, holdout: Holdout) -> float:
    """What the question of this kind can cost at most, in its set's currency."""
    (one,) = holdout.spec.sets
    if kind in ("rounds", "split"):
        return 1.0  # round or question
    plan: Any = one.plan
    prices = {part.name: part.prices(plan.order) for part in plan.parts}
    name = one.plan.names[0]
    search = {"interval": 4, "near": 2, "median mean": 4, "direct mean": 1}.get(kind, 3)
    if kind == "verify":
        return float(prices["verify"].yes + prices["verify"].no)
    if kind == "correct":
        both = prices["verify"].yes + prices["verify"].no
        return float(both + 3 * prices["estimate"].no)
    return float(search * prices["interval" if kind == "interval" else name].no)


# 1. One door: an answer has its entry before it is shown.


@EVERY
def test_every_answer_has_its_entry(kind: str, holdout: Holdout, still: None) -> None:
    shown = ASKS[kind][1](holdout)
    last = holdout.journal.ledger.rows()[-1]
    assert last.kind == "recorded"
    receipt = getattr(shown, "receipt", None) or shown.verdict.receipt
    assert receipt == str(holdout.receipt)
    assert holdout.status().answers == 1
    assert check_holdout(holdout.path, receipt).passed


# 2. Charge first.


@EVERY
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_draw_that_breaks_leaves_the_worst_case_charged(
    kind: str, holdout: Holdout, error: type[BaseException]
) -> None:
    with sources(broken(error("stop"))), pytest.raises(error):
        ASKS[kind][1](holdout)
    assert rows(holdout)[1:] in (["reserved"], ["reserved", "reserved"])
    assert spent(holdout) == pytest.approx(worst(kind, holdout), rel=1e-9)
    assert holdout.status().answers == 0
    with sources():  # and it can be asked again, at its price
        ASKS[kind][1](holdout)
    assert spent(holdout) > worst(kind, holdout) * 1.01 or kind == "rounds"
    assert check_holdout(holdout.path).passed
    with Holdout.open(holdout.path) as again:
        assert again.status().to_dict() == holdout.status().to_dict()


@EVERY
def test_an_entropy_that_fails_leaves_the_worst_case_charged(
    kind: str, holdout: Holdout, still: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.holdout.answering.chosen_entropy", lambda *_: laws.Script([]))
    if kind == "split":
        ASKS[kind][1](holdout)  # no coin is flipped
        return
    with pytest.raises(laws.Exhausted):
        ASKS[kind][1](holdout)
    assert "recorded" not in rows(holdout)
    assert spent(holdout) == pytest.approx(worst(kind, holdout), rel=1e-9)


def test_what_cannot_be_recorded_is_not_shown(
    mixed: Holdout, still: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.holdout.answering._Pending.record", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mixed.ask("avg(x)", grid=POINTS)
    assert rows(mixed) == ["created", "reserved"]
    (one,) = mixed.status().sets
    assert one.unsettled == 1
    assert mixed.ask("avg(x)", grid=POINTS).cached is False


PAID: dict[str, tuple[Callable[[], Any], Ask]] = {
    **ASKS,
    "mean": (plans.mixed, lambda h: h.mean("c = 5")),
    "filtered mean": (plans.medians, lambda h: h.mean("y = 1", where="g = 'a'")),
}


@pytest.mark.parametrize("case", PAID)
def test_the_price_is_paid_before_the_data_are_touched(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of an answer is hidden from the moment on when its price is paid; before it,
    nothing that takes time may depend on the data.
    """
    make, ask = PAID[case]
    touched: list[str] = []
    paced: list[str] = []
    pace: Any = SimpleNamespace(
        admit=lambda _: paced.append("admit"),
        begin=lambda: paced.append("begin"),
        wait=lambda: paced.append("wait"),
    )

    def watched(name: str) -> Callable[..., Any]:
        original = getattr(Engines, name)

        def touch(self: Engines, *words: Any, **more: Any) -> Any:
            touched.append(opened.journal.ledger.rows()[-1].kind)
            return original(self, *words, **more)

        return touch

    with sealed(tmp_path / "study", make()) as opened:
        for name in ("values", "sums"):
            monkeypatch.setattr(Engines, name, watched(name))
        try:
            ask(opened.on_behalf(Asker("a"), pace))
        except HoldfastError as error:  # no case may pass by being refused
            pytest.fail(str(error))
    assert touched
    assert set(touched) == {"reserved"}
    assert paced[0] == "admit"  # before anything is charged
    steps = [paced[k : k + 2] for k in range(1, len(paced), 2)]
    assert steps
    assert all(step == ["begin", "wait"] for step in steps)


# 3. The same question is free, and a retried request never redraws.


@EVERY
def test_the_same_question_is_free_and_the_same_for_ever(
    kind: str, holdout: Holdout, still: None
) -> None:
    ask = ASKS[kind][1]
    first = ask(holdout)
    before = holdout.receipt
    with sources(broken(AssertionError("drawn again"))):
        again = ask(holdout)
        with Holdout.open(holdout.path) as reopened:
            later = ask(reopened)
    assert holdout.receipt == before  # nothing was written
    assert plain(again) == plain(later) == plain(first)
    cached = again if hasattr(again, "cached") else again.verdict
    assert cached.cached
    assert later == again


def plain(result: Any) -> Any:
    """A result without what is of today: whether it was asked before, and what is left."""
    data = result.to_dict()
    for each in (data, data.get("verdict"), data.get("correction")):
        if isinstance(each, dict):
            each.pop("cached", None)
            each.pop("budget_left", None)
    return repr(data)  # bit for bit


def test_another_process_gets_the_same_bits(mixed: Holdout, still: None) -> None:
    first = mixed.ask("avg(x)", grid=POINTS)
    code = (
        "import sys, holdfast as hf\n"
        "with hf.Holdout.open(sys.argv[1]) as holdout:\n"
        "    answer = holdout.ask('AVG( x )', grid=hf.grid(0, 1, points=8))\n"
        "    print(answer.value.hex(), answer.cached, answer.receipt)\n"
    )
    command = [sys.executable, "-c", code, str(mixed.path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == [first.value.hex(), "True", first.receipt]


def test_spellings_of_one_question_and_another(mixed: Holdout, still: None) -> None:
    all_rows = mixed.ask("avg(x)", grid=POINTS)
    some = mixed.ask("avg(x)", where="g = 'a'", grid=POINTS)
    for text in ("AVG( X )", "mean(x)", "( avg(x) )", 'avg("x")'):
        assert mixed.ask(text, grid=POINTS).receipt == all_rows.receipt
    for where in ("(g) = 'a'", "g  =  'a'"):
        assert mixed.ask("avg(x)", where=where, grid=POINTS).receipt == some.receipt
    others: list[dict[str, Any]] = [{"where": "g = 'b'"}, {"grid": hf.grid(0, 2, points=8)}]
    for text, more in (("avg(c)", {}), *(("avg(x)", each) for each in others)):
        before = spent(mixed)
        assert not mixed.ask(text, **{"grid": POINTS, **more}).cached
        assert spent(mixed) > before
    assert not mixed.ask("avg(x)", grid=POINTS, shape=KnownSd(1)).cached


def test_one_number_has_one_spelling(mixed: Holdout, still: None) -> None:
    first = mixed.verify("avg(x)", 1)
    for guess in (1.0, np.int64(1), np.float32(1), Fraction(1)):
        assert mixed.verify("avg(x)", guess).receipt == first.receipt  # type: ignore[arg-type]
    zero = mixed.verify("avg(x)", 0)
    assert mixed.verify("avg(x)", -0.0).receipt == zero.receipt
    assert mixed.verify("avg(x)", 0, claim="at least").receipt != zero.receipt


def test_the_same_code_is_the_same_question(tmp_path: Path, still: None, admitted: None) -> None:
    def estimator(scale: float, offset: float = 0.0) -> Callable[[Any], float]:
        def inner(frame: Any, power: float = offset) -> float:
            return float(scale * frame.x.mean() + power)

        return inner

    with sealed(tmp_path / "a", plans.mixed()) as holdout:

        def ask(function: Any) -> bool:
            return holdout.ask(function, grid=POINTS, columns=["x"]).cached

        assert not ask(estimator(1.0))
        assert ask(estimator(1.0))
        assert not ask(estimator(2.0))  # another closure
        assert not ask(estimator(1.0, 1.0))  # another default
        assert not ask(lambda frame: float(frame.x.mean() + 1))
        assert not ask(lambda frame: float(frame.x.mean() + 2))  # another constant
        assert ask(lambda frame: float(frame.x.mean() + 2))


def test_what_cannot_be_hashed_is_always_new(tmp_path: Path, still: None, admitted: None) -> None:
    by_hand: Any = ModuleType("by_hand")  # no version, no file: nobody can tell what is in it
    by_hand.offset = 0.0

    def odd(frame: Any) -> float:
        return float(frame.x.mean() + by_hand.offset)

    with sealed(tmp_path / "a", plans.mixed()) as holdout:
        receipts = {holdout.ask(odd, grid=POINTS, columns=["x"]).receipt for _ in range(3)}
        assert len(receipts) == 3
        # Nor can a request key say that it is the same one.
        with pytest.raises(InvalidInput, match="request"):
            holdout.ask(odd, grid=POINTS, columns=["x"], request="r")


def _another(holdout: Holdout) -> Any:
    return holdout.ask("avg(c)", grid=POINTS)


OTHERS: dict[str, Ask] = {
    "near": lambda h: h.verify("avg(c)", 0.5, tolerance=0.1),
    "median mean": lambda h: h.mean("x > 3"),
    "direct mean": lambda h: h.mean("x > 3"),
    "interval": lambda h: h.ask("avg(x)", grid=POINTS),  # another verb is another question
}


@EVERY
def test_a_request_key_names_one_question(kind: str, holdout: Holdout, still: None) -> None:
    ask, other = ASKS[kind][1], OTHERS.get(kind, _another)
    with pytest.MonkeyPatch.context() as patch:
        for verb in ("ask", "verify", "correct", "mean", "interval"):
            patch.setattr(holdout, verb, partial(getattr(holdout, verb), request="key 1"))
        first = ask(holdout)
        with refusing(holdout, "named no other question"):
            assert plain(ask(holdout)) == plain(first)
            other(holdout)
    assert other(holdout)  # without the key it is asked


def test_a_request_key_is_a_short_text(mixed: Holdout, still: None) -> None:
    wrong: list[Any] = ["", "a\nb", "x" * 201, 5]
    for key in wrong:
        with refusing(mixed, "request"):
            mixed.ask("avg(x)", grid=POINTS, request=key)


# What cannot be paid is refused, and nothing is written.


def test_what_cannot_be_paid_is_refused_and_not_written(tmp_path: Path, still: None) -> None:
    with sealed(tmp_path / "a", plans.estimates()) as holdout:
        for number in range(6):
            holdout.ask(f"avg(x) + {number}", grid=POINTS)
        for _ in range(2):
            with refusing(holdout, "budget for estimate", Exhausted):
                verdict = holdout.verify("avg(x)", 0.5, tolerance=0.1)
                assert (verdict.verdict, verdict.price) == ("exhausted", 0)
                holdout.ask("avg(x)", grid=POINTS)
            with refusing(holdout, error=Exhausted):
                holdout.mean("y = 1")
        assert holdout.ask("avg(x) + 3", grid=POINTS).cached  # what was asked stays free
        assert check_holdout(holdout.path).passed
        (one,) = holdout.status().sets
        assert one.parts[0].questions_left == 0
        assert one.used == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("plan", "questions", "ask"),
    [
        (plans.split, 3, lambda h, i: h.ask(f"avg(x) + {i}")),
        (plans.simple, 5, lambda h, i: h.ask(f"avg(x) + {i}", grid=POINTS)),
        (plans.amplified, 4, lambda h, i: h.ask(f"avg(x) + {i}", grid=POINTS)),
        (plans.medians, 4, lambda h, i: h.mean(f"x > {i}")),
        (plans.direct, 5, lambda h, i: h.mean(f"x > {i}")),
    ],
)
def test_exactly_the_planned_questions(
    tmp_path: Path, still: None, plan: Any, questions: int, ask: Any
) -> None:
    with sealed(tmp_path / "a", plan()) as holdout:
        for number in range(questions):
            left = holdout.status().sets[0].parts[0].questions_left
            assert left == questions - number
            ask(holdout, number)
        with refusing(holdout, error=Exhausted):
            ask(holdout, questions)
        assert holdout.status().sets[0].parts[0].questions_left == 0
        assert check_holdout(holdout.path).passed


def test_refusals_run_out_and_exhausted_is_free(tmp_path: Path, still: None) -> None:
    with sealed(tmp_path / "a", plans.mixed()) as holdout:
        for number in range(3):
            refused = holdout.verify(f"avg(x) + {number}", 9, protocol="verify")
            assert (refused.verdict, refused.refusals_left) == ("not compatible", 2 - number)
        before, said = holdout.receipt, spent(holdout)
        assert holdout.verify("avg(c)", 0.5, protocol="verify").verdict == "exhausted"
        assert holdout.receipt == before
        # A correction by looks finds out at its second step: what the first held is given back.
        corrected = holdout.correct("avg(c)", 0.5, grid=POINTS, protocol="verify")
        assert (corrected.verdict.verdict, corrected.value) == ("exhausted", None)
        assert spent(holdout) == said
        assert holdout.status().answers == 3
        assert check_holdout(holdout.path).passed
        assert not holdout.correct("avg(c)", 0.5, grid=POINTS, protocol="verify").verdict.cached
        key = holdout.correct("avg(c)", 0.5, grid=POINTS, protocol="verify", request="r")
        assert key == holdout.correct("avg(c)", 0.5, grid=POINTS, protocol="verify", request="r")


def test_a_yes_gives_its_refusal_back(tmp_path: Path, still: None) -> None:
    with sealed(tmp_path / "a", plans.mixed()) as holdout:
        for number in range(5):
            told = holdout.verify(f"avg(x) + {number}", 0.5, protocol="verify")
            assert told.verdict == "compatible"
        (main,) = holdout.status().sets
        assert {part.name: part.refusals_left for part in main.parts}["verify"] == 3
        prices = plans.mixed().part("verify").prices(plans.mixed().order)
        assert main.spent == pytest.approx(10 * prices.yes, rel=1e-9)


def test_rounds_throw_a_set_away_when_it_is_refused(tmp_path: Path) -> None:
    verification, last = plans.rounds().verification.blocks, plans.rounds().blocks

    def lies(start: int, stop: int) -> Still:
        # The first estimation sets say something else than the verification set.
        offset = 0.0 if start < verification or stop == last else 9.0
        return Still(stop - start, lambda blocks: np.full(blocks, offset))

    with blocks_from(lies), sealed(tmp_path / "a", plans.rounds()) as holdout:
        answer = holdout.ask("avg(x)")
        assert (answer.value, answer.price) == (0.0, 1.0)  # by the second set
        assert holdout.ask("avg(c)").price == 0
        (one,) = holdout.status().sets
        assert (one.spent, one.budget, one.parts[0].questions_left) == (1, 2, 18)
        assert check_holdout(holdout.path).passed
        with Holdout.open(holdout.path) as later:
            assert later.ask("min(x)").value == 0.0  # the first set stays away after reopening


# 4. Nothing that depends on the data escapes: see test_escapes.
# 5. Entropy comes from the operating system.


def test_a_seed_certifies_nothing(tmp_path: Path, still: None) -> None:
    both = [plans.mixed(), plans.split()]
    with sealed(tmp_path / "a", both, seed=7) as holdout:
        answers = [
            holdout.ask("avg(x)", grid=POINTS),
            holdout.verify("avg(x)", 0.5),
            holdout.ask("avg(x)", protocol="split"),
            holdout.correct("avg(x)", 9, grid=POINTS).verdict,
            holdout.correct("avg(x)", 9, grid=POINTS).correction,
        ]
        for answer in answers:
            assert answer is not None
            assert answer.certified is False
            assert "NOT certified" in answer._repr_html_()
        assert holdout.status().certified is False
        assert "nothing is certified" in str(holdout.status())
        assert check_holdout(holdout.path).passed
    with sealed(tmp_path / "b", both) as holdout:
        assert holdout.ask("avg(x)", grid=POINTS).certified
        assert holdout.status().certified


# 6. Every bound rounds toward safety: see test_sets.
# 7. A promise names its assumptions.


def test_a_python_estimator_names_what_it_assumes(tmp_path: Path, still: None) -> None:
    with sealed(tmp_path / "a", plans.mixed()) as holdout:
        one = holdout.ask(lambda frame: float(frame.x.mean()), grid=POINTS, columns=["x"])
        assert "assuming that a Python estimator keeps nothing" in one.promise
        many = holdout.ask(
            lambda arrays: arrays["x"].mean(axis=1), grid=POINTS, columns=["x"], vectorised=True
        )
        assert "assuming that a vectorised estimator treats each block by itself" in many.promise
        term = holdout.mean(lambda frame: frame.y > 0, columns=["y"], range=(0, 1))
        assert "assuming that a Python estimator keeps nothing" in term.promise
        assert "assuming" not in holdout.ask("avg(x)", grid=POINTS).promise


# 8. One budget for all: the same account whoever opens it.


def test_two_who_opened_it_share_one_budget(tmp_path: Path, still: None) -> None:
    with sealed(tmp_path / "a", plans.estimates()) as one, Holdout.open(one.path) as other:
        for number in range(6):
            (one, other)[number % 2].ask(f"avg(x) + {number}", grid=POINTS)
        for each in (one, other):
            with pytest.raises(Exhausted):
                each.ask("avg(x)", grid=POINTS)
        assert one.status().to_dict() == other.status().to_dict()
