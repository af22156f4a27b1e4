"""The parts of the lab's page: the findings of all, and a part for each experiment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from holdfast.lab.experiments.base import Finding
from holdfast.lab.runner.cells import count_cells
from holdfast.lab.runner.record import command_for
from holdfast.report.html import count, day, head_html, number, rows_html, safe, table_html
from holdfast.report.lab_page.chapters import Chapter, Told
from holdfast.report.lab_page.digest import digest_html
from holdfast.report.lab_page.drawings import inline_svg

__all__ = ["all_findings", "chapter_html", "not_run"]

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
            shown = _headlines(found, chapter.experiment.config.headlines)
            title = safe(chapter.experiment.config.title)
            link = f'<a href="#{safe(chapter.name)}">{title}</a>'
            more = (
                f", and {len(found) - len(shown):,} more there" if len(found) > len(shown) else ""
            )
            head = f'<tr><th colspan="4" scope="rowgroup">{link}{more}</th></tr>'
            parts.append(f"<tbody>{head}{rows_html(map(_finding, shown))}</tbody>")
    if not parts:
        return "<p>None yet.</p>"
    note = "<p>After ± is one standard error, unless it is called certified or claimed.</p>"
    return f'{note}<table class="findings every">{head_html(_HEADS)}{"".join(parts)}</table>'


def _headlines(findings: Sequence[Finding], wanted: Sequence[str]) -> list[Finding]:
    """Those that the config names; the first few where it names none of them."""
    named = [each for each in findings if any(text in each.what for text in wanted)]
    return named or list(findings[:_FIRST])


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
