"""Tests for src/holdfast/holdout/{access,tokens,answering,state}.py: tokens, quotas, prices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import Exhausted, Infeasible, InvalidInput
from holdfast.grids import grid
from holdfast.holdout.check import check_holdout
from holdfast.holdout.holdout import Holdout
from holdfast.holdout.state import can_be_asked
from holdfast.holdout.tokens import Asker
from tests.holdout.plans import crowd, mixed, split, told
from tests.holdout.tables import refusing, sealed

GRID = grid(0, 7, step=1)


def test_a_token_is_told_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    with sealed(tmp_path / "h", mixed()) as holdout:
        grant, token = holdout.access.grant("analyst", name="Ann", quota=0.5)
        assert holdout.access.identify(token) == grant
        assert grant.allows("viewer")
        assert not grant.allows("custodian")
        for wrong in ("", token[:-1], token + "x", "hf_", token.upper(), f"{token[:-1]}~"):
            assert holdout.access.identify(wrong) is None
        text = b"".join(p.read_bytes() for p in (tmp_path / "h").rglob("*") if p.is_file())
        assert token.split("_", 2)[2].encode() not in text
    with Holdout.open(tmp_path / "h") as again:
        assert again.access.identify(token) == grant


def test_what_is_revoked_or_expired_does_not_hold(tmp_path: Path) -> None:
    with sealed(tmp_path / "h", mixed()) as holdout, Holdout.open(tmp_path / "h") as other:
        grant, token = holdout.access.grant("viewer")
        assert other.access.identify(token) is not None
        other.access.revoke(grant.id)
        assert holdout.access.identify(token) is None
        rows = holdout.receipt.number
        holdout.access.revoke(grant.id)  # nothing more to write
        assert holdout.receipt.number == rows
        soon = datetime.now(UTC) + timedelta(days=1)
        brief, key = holdout.access.grant("viewer", expires=soon)
        assert brief.valid(soon - timedelta(seconds=2))
        assert not brief.valid(soon)
        assert holdout.access.identify(key) == brief


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        ({"role": "king"}, "role"),
        ({"role": "viewer", "name": " "}, "name"),
        ({"role": "viewer", "name": "a\nb"}, "name"),
        ({"role": "viewer", "quota": 0.0}, "quota"),
        ({"role": "viewer", "quota": 1.5}, "quota"),
        ({"role": "viewer", "expires": datetime(2020, 1, 1, tzinfo=UTC)}, "expires"),
        ({"role": "viewer", "expires": datetime(2999, 1, 1)}, "expires"),
    ],
)
def test_bad_grants_are_refused(tmp_path: Path, words: dict[str, Any], parameter: str) -> None:
    with sealed(tmp_path / "h", mixed()) as holdout:
        with refusing(holdout) as caught:
            holdout.access.grant(**words)
        assert caught.value.parameter == parameter
        with pytest.raises(InvalidInput, match="id of a token"):
            holdout.access.revoke("nobody00")


def test_quotas_divide_the_budget_and_never_multiply_it(tmp_path: Path) -> None:
    with sealed(tmp_path / "h", mixed()) as holdout:
        first, _ = holdout.access.grant("analyst", quota=0.7)
        with pytest.raises(Infeasible, match="divide one budget"):
            holdout.access.grant("analyst", quota=0.4)
        second, _ = holdout.access.grant("analyst", quota=0.3)
        with pytest.raises(Infeasible, match="divide one budget"):
            holdout.access.set_quota(second.id, 0.31)
        holdout.access.revoke(first.id)
        assert holdout.access.set_quota(second.id, 1.0).quota == 1.0


def test_where_there_is_no_budget_there_is_no_share_of_it(tmp_path: Path) -> None:
    with sealed(tmp_path / "h", told()) as holdout:
        with refusing(holdout, "no budget of looks: limit what is told with nats"):
            holdout.access.grant("analyst", quota=0.5)
        grant, _ = holdout.access.grant("analyst", nats=20)
        with refusing(holdout, "no budget of looks"):
            holdout.access.set_quota(grant.id, 0.5)
        assert holdout.access.set_quota(grant.id, None).quota is None
    with sealed(tmp_path / "both", [mixed(), told()]) as holdout:
        assert holdout.access.grant("analyst", quota=0.5)[0].quota == 0.5


def test_an_asker_gets_their_share_and_no_more(tmp_path: Path) -> None:
    two = grid([4.0, 6.0])
    with sealed(tmp_path / "h", crowd()) as holdout:
        ann, bob = Asker("ann", 0.02), Asker("bob", None)  # 500 questions of one look: 10 are Ann's
        theirs = holdout.on_behalf(ann)
        for i in range(10):
            assert theirs.price("ask", f"avg(x + {i})", grid=two).affordable
            theirs.ask(f"avg(x + {i})", grid=two)
        refused = theirs.price("ask", "avg(x - 1)", grid=two)
        assert not refused.affordable
        assert "quota" in (refused.reason or "")
        with refusing(holdout, "quota", Exhausted):
            theirs.ask("avg(x - 1)", grid=two)
        assert theirs.ask("avg(x + 3)", grid=two).cached  # free, whoever asked first
        holdout.on_behalf(bob).ask("avg(x - 1)", grid=two)
        assert holdout.access.used("ann") == pytest.approx({"main": 0.02})
        assert holdout.access.used("bob") == pytest.approx({"main": 0.002})
        askers = [row["asker"] for row in holdout.transcript()]
        assert askers == ["ann"] * 10 + ["bob"]
    assert check_holdout(tmp_path / "h").passed
    with Holdout.open(tmp_path / "h") as again, pytest.raises(Exhausted, match="quota"):
        again.on_behalf(ann).ask("avg(x - 2)", grid=two)


def test_a_quota_of_questions(tmp_path: Path) -> None:
    """Fresh blocks are charged in questions; a quota is a share of them."""
    plan = split()
    with sealed(tmp_path / "h", plan) as holdout:
        ann = holdout.on_behalf(Asker("ann", 1.5 / plan.queries))
        ann.ask("avg(x)")
        assert not ann.price("ask", "avg(c)").affordable
        with pytest.raises(Exhausted, match="quota"):
            ann.ask("avg(c)")
        holdout.ask("avg(c)")


def test_a_price_is_what_the_question_then_costs(tmp_path: Path) -> None:
    with sealed(tmp_path / "h", mixed()) as holdout:
        before = holdout.receipt
        price = holdout.price("ask", "avg(x)", grid=GRID)
        guess = holdout.price("verify", "avg(x)", guess=5.0)
        assert holdout.receipt == before
        assert holdout.ask("avg(x)", grid=GRID).price == price.price
        assert holdout.verify("avg(x)", 5.0).price <= guess.price
        again = holdout.price("ask", "avg(x)", grid=GRID)
        assert again.cached
        assert again.price == 0.0
        with pytest.raises(InvalidInput, match="claim"):
            holdout.price("verify", "avg(x)", guess=5.0, claim="about")


def test_what_is_left_pays_for_what_it_says(tmp_path: Path) -> None:
    with sealed(tmp_path / "h", mixed()) as holdout:
        told = holdout.questions_left("estimate", 3, 8)
        assert told["fits"]
        estimate = next(part for part in told["parts"] if part["name"] == "estimate")
        counts = [each["questions_left"] for each in estimate["grids"]]
        assert counts == sorted(counts, reverse=True)
        left = next(each["questions_left"] for each in estimate["grids"] if each["grid"] == 8)
        assert not holdout.questions_left("estimate", left + 1, 8)["fits"]
        for i in range(left):
            holdout.ask(f"avg(x + {i})", grid=GRID, protocol="estimate")
        with pytest.raises(Exhausted):
            holdout.ask("avg(x - 1)", grid=GRID, protocol="estimate")
        with pytest.raises(InvalidInput, match="protocol"):
            holdout.questions_left("nobody", None, None)
        verbs = can_be_asked(holdout.spec)["verbs"]
        assert set(verbs) == {"ask", "correct", "interval", "mean", "verify"}
