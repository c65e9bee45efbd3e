from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from tasks.parameters import (
    ParameterError,
    StageParams,
    load_resources,
    parse_yaml,
    read_yaml,
    set_value,
    validate,
)


class Inner(StageParams):
    rate: float = Field(default=0.1, gt=0)


class Outer(StageParams):
    inner: Inner = Inner()
    many: list[Inner] = []
    weights: dict[str, float] = {}


def test_a_mistyped_key_deep_inside_is_named_with_the_nearest() -> None:
    with pytest.raises(ParameterError, match=r"`inner\.rte` is not a known key; did you mean `rate`\?"):
        validate({"inner": {"rte": 1}}, Outer, "params.yaml: outer")
    with pytest.raises(ParameterError, match=r"`many\.1\.rte` is not a known key; did you mean `rate`\?"):
        validate({"many": [{}, {"rte": 1}]}, Outer, "params.yaml: outer")


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(ParameterError) as error:
        validate({"inner": {"rate": -1}, "mny": []}, Outer, "p")
    assert "greater than 0 (given: -1)" in str(error.value)
    assert "`mny`" in str(error.value)


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf"])
@pytest.mark.parametrize("place", ["inner: {{rate: {}}}", "many: [{{rate: {}}}]", "weights: {{law: {}}}"])
def test_what_is_no_number_is_not_taken_for_one(number: str, place: str) -> None:
    with pytest.raises(ParameterError, match="should be a finite number"):
        validate(parse_yaml(place.format(number)), Outer, "p")


@pytest.mark.parametrize(
    ("text", "value"), [("5e-5", 5e-5), ("1.5E+3", 1500.0), ("-2e4", -20000.0), ("e5", "e5")]
)
def test_numbers_are_read_as_dvc_reads_them(text: str, value: object) -> None:
    assert parse_yaml(text) == value


def test_a_value_is_set_by_its_dotted_name() -> None:
    content: dict[str, Any] = {"ppo": {"kl_coef": 0.1}}
    set_value(content, "ppo.kl_coef=5e-2")
    set_value(content, "ppo.optimizer.rate=1")
    assert content == {"ppo": {"kl_coef": 0.05, "optimizer": {"rate": 1}}}


@pytest.mark.parametrize("wrong", ["ppo", "ppo=1", "ppo.kl_coef", "ppo.kl_coef.deep=1", "ppo.kl_coef=["])
def test_an_assignment_that_makes_no_sense_is_told(wrong: str) -> None:
    with pytest.raises(ParameterError, match="--set"):
        set_value({"ppo": {"kl_coef": 0.1}}, wrong)


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "resources.yaml").write_text("spark: {master: 'local[1]', driver_memory: 3g}\n", "utf-8")
    monkeypatch.setenv("GRISTMILL_SPARK__MASTER", "local[7]")
    monkeypatch.setenv("GRISTMILL_TRACKING__URI", "http://127.0.0.1:5001")
    resources = load_resources(tmp_path / "resources.yaml")
    assert (resources.spark.master, resources.spark.driver_memory) == ("local[7]", "3g")
    assert resources.tracking.uri == "http://127.0.0.1:5001"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="params.yaml does not exist"):
        read_yaml(tmp_path / "params.yaml")
