"""A release is what others load: with transformers, offline, giving what the aligned model gives."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from tasks.parameters import validate
from tasks.release.release import ReleaseParams, release
from tasks.release.verification import verify_release
from tasks.resources import Resources
from tasks.stage import StageError, Tracker


def released(finished, out: Path, **params) -> Path:
    data, artifacts, _ = finished
    resources = validate({}, Resources, "resources.yaml")
    release(
        artifacts / "aligned",
        artifacts / "assessment",
        data / "snapshot",
        out,
        params=ReleaseParams(**params),
        resources=resources,
        tracker=Tracker(),
    )
    return out


@pytest.fixture(scope="module")
def directory(finished, tmp_path_factory) -> Path:
    return released(finished, tmp_path_factory.mktemp("out") / "release")


def test_transformers_loads_it_with_equal_logits(finished, directory):
    from transformers import AutoModelForCausalLM

    from models.hub import load_model

    tokens_BT = torch.arange(40).reshape(2, 20)
    theirs = AutoModelForCausalLM.from_pretrained(directory)
    ours = load_model(finished[1] / "aligned").eval()
    with torch.no_grad():
        torch.testing.assert_close(theirs(tokens_BT).logits, ours(tokens_BT), rtol=1e-4, atol=1e-5)
    assert theirs.generation_config.max_new_tokens == 64
    assert theirs.generation_config.eos_token_id == ours.config.eos_token_id


def test_its_chat_template_writes_what_training_wrote(directory):
    from transformers import AutoTokenizer

    from tasks.training.chat import ChatTokenizer, Message

    tokenizer = AutoTokenizer.from_pretrained(directory)
    messages = [{"role": "user", "content": "Who grinds?"}]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
    assert ids == ChatTokenizer(directory).prompt([Message(role="user", content="Who grinds?")])


def test_the_card_says_what_the_model_is_made_of(finished, directory):
    card = (directory / "README.md").read_text("utf-8")
    _, front, body = card.split("---\n", 2)
    assert yaml.safe_load(front)["language"] == ["en", "fr"]
    manifest = json.loads((finished[0] / "snapshot" / "manifest.json").read_text())
    assert manifest["snapshot"] in body
    assert "| books | public domain | 2 |" in body
    assert "| unigram | 742.5 | 2.805 |" in body
    assert "| Mean reward on held-out prompts: aligned less tuned | -0.02 | > 0 | failed |" in body


def test_licences_of_documents_and_instructions_are_listed(directory):
    licences = (directory / "LICENSES.md").read_text("utf-8")
    assert "| manuals | GPL-2+ or CC-BY-SA-3.0 | 1 |" in licences
    assert "| chatterbot-corpus | BSD-3-Clause | 1,414 |" in licences


def test_the_manifest_has_the_checksum_of_every_other_file(directory):
    manifest = json.loads((directory / "release.json").read_text())
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.iterdir()
        if path.name != "release.json"
    }
    assert {name: file["sha256"] for name, file in manifest["files"].items()} == found
    assert set(manifest["parameters"]) == {"collect", "clean", "release"}


def test_the_same_inputs_give_the_same_bytes(finished, directory, tmp_path):
    again = released(finished, tmp_path / "again")
    assert sorted(p.name for p in again.iterdir()) == sorted(p.name for p in directory.iterdir())
    for path in directory.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes(), path.name


def test_half_precision_halves_the_weights_and_is_verified(finished, directory, tmp_path):
    half = released(finished, tmp_path / "half", dtype="bfloat16")
    sizes = [(d / "model.safetensors").stat().st_size for d in (half, directory)]
    assert sizes[0] < 0.6 * sizes[1]
    found = json.loads((half / "release.json").read_text())["verification"]
    assert 0 < found["largest_logit_difference"] < 1
    assert found["top_token_agreement"] > 0.5


def test_weights_that_differ_are_refused(finished, directory, tmp_path):
    from safetensors.torch import load_file, save_file

    broken = tmp_path / "broken"
    shutil.copytree(directory, broken)
    tensors = load_file(broken / "model.safetensors")
    tensors["model.norm.weight"][3] += 0.01
    save_file(tensors, broken / "model.safetensors", {"format": "pt"})
    with pytest.raises(StageError, match="does not compute"):
        verify_release(finished[1] / "aligned", broken, torch.float32)


def test_a_tokenizer_that_differs_is_refused(finished, directory, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(directory, broken)
    (broken / "tokenizer.json").write_text((broken / "tokenizer.json").read_text() + " ")
    with pytest.raises(StageError, match=r"tokenizer\.json"):
        verify_release(finished[1] / "aligned", broken, torch.float32)


def test_an_assessment_of_another_snapshot_is_refused(finished, tmp_path):
    data, artifacts, reports = finished
    other = tmp_path / "artifacts"
    shutil.copytree(artifacts, other)
    results = json.loads((other / "assessment" / "results.json").read_text())
    (other / "assessment" / "results.json").write_text(json.dumps(results | {"snapshot": "f" * 64}))
    with pytest.raises(StageError, match="snapshot"):
        released((data, other, reports), tmp_path / "release")
    assert not (tmp_path / "release").exists()
