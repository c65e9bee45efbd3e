from __future__ import annotations

from pathlib import Path

import pytest

from flows import alignment, corpus, pipeline, pretraining, release
from flows.graph import read_graph
from flows.project import BadInput

ROOT = Path(__file__).parents[2]


def test_the_pipeline_names_every_stage_in_an_order_that_the_graph_allows():
    graph = read_graph(ROOT)
    assert sorted(pipeline.STAGES) == sorted(graph.stages)
    for position, name in enumerate(pipeline.STAGES):
        assert graph.upstream[name] <= set(pipeline.STAGES[:position])


def test_the_parts_make_up_the_pipeline():
    parts = (corpus, pretraining, alignment, release)
    assert [name for part in parts for name in part.STAGES] == [*pipeline.STAGES]


def test_a_policy_that_dvc_yaml_misspells_is_refused(pair):
    graph = (pair.folder / "dvc.yaml").read_text()
    (pair.folder / "dvc.yaml").write_text(graph.replace("retry_delay_seconds", "retry_delay"))
    with pytest.raises(BadInput, match=r"stages.first.meta(?s:.)*did you mean `retry_delay_seconds`"):
        read_graph(pair.folder)


def test_a_graph_that_is_no_yaml_is_refused_with_its_path(pair):
    (pair.folder / "dvc.yaml").write_text("stages: [")
    with pytest.raises(BadInput, match=r"dvc\.yaml"):
        read_graph(pair.folder)
