"""Config files: what is not understood is refused, in words that help."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab.runner.tiny import CONFIG, tiny, write_tiny

import holdfast_lab.experiments
from holdfast.errors import InvalidInput
from holdfast_lab.runner.experiment import Mode, find_experiments, known_experiments, read_config
from holdfast_lab.runner.results import cells_of, combinations, count_cells, key_of, number_of

PACKAGED = sorted(Path(holdfast_lab.experiments.__file__).parent.glob("*.toml"))


def test_a_config_is_read(tmp_path: Path) -> None:
    config = read_config(write_tiny(tmp_path))
    assert (config.name, config.group, config.order, config.seed) == ("tiny-walk", "scaling", 7, 3)
    assert config.about == "Steps of one & no other."
    assert config.sources == ("Pearson 1905, The problem of the random walk",)
    full, quick = config.modes["full"], config.modes["quick"]
    assert full == Mode(3, {"steps": (9, 16), "kind": ("fair", "still"), "scale": (1.5,)})
    assert quick == Mode(2, {"steps": (9,), "kind": ("fair", "still"), "scale": (1.5,)})
    assert (count_cells(full), count_cells(quick)) == (12, 4)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 3", "sead = 3", r"tiny_walk.toml: key must be one of .*Did you mean 'seed'"),
        ("seed = 3", "seed = -3", r"tiny_walk.toml: seed must be a whole number"),
        ("seed = 3", "seed = '3'", r"tiny_walk.toml: seed must be a whole number"),
        ('title = "How far a <walk> gets"', "", r"title must be given"),
        ('title = "How far a <walk> gets"', "title = 3", r"title must be text"),
        ('"scaling"', '"scalling"', r"group must be one of attacks.*Did you mean 'scaling'"),
        (
            '"tiny-walk"',
            '"tiny-wolk"',
            r"name must be the file's own.*Rename the file to tiny_wolk",
        ),
        ('"tiny-walk"', '"Tiny"', r"name must be lower-case"),
        ("sources = [", "sources = [1, ", r"sources must be text"),
        ("steps = [9, 16]", "steps = []", r"\[parameters\] steps must be from 1 to 10,000 values"),
        ("steps = [9, 16]", "steps = [9, 9]", r"steps must be values that differ"),
        ("steps = [9, 16]", "steps = [9, 'x']", r"steps must be values of one type"),
        ("steps = [9, 16]", "steps = [9, true]", r"steps must be values of one type"),
        ("steps = [9, 16]", "steps = [[9]]", r"steps must be text, a number"),
        ("steps = [9, 16]", "steps = inf", r"steps must be finite"),
        ("steps = [9, 16]", "repeat = 1", r"not 'repeat'"),
        ("repeats = 3", "repeats = 0", r"\[full\] repeats must be a whole number from 1"),
        ("repeats = 3", "", r"\[full\] repeats must be given"),
        ("repeats = 3", "repeats = 3\nworkers = 2", r"key of \[full\] must be one of repeats"),
        ("steps = [9]", "step = [9]", r"parameter of \[quick.parameters\].*Did you mean 'steps'"),
        ("seed = 3", "seed = = 3", r"config must be a TOML file"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 25 else "",
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in CONFIG
    path = write_tiny(tmp_path, config=CONFIG.replace(old, new, 1))
    with pytest.raises(InvalidInput, match=message):
        read_config(path)


def test_unknown_names_get_a_suggestion(tmp_path: Path) -> None:
    known = known_experiments()[0][0].name
    with pytest.raises(InvalidInput, match=f"Did you mean '{known}'"):
        find_experiments([known + "x"])
    with pytest.raises(InvalidInput, match="lab list"):
        find_experiments(["../base"])
    with pytest.raises(InvalidInput, match="a config file that exists"):
        find_experiments([str(tmp_path / "none.toml")])


def test_a_module_must_be_there_and_have_its_functions(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="a function measure"):
        tiny(tmp_path, module="x = 1").module()
    with pytest.raises(InvalidInput, match=r"can be imported.*NameError"):
        tiny(tmp_path, module="import os\nx = y").module()
    (tmp_path / "tiny_walk.py").unlink()
    (alone,) = find_experiments([str(tmp_path / "tiny_walk.toml")])
    with pytest.raises(InvalidInput, match="a file beside the config file"):
        alone.module()


@pytest.mark.parametrize("path", PACKAGED, ids=[path.stem for path in PACKAGED])
def test_every_packaged_experiment_is_whole(path: Path) -> None:
    (experiment,) = find_experiments([path.stem])
    assert experiment.module().measure
    modes = experiment.config.modes.values()
    numbers = {key_of(each): number_of(each) for mode in modes for each in combinations(mode)}
    assert len(set(numbers.values())) == len(numbers)  # no two share their randomness
    assert max(numbers.values()) < 2**63


def test_cells_keep_their_numbers_whatever_is_beside_them() -> None:
    small = Mode(2, {"a": (1, 2), "b": ("x",)})
    large = Mode(5, {"b": ("w", "x"), "a": (3.5, 2.0, 1.0)})
    found = {(cell["a"], cell["b"], cell.repeat): cell.number for cell in cells_of(large, 1)}
    for cell in cells_of(small, 1):
        assert found[cell["a"], cell["b"], cell.repeat] == cell.number
    assert len(set(found.values())) == 6
    # The number is a part of what was published: a change would measure everything anew.
    assert number_of({"a": 1, "b": "x"}) == 7434934150785762209
