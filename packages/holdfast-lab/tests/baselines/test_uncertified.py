"""No baseline can issue a certificate."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_type_hints

import pytest

from holdfast.randomness import SystemEntropy
from holdfast_lab import baselines
from holdfast_lab.baselines.guess_and_check import (
    CheckedGuess,
    Confirmation,
    DescriptionLength,
    GuessAndCheck,
)
from holdfast_lab.baselines.ladder import Ladder, LadderScore
from holdfast_lab.baselines.noise import Uncertified
from holdfast_lab.baselines.noisy_means import NoisyMean, NoisyMeans
from holdfast_lab.baselines.sparse_vector import (
    SparseVector,
    SparseVerdict,
    Thresholdout,
    ThresholdoutAnswer,
)
from holdfast_lab.baselines.subsample_aggregate import Aggregate, subsample_aggregate
from tools.architecture import problems

ANSWERS: list[Uncertified] = [
    Aggregate(0.5, 0.0, 1.0),
    CheckedGuess(0.5, 0.1, "guess", 0),
    Confirmation("yes", None, 1),
    LadderScore(0.5, True),
    NoisyMean(0.5, 1),
    SparseVerdict("yes", 1),
    ThresholdoutAnswer(0.5, "guess", 1),
]


def kind(answer: Uncertified) -> str:
    return type(answer).__name__


def test_these_are_all_the_answers() -> None:
    made = {f"{cls.__module__}.{cls.__name__}" for cls in Uncertified.__subclasses__()}
    listed = {f"{type(answer).__module__}.{kind(answer)}" for answer in ANSWERS}
    assert listed == {name for name in made if name.startswith("holdfast_lab.baselines.")}


def test_even_the_best_entropy_certifies_nothing() -> None:
    entropy, values = SystemEntropy(), [0.0, 1.0] * 20
    assert entropy.certifiable
    answers: list[Uncertified] = [
        SparseVector(1, 1.0, entropy).ask(20, 10),
        NoisyMeans(40, 1, 0.1, entropy).ask(values),
        NoisyMeans(40, 1, 0.1, entropy, noise="laplace").ask(values),
        Thresholdout(40, 0.1, 0.1, 1, entropy).ask(values, 0.5),
        DescriptionLength(40, 1, 1, 4).ask(values, 0.5),
        GuessAndCheck(40, 0.05).ask(values, 0.5, 0.1),
        Ladder(40).ask(values),
        subsample_aggregate(values, 0.0, 1.0, 1.0, entropy),
    ]
    assert {type(answer) for answer in answers} == {type(answer) for answer in ANSWERS}
    assert [answer.certified for answer in answers] == [False] * len(answers)


@pytest.mark.parametrize("answer", ANSWERS, ids=kind)
def test_an_answer_cannot_be_made_certified(answer: Any) -> None:
    for attempt in (
        lambda: setattr(answer, "certified", True),
        lambda: object.__setattr__(answer, "certified", True),
        lambda: dataclasses.replace(answer, certified=True),
        lambda: type(answer)(**{**dataclasses.asdict(answer), "certified": True}),
    ):
        with pytest.raises((AttributeError, TypeError)):
            attempt()
    for same in (answer, copy.copy(answer), pickle.loads(pickle.dumps(answer))):
        assert same.certified is False
    assert not hasattr(answer, "__dict__")


@pytest.mark.parametrize("answer", ANSWERS, ids=kind)
def test_an_answer_is_frozen_and_says_what_it_does_not_promise(answer: Any) -> None:
    field = dataclasses.fields(answer)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(answer, field, None)
    assert any(word in answer.statement for word in ("nothing", "not certified"))


def test_the_type_checker_knows_it_too() -> None:
    getter = vars(Uncertified)["certified"].fget
    assert get_type_hints(getter)["return"] == Literal[False]


def test_a_subclass_that_would_certify_is_refused() -> None:
    with pytest.raises(TypeError, match="certified"):

        class Bold(Uncertified):
            certified = True  # type: ignore[assignment]

    with pytest.raises(TypeError, match="certified"):

        @dataclass(frozen=True)
        class Bolder(Uncertified):
            certified: bool  # type: ignore[assignment]

    with pytest.raises(TypeError, match="certified"):

        class Boldest(NoisyMean):
            @property
            def certified(self) -> Any:
                return True


def test_nothing_that_certifies_can_import_a_baseline() -> None:
    for package in ("mechanisms", "protocols", "holdout"):
        assert problems(f"holdfast.{package}.x", "from holdfast_lab.baselines import Ladder") != []


def test_each_module_says_what_holds_and_what_does_not() -> None:
    folder = Path(baselines.__file__).parent
    mechanisms = {"guess_and_check": 2, "ladder": 1, "noisy_means": 1}
    mechanisms |= {"sparse_vector": 2, "subsample_aggregate": 1}
    for name, count in mechanisms.items():
        text = (folder / f"{name}.py").read_text("utf-8")
        assert text.count("**What does not") == count
        assert text.count("**What holds") + text.count("**What the textbook proves") == count
