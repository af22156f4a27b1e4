"""Accounts with a mistake each. The campaign must find every one of them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from holdfast.holdout import answering
from holdfast.ledger.ledger import Hold, Ledger
from tools.crash.account import PRICE, Account
from tools.crash.holdout_writer import ToldWriter


class TellsBeforeRecording(Account):
    """The answer is on its way before it is durable."""

    def __init__(self, ledger: Ledger, pause: bool = True) -> None:
        super().__init__(ledger, pause)
        self._later: list[tuple[str, str, dict[str, Any]]] = []

    def ask(self, question: str, request: str) -> str | None:
        with self.ledger.begin() as transaction:
            for key, by, body in self._later:
                transaction.append("recorded", body, question=key, request=by)
            self._later = []
            found = [row for row in transaction.rows() if row.body.get("drawn")]
            known = [row.body["drawn"] for row in found if row.question == question]
            if known:
                return str(known[-1])
            keys = {"question": question, "request": request}
            held = transaction.append("reserved", {"price": PRICE}, **keys)
        answer = self._draw()
        self._later.append((question, request, {"drawn": answer, "reserved": held.number}))
        return answer


class ChargesAfterwards(Account):
    """A crash between the draw and the charge makes an answer free."""

    def ask(self, question: str, request: str) -> str | None:
        with self.ledger.lock(question, request):
            answer = self._draw()
            found = self.ledger.recorded(question)
            if found is not None:
                return str(found.body["drawn"])
            with self.ledger.begin() as transaction:
                number = len(transaction.rows()) + 1
                body = {"drawn": answer, "reserved": number + 1}
                transaction.append("recorded", body, question=question, request=request)
            with self.ledger.begin() as transaction:
                keys = {"question": question, "request": request}
                transaction.append("reserved", {"price": PRICE}, **keys)
            return answer


class ChecksThenAppends(Account):
    """What is left is looked up in one transaction and spent in the next."""

    def ask(self, question: str, request: str) -> str | None:
        with self.ledger.begin() as transaction:
            if self._charged(transaction) + PRICE > self._budget:
                return None
        self._draw()  # takes a while
        with self.ledger.lock(question, request):
            with self.ledger.begin() as transaction:
                keys = {"question": question, "request": request}
                held = transaction.append("reserved", {"price": PRICE}, **keys)
            answer = self._draw()
            with self.ledger.begin() as transaction:
                body = {"drawn": answer, "reserved": held.number}
                transaction.append("recorded", body, question=question, request=request)
            return answer


class Unlocked(Account):
    """Two processes may draw for the same question at once."""

    def __init__(self, ledger: Ledger, pause: bool = True) -> None:
        super().__init__(ledger, pause)
        ledger.lock = _no_lock  # type: ignore[method-assign]


def _no_lock(*_names: str) -> AbstractContextManager[Hold]:
    return nullcontext(Hold())


class TellsAnew(ToldWriter):
    """What was told before is told at the level of now."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        answering._known = lambda *_: None
