"""Writes the list of addresses at the end of docs/reference/http.md, from the server's OpenAPI.

    python -m tools.http_page

What stands above the mark is written by hand. A test compares the rest with what this would write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["MARK", "PAGE", "ROLES", "TOLD", "addresses", "schema", "word_of", "written"]

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "http.md"
MARK = "<!-- What follows is written by `python -m tools.http_page`. -->"
_OF_HOLDOUT = "/api/holdouts/{holdout}/"
_SECTIONS = {
    "The server": ("health", "ready", "metrics", "api", "holdouts", "plan"),
    "Questions": ("ask", "interval", "mean", "verify", "correct", "price"),
    "Jobs": ("jobs",),
    "What was, and what is left": ("status", "columns", "transcript", "left"),
    "Scores": ("score", "compare", "gate", "best", "scores", "enter", "leaderboard", "neighbours"),
    "For the custodian": ("tokens", "audit", "check"),
}
ROLES = {
    **dict.fromkeys(("health", "ready"), "nobody: no token is needed"),
    **dict.fromkeys(("metrics", "holdouts", "plan"), "viewer"),
    **dict.fromkeys(("status", "columns", "transcript", "left", "leaderboard"), "viewer"),
    **dict.fromkeys(("ask", "interval", "mean", "verify", "correct"), "analyst"),
    **dict.fromkeys(("price", "jobs"), "analyst"),
    **dict.fromkeys(
        ("score", "compare", "gate", "best", "scores", "enter", "neighbours"), "analyst"
    ),
    **dict.fromkeys(("tokens", "audit", "check"), "custodian"),
}
"""The least role, by the first word of an address within a holdout, or its last outside of one."""
TOLD = {
    "plan": "`rows`, `queries`, `tail`, `confidence`; `methods`, each with `name`, `label`, "
    "`half_width` (null, with a `reason`, where there is none), `blocks`, `certified` and `about`; "
    "`curve`, for each number of `queries` the half-widths by the names of the methods; `told`, "
    "what a holdout without a plan will be, with the `bars` of its `parts` by the number of "
    "`questions` and of `surprises` (null at a confidence of 0.5)",
    "columns": "`columns`, each with `name`, `kind`, `range` and `categories`; `verbs`, each with "
    "the parts of the plan that can answer it; `target`, `labels`, `ids`, `metrics` "
    "and `over_rows` (those that are means over rows, which take a guess)",
    "left": "`parts`, each with `name`, `protocol`, `planned`, `questions_left`, `refusals_left`, "
    "`still_possible` (what can still be asked, in words) "
    "and `grids` (for each size `grid`, `price` and `questions_left`); `asked_for` and `fits`, "
    "whether the questions asked for are paid for",
    "leaderboard": "`metric`, `greater_is_better`, `ties` (how many could be the best), "
    "`certified`, `reading`, `reading_words` and `entries`, each with `rank`, `rank_low`, "
    "`rank_high`, `name`, `value`, `low`, `high`, `at`, `receipt`, `submissions` (how many it "
    "made) and `mine`",
    "neighbours": "those of the leaderboard, and `neighbours`, each with `names`, `same` (the same "
    "predictions: nothing to tell), `apart` (one is shown to be better), `result` (what was told), "
    "`price`, `reason` (why they were not compared) and `said`, all of it in a sentence",
    **dict.fromkeys(
        ("ask", "interval", "mean", "score"), "those of an answer, or of what is told (above)"
    ),
    "verify": "those of a verdict, or of what is told (above)",
    **dict.fromkeys(("compare", "gate", "best", "scores"), "those of what is told (above)"),
    "enter": "those of a score, and `name` and `metric`",
    "audit": "`rows` and `next`",
    "check": "`passed`, `receipt`, and `findings`, each with `name`, `passed` and `detail`",
}
"""The keys of replies that OpenAPI does not describe, or describes at too great a length."""
_ALWAYS = ("400", "401", "403", "404", "413", "429", "503")  # told once, above the mark
_GENERATED = "422"  # FastAPI lists it for every route; the server says 400 instead
_KEY = "Idempotency-Key"
_NULL = {"type": "null"}


@cache
def schema() -> dict[str, Any]:
    """The OpenAPI of all routes; no holdout is opened for it."""
    from fastapi import FastAPI

    from holdfast.server import routes

    app = FastAPI(title="Holdfast")
    for each in routes.ROUTERS:
        app.include_router(each)
    return app.openapi()


def word_of(path: str) -> str:
    """What an address is about.

    >>> word_of("/api/holdouts/{holdout}/jobs/{job}"), word_of("/api/plan")
    ('jobs', 'plan')
    """
    if path.startswith(_OF_HOLDOUT):
        return path.removeprefix(_OF_HOLDOUT).split("/")[0]
    return path.rsplit("/", 1)[1]


def addresses() -> str:
    """All addresses, as Markdown."""
    spec = schema()
    known = [(path, *each) for path, methods in spec["paths"].items() for each in methods.items()]
    lines: list[str] = []
    for title, words in _SECTIONS.items():
        lines += [f"## {title}", ""]
        for word in words:
            for path, method, about in known:
                if word_of(path) == word:
                    lines += [*_endpoint(spec, path, method, about), ""]
    return "\n".join(lines)


def _endpoint(spec: Mapping[str, Any], path: str, method: str, about: Any) -> Iterator[str]:
    yield f"### {method.upper()} {path}"
    yield ""
    fields = [each for each in about.get("parameters", []) if each["in"] != "path"]
    key = f" Takes an `{_KEY}`." if any(each["name"] == _KEY for each in fields) else ""
    yield f"{_line(about['description'])} Least role: {ROLES[word_of(path)]}.{key}"
    fields = [each for each in fields if each["name"] != _KEY]
    if fields:
        yield ""
        yield "| parameter | what it is | if left out |"
        yield "|---|---|---|"
        for each in fields:
            what = _what(spec, each["schema"], each.get("description"))
            yield f"| `{each['name']}` | {what} | {_default(each, each['schema'])} |"
    yield from _body(spec, about.get("requestBody"))
    keys = TOLD.get(word_of(path)) or _keys(spec, about["responses"])
    if keys:
        yield ""
        yield f"Keys: {keys}."
    errors = [
        f"{status} {told['description']}"
        for status, told in sorted(about["responses"].items())
        if status >= "400" and status not in (*_ALWAYS, _GENERATED)
    ]
    if errors:
        yield ""
        yield f"More errors: {'; '.join(errors)}."


def _body(spec: Mapping[str, Any], body: Mapping[str, Any] | None) -> Iterator[str]:
    if body is None:
        return
    if "application/json" not in body["content"] or "text/csv" in body["content"]:
        yield ""
        yield f"Body: {_line(body['description'])} Types: {', '.join(body['content'])}."
        return
    found = body["content"]["application/json"]["schema"]
    choices = found.get("oneOf") or [c for c in found.get("anyOf", [found]) if c != _NULL]
    if len(choices) > 1:
        yield ""
        verbs = ", ".join(f'`"{verb}"`' for verb in found["discriminator"]["mapping"])
        yield f"Body: that of the verb, with `verb`: {verbs}."
        return
    shape = _resolved(spec, choices[0])
    yield ""
    yield "| key of the body | what it is | if left out |"
    yield "|---|---|---|"
    for name, each in sorted(shape["properties"].items(), key=lambda pair: _order(shape, pair[0])):
        what = _what(spec, each, each.get("description"))
        told = {"required": name in shape.get("required", [])}
        yield f"| `{name}` | {what} | {_default(told, each)} |"


def _order(shape: Mapping[str, Any], name: str) -> tuple[bool, int]:
    return name not in shape.get("required", []), [*shape["properties"]].index(name)


def _resolved(spec: Mapping[str, Any], found: Mapping[str, Any]) -> Mapping[str, Any]:
    name = found.get("$ref", "").rsplit("/", 1)[-1]
    resolved: Mapping[str, Any] = spec["components"]["schemas"][name] if name else found
    return resolved


def _what(spec: Mapping[str, Any], found: Mapping[str, Any], described: str | None) -> str:
    options = [*_options(spec, found)]
    told = " or ".join(dict.fromkeys(map(_kind, options)))
    described = described or next(
        (each["description"] for each in options if "description" in each), None
    )
    return f"{told}. {_line(described)}" if described else told


def _options(spec: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What a value may be, without null; a description of several goes with each."""
    if "anyOf" not in found:
        if found != _NULL:
            yield _resolved(spec, found)
        return
    about = {"description": found["description"]} if "description" in found else {}
    for each in found["anyOf"]:
        yield from ({**about, **option} for option in _options(spec, each))


def _kind(found: Mapping[str, Any]) -> str:
    if "enum" in found:
        return " or ".join(f'`"{each}"`' for each in found["enum"])
    names = {"string": "text", "integer": "whole number", "array": "list", "object": "object"}
    kind = names.get(found["type"], found["type"])
    bounds = []
    for key, text in (
        ("minimum", "at least"),
        ("exclusiveMinimum", "above"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "below"),
    ):
        if key in found:
            bounds.append(f"{text} {found[key]:,}")
    return ", ".join([kind, *bounds])


def _default(field: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    if field.get("required"):
        return "needed"
    default = found.get("default")
    return (
        ""
        if default is None
        else f"`{str(default).lower() if default in (True, False) else default}`"
    )


def _keys(spec: Mapping[str, Any], responses: Mapping[str, Any]) -> str:
    good = next(each for status, each in responses.items() if status < "300")
    found = good["content"].get("application/json", {}).get("schema", {})
    shape = _resolved(spec, found.get("items", found))
    return ", ".join(f"`{name}`" for name in shape.get("properties", {}))


def _line(text: str | None) -> str:
    told = " ".join((text or "").split()).replace("|", "\\|")
    return told if told.endswith((".", "!", "?")) or not told else f"{told}."


def written(page: str) -> str:
    """A page whose part below the mark is what the server says of itself."""
    by_hand, found, _ = page.partition(MARK)
    if not found:
        raise ValueError(f"{PAGE.name} has lost its mark")
    return f"{by_hand}{MARK}\n\n{addresses()}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
