"""The page about HTTP: its list is what the server says of itself, and its examples happen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.planning.compare import compare_widths
from holdfast.server import routes
from holdfast.server.errors import STATUS
from tests.holdout.test_told import made, right, rows
from tests.server.conftest import Serve, Study, auth, tokens_of
from tests.server.test_matrix import TABLE
from tests.test_docs_examples import compare
from tools.fences import fences
from tools.http_page import PAGE, ROLES, TOLD, schema, word_of, written


def page() -> str:
    return PAGE.read_text("utf-8")


def test_the_list_is_up_to_date() -> None:
    assert page() == written(page()), "run `python -m tools.http_page`"


def test_every_address_is_listed_with_the_role_that_it_needs() -> None:
    for path, methods in schema()["paths"].items():
        for method in methods:
            assert f"### {method.upper()} {path}\n" in page()
            least = TABLE[method.upper(), path].least
            assert ROLES[word_of(path)].startswith("nobody" if least is None else least)


def test_every_kind_of_error_is_explained_with_its_status() -> None:
    for kind, status in STATUS.items():
        assert f"| `{kind}` | {status} |" in page()


def test_keys_that_openapi_does_not_tell_are_there(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def compared(*study: Any) -> dict[str, Any]:
        return compare_widths(*study[:-1], curve=study[-1])

    monkeypatch.setattr(routes, "comparison", compared)
    places = {word: word for word in ("columns", "left", "audit", "check")}
    for word, place in {"plan": "/api/plan?rows=1000&queries=2", **places}.items():
        method = "POST" if word == "check" else "GET"
        for key in _keys(study.send(method, place, "custodian").json()):
            assert f"`{key}`" in TOLD[word], f"{word}: {key}"


def _keys(reply: Any) -> Iterator[str]:
    """The keys of a reply, and those of the first of every list in it."""
    for key, value in reply.items():
        yield key
        if isinstance(value, list) and value and isinstance(value[0], dict) and key in _DESCRIBED:
            yield from _keys(value[0])


_DESCRIBED = ("methods", "columns", "parts", "grids", "findings")


def test_the_examples_happen(tmp_path: Path, folder: Path, served: Serve) -> None:
    models, frame = tmp_path / "models.holdfast", rows(size=2_000)
    made(models, frame).close()
    predicted = right(frame, 0.9).to_csv(index=False)
    client, tokens = served(folder, models), {"study": tokens_of(folder)["analyst"]}
    tokens["models"] = tokens_of(models)["analyst"]
    found = [fence for fence in fences(page()) if fence.language in ("http", "json")]
    assert len(found) >= 12
    for asked, told in zip(found[::2], found[1::2], strict=True):
        head, _, body = asked.text.partition("\n\n")
        first, *more = head.splitlines()
        method, path = first.split()
        headers = dict(line.split(": ", 1) for line in more)
        if headers.pop("Authorization", None) is not None:
            headers |= auth(tokens["models" if "/models/" in path else "study"])
        if body.rstrip().endswith("…"):
            assert predicted.startswith(body.partition("\n")[0])
            body = predicted
        reply = client.request(method, path, headers=headers, content=body)
        printed = json.dumps(reply.json(), indent=2)
        compare(told.text, printed, told, f"{Path(PAGE).name}:{asked.first_line}")
