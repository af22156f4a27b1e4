"""The lab's page put together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from holdfast.errors import InvalidInput
from holdfast.report.html import (
    count,
    day,
    head_html,
    html_file,
    number,
    rows_html,
    safe,
    table_html,
)
from holdfast.report.page import write_text
from holdfast_lab.experiments.base import Finding
from holdfast_lab.runner.experiment import GROUPS, Experiment
from holdfast_lab.runner.results import (
    Pictured,
    Place,
    best_place,
    command_for,
    count_cells,
    read_pictured,
    read_table,
)

if TYPE_CHECKING:
    import pandas as pd


# What the page is made from: for each experiment its results' folder, figures and findings.


@dataclass(frozen=True, eq=False)
class Told:
    """An experiment's results, as they are kept."""

    place: Place
    run: dict[str, Any]
    pictured: Pictured
    table: pd.DataFrame

    def figure(self, name: str) -> str:
        """A figure, as the text of its SVG file."""
        return (self.place.folder / f"{name}.svg").read_text("utf-8")


@dataclass(frozen=True)
class Chapter:
    """An experiment, and its results if it was run."""

    experiment: Experiment
    told: Told | None

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.experiment.name


def read_chapters(experiments: Iterable[Experiment], results: Path) -> list[Chapter]:
    """The best results of each experiment; a figure older than what it shows is drawn again."""
    ordered = sorted(experiments, key=lambda each: each.config.place)
    return [Chapter(each, _told(each, results)) for each in ordered]


def _told(experiment: Experiment, results: Path) -> Told | None:
    place = best_place(results, experiment.name)
    run = None if place is None else place.read_run()
    if place is None or run is None:
        return None
    return Told(place, run, read_pictured(experiment, place), read_table(place.folder))


# A short table of results: means over the repeats, for each combination of what varies.


_MOST_ROWS = 100


class Digest(NamedTuple):
    """What is the same in all rows; means of the rest; what they are grouped by; rows in each."""

    fixed: dict[str, object]
    means: pd.DataFrame
    by: list[str]
    counts: list[int]


def digest_of(table: pd.DataFrame, parameters: Sequence[str]) -> Digest:
    """Group the rows by whatever varies and is not measured.

    Rows of one cell are told apart by the first of their columns that can do so.
    """
    varying = [name for name in parameters if table[name].nunique(dropna=False) > 1]
    fixed = {name: table[name].iloc[0] for name in parameters if name not in varying and len(table)}
    others = [name for name in table.columns if name not in (*parameters, "repeat")]
    by = [*varying, *_index(table, [*varying, "repeat"], others)]
    numbers = [name for name in others if name not in by and table[name].dtype.kind in "biuf"]
    if by:
        groups = table.groupby(by, sort=False, dropna=False)
        return Digest(fixed, groups[numbers].mean().reset_index(), by, groups.size().tolist())
    return Digest(fixed, table[numbers].mean().to_frame().T, by, [len(table)])


def _index(table: pd.DataFrame, cell: list[str], columns: list[str]) -> list[str]:
    """The fewest leading columns that tell the rows of a cell apart: counts and words first."""
    whole = [name for name in columns if table[name].dtype.kind != "f"]
    for candidates in (whole, columns[:-1]):
        for end in range(len(candidates) + 1):
            if not table.duplicated([*cell, *candidates[:end]]).any():
                return candidates[:end]
    return [name for name in columns if table[name].dtype.kind not in "biuf"]


def digest_html(table: pd.DataFrame, parameters: Sequence[str]) -> str:
    """The table, folded up: it is there for whoever wants to know."""
    if table.empty:
        return ""
    fixed, means, _, counts = digest_of(table, parameters)
    shown = means.head(_MOST_ROWS)
    rows = [[_cell(value) for value in row] for row in shown.itertuples(index=False, name=None)]
    heads = [safe(name) for name in means.columns]
    notes = [f"The same in all: {_listed(fixed)}."] if fixed else []
    if max(counts) > 1:
        few, many = min(counts), max(counts)
        over = f"{many:,}" if few == many else f"{few:,} to {many:,}"
        notes.append(f"Each line shows means over {over} rows.")
    if len(means) > len(shown):
        notes.append(f"The first {len(shown)} of {len(means):,} lines.")
    notes.append("Every row is in results.csv and results.parquet.")
    inside = table_html(heads, rows, "digest")
    return (
        f'<details><summary>Results</summary><p class="more">{" ".join(notes)}</p>'
        f'<div class="wide">{inside}</div></details>'
    )


def _listed(fixed: dict[str, object]) -> str:
    return ", ".join(f"{safe(name)} = {_cell(value)}" for name, value in fixed.items())


def _cell(value: object) -> str:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return safe(value)
    return safe(number(float(value)))


# Figures of matplotlib as parts of a page: their names made unique, nothing in them that acts.


_DROPPED = {"metadata", "script", "style", "foreignObject", "title"}
_KEPT_LINKS = ("#", "data:image/png;base64,")
_PLACES = {"d", "x", "y"}
_LONG = re.compile(r"\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
# What matplotlib says in a style element; on a page that would speak of every other drawing too.
_LINES = "stroke-linejoin: round; stroke-linecap: butt"


def inline_svg(text: str, prefix: str, label: str) -> str:
    """The drawing as an element of an HTML page.

    Drawings on one page share one space of ids, and matplotlib uses the same ones in all of them.

    >>> drawn = '<svg viewBox="0 0 9 9"><path id="a"/><use href="#a"/><g id="unused"/></svg>'
    >>> inline_svg(drawn, "one", "A < B")
    '<svg class="figure" role="img" aria-label="A &lt; B" viewBox="0 0 9 9"
    style="max-width: 12px; stroke-linejoin: round; stroke-linecap: butt"><path id="one-a" /><use
    href="#one-a" /><g /></svg>'
    """
    root = ElementTree.fromstring(text)
    _clean(root)
    used = {name for element in root.iter() for name in _referred(element)}
    for element in root.iter():
        _rename(element, prefix, used)
    box = root.get("viewBox", "")
    inside = "".join(ElementTree.tostring(child, "unicode") for child in root)
    return (
        f'<svg class="figure" role="img" aria-label="{safe(label)}" viewBox="{safe(box)}" '
        f'style="max-width: {_width(box)}px; {_LINES}">{inside}</svg>'
    )


def _clean(element: ElementTree.Element) -> None:
    """Take out namespaces, which HTML does without, and what could act or fetch."""
    element.tag = _local(element.tag)
    attributes = {_local(name): value for name, value in element.attrib.items()}
    element.attrib.clear()
    for name, value in attributes.items():
        fetches = name == "href" and not value.startswith(_KEPT_LINKS)
        if not fetches and not name.startswith("on"):
            element.set(name, _shorter(value) if name in _PLACES else value)
    element.text, element.tail = _said(element.text), _said(element.tail)
    for child in list(element):
        if _local(child.tag) in _DROPPED:
            element.remove(child)
        else:
            _clean(child)


def _shorter(places: str) -> str:
    """Hundredths of a point are finer than any screen, and half as long.

    >>> _shorter("M 41.601021 246.5 L 0.0001 3.999")
    'M 41.6 246.5 L 0 4'
    """
    return " ".join(_LONG.sub(lambda found: f"{round(float(found[0]), 2):g}", places).split())


def _said(text: str | None) -> str | None:
    """Text, unless it is the space between elements."""
    return text if text is None or text.strip() else None


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _referred(element: ElementTree.Element) -> list[str]:
    found = [name for value in element.attrib.values() for name in _REFERENCE.findall(value)]
    link = element.get("href", "")
    return [*found, link[1:]] if link.startswith("#") else found


def _rename(element: ElementTree.Element, prefix: str, used: set[str]) -> None:
    if element.get("id") is not None and element.get("id") not in used:
        del element.attrib["id"]
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, f"{prefix}-{value}")
        elif name == "href" and value.startswith("#"):
            element.set(name, f"#{prefix}-{value[1:]}")
        else:
            element.set(name, _REFERENCE.sub(rf"url(#{prefix}-\1)", value))


def _width(box: str) -> int:
    """The width in which the drawing was made: matplotlib counts in points, pages in pixels."""
    numbers = box.split()
    return round(float(numbers[2]) * 4 / 3) if len(numbers) == 4 else 960


# The parts of the lab's page: the findings of all, and a part for each experiment.


_VERDICTS = {
    True: '<span class="verdict good">holds</span>',
    False: '<span class="verdict bad">does not hold</span>',
    None: "",
}
_RELATION = re.compile(r"(?<=\w) ([=≤≥≈±<>]|&lt;|&gt;) (?=\S)")
_FIRST = 3
_HEADS = ("finding", "measured", "expected", "verdict")


def all_findings(chapters: Sequence[Chapter]) -> str:
    """One table of the headlines of each experiment, under a link to all of its findings."""
    parts = []
    for chapter in chapters:
        found = chapter.told.pictured.findings if chapter.told else ()
        if found:
            config = chapter.experiment.config
            named = [each for each in found if any(text in each.what for text in config.headlines)]
            shown = named or list(found[:_FIRST])
            link = f'<a href="#{safe(chapter.name)}">{safe(config.title)}</a>'
            left = len(found) - len(shown)
            more = f", and {left:,} more there" if left else ""
            head = f'<tr><th colspan="4" scope="rowgroup">{link}{more}</th></tr>'
            parts.append(f"<tbody>{head}{rows_html(map(_finding, shown))}</tbody>")
    if not parts:
        return "<p>None yet.</p>"
    note = "<p>After ± is one standard error, unless it is called certified or claimed.</p>"
    return f'{note}<table class="findings every">{head_html(_HEADS)}{"".join(parts)}</table>'


def _finding(finding: Finding) -> tuple[str, ...]:
    texts = (finding.what, finding.measured, finding.expected)
    return (*(_together(safe(text)) for text in texts), _VERDICTS[finding.holds])


def _together(text: str) -> str:
    """`k ≥ 1,000` on one line, and `5 %`."""
    return _RELATION.sub("\u00a0\\1\u00a0", text).replace(" %", "\u00a0%")


def chapter_html(chapter: Chapter) -> str:
    """An experiment: what it does, its figures, what they show, where they come from."""
    told, config = chapter.told, chapter.experiment.config
    assert told is not None
    about = "".join(f"<p>{_together(safe(part))}</p>" for part in config.about.split("\n\n"))
    parts = [
        f'<article id="{safe(chapter.name)}"><h3>{safe(config.title)}</h3>{about}',
        _warnings(told),
        *_figures(chapter.name, told),
        _findings(told.pictured.findings),
        _sources(config.sources),
        _origin(told),
        digest_html(told.table, list(told.run["parameters"])),
        "</article>",
    ]
    return "".join(parts)


def _warnings(told: Told) -> str:
    notes = []
    done, everything = told.run["cells"]["done"], told.run["cells"]["all"]
    if done < everything:
        notes.append(f"<strong>Not finished.</strong> {done:,} of {everything:,} cells are done.")
    if told.pictured.note:
        notes.append(safe(told.pictured.note))
    for problem in told.pictured.problems:
        last = problem.strip().splitlines()[-1]
        notes.append(f"<strong>Something went wrong</strong> in making this part: {safe(last)}")
    return "".join(f'<p class="note">{note}</p>' for note in notes)


def _figures(name: str, told: Told) -> Iterable[str]:
    for index, (figure, caption) in enumerate(told.pictured.figures.items()):
        drawing = inline_svg(told.figure(figure), f"{name}-{index}", caption or figure)
        shown = f"<figcaption>{safe(caption)}</figcaption>" if caption else ""
        yield f'<figure><div class="card">{drawing}</div>{shown}</figure>'


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    rows = (_finding(each) for each in findings)
    return table_html(_HEADS, rows, "findings")


def _sources(sources: Sequence[str]) -> str:
    if not sources:
        return ""
    items = "".join(f"<li>{safe(each)}</li>" for each in sources)
    return f'<div class="sources"><h4>Sources</h4><ul>{items}</ul></div>'


def _origin(told: Told) -> str:
    run = told.run
    versions = ", ".join(f"{safe(name)} {safe(text)}" for name, text in run["versions"].items())
    when = "never" if run["measured"] is None else f"{day(run['measured'])} UTC"
    facts = (
        f"seed {safe(run['seed'])}",
        f"{'a quick run' if run['mode'] == 'quick' else 'the full run'}, {when}",
        f"{count(run['cells']['done'], 'cell')} in {number(run['seconds'], 2)} s of one core",
        versions,
    )
    return f'<p class="origin"><code>{safe(run["command"])}</code> {"; ".join(facts)}</p>'


def not_run(chapters: Sequence[Chapter]) -> str:
    """Experiments without results, each with the command that would make them."""
    rows = []
    for chapter in chapters:
        config = chapter.experiment.config
        command = command_for(chapter.experiment, "full", config.seed)
        cells = count(count_cells(config.modes["full"]), "cell")
        rows.append((safe(config.title), f"<code>{safe(command)}</code>", cells))
    return table_html(("experiment", "command", "how much"), rows, "promises")


_MARK = '<meta name="generator" content="holdfast lab report">'
_TITLE = "The Holdfast lab"
_SAID = {
    "attacks": (
        "Attacks",
        "Analysts who choose each question with the answers to the earlier ones in hand, against "
        "naive reuse, against known remedies, and against Holdfast.",
    ),
    "comparison": (
        "Comparison",
        "What the same rows buy: Holdfast beside fresh splitting and beside published bounds.",
    ),
    "scaling": (
        "Scaling",
        "How errors and numbers of blocks grow with questions, grids, tails and distributions.",
    ),
}


def lab_html(chapters: Sequence[Chapter]) -> str:
    """One HTML file, a pure function of the results."""
    run = [chapter for chapter in chapters if chapter.told is not None]
    waiting = [chapter for chapter in chapters if chapter.told is None]
    sections = [("findings", "Findings", all_findings(run))]
    for group in GROUPS:
        inside = [chapter_html(each) for each in run if each.experiment.config.group == group]
        title, about = _SAID[group]
        if inside:
            sections.append((group, title, f"<p>{about}</p>{''.join(inside)}"))
    if waiting:
        sections.append(("not-run", "Not run", not_run(waiting)))
    # An experiment's name is the id of its part, and has no underscore.
    links = "".join(f'<a href="#part_{key}">{title}</a>' for key, title, _ in sections)
    body = "".join(
        f'<section id="part_{key}"><h2>{title}</h2>{text}</section>'
        for key, title, text in sections
    )
    footer = (
        f"<footer>Written by Holdfast {safe(version('holdfast'))} from results that were kept; "
        "every part names the command that makes its results again.</footer>"
    )
    style = files("holdfast_lab").joinpath("page.css").read_text("utf-8")
    main = f"{_header(run, len(chapters))}<nav>{links}</nav>{body}{footer}"
    return html_file(_TITLE, main, style=style, head=_MARK, pixels=True)


def _header(run: Sequence[Chapter], everything: int) -> str:
    findings = [
        each.holds for chapter in run if chapter.told for each in chapter.told.pictured.findings
    ]
    tested = [holds for holds in findings if holds is not None]
    quick = sum(chapter.told is not None and chapter.told.place.mode == "quick" for chapter in run)
    said = [f"{len(run):,} of {count(everything, 'experiment')} run"]
    if quick:
        said.append(f"{quick:,} of them quickly")
    verdict = f"{sum(tested):,} of {count(len(tested), 'expectation')} met by what was measured"
    return (
        f'<header><p class="kicker">Holdfast</p><h1>{_TITLE}</h1>'
        '<p class="verdict-line">How reuse of one holdout fails, how known remedies fare, and how '
        "far a certificate is from the best attack that we know.</p>"
        f'<p class="when-line">{", ".join(said)}; {verdict}.</p></header>'
    )


def write_lab_page(chapters: Sequence[Chapter], output: Path) -> None:
    """Write the page; only an earlier page of the lab is replaced."""
    if output.is_file() and _MARK not in output.read_text("utf-8", errors="replace")[:2000]:
        hint = "Choose another name."
        raise InvalidInput("output", str(output), "a new file, or a page of the lab", hint)
    write_text(output, lab_html(chapters))
