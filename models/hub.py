import json
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from models.config import ModelConfig
from models.expert_weights import joined_experts, split_experts
from models.families import from_huggingface, to_huggingface
from models.heads import RewardModel
from models.transformer import CausalLM

TASKS = {CausalLM: "ForCausalLM", RewardModel: "ForSequenceClassification"}

CONFIG = "config.json"
GENERATION_CONFIG = "generation_config.json"
WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"


def save_model(model: CausalLM | RewardModel, directory: Path, *, dtype: torch.dtype = torch.float32) -> None:
    """Write `model` in the layout that transformers' `from_pretrained` reads.

    `config.json`, `model.safetensors` with weights of type `dtype`, and `generation_config.json` for a
    language model. A tied weight is written once. The same weights give the same bytes. Makes the directory
    where it is missing.
    """
    directory.mkdir(parents=True, exist_ok=True)
    settings = to_huggingface(model.config, TASKS[type(model)], str(dtype).removeprefix("torch."))
    tensors = {name: tensor.to("cpu", dtype).contiguous() for name, tensor in weights(model).items()}
    save_file(split_experts(tensors, settings["model_type"]), directory / WEIGHTS, metadata={"format": "pt"})
    if isinstance(model, CausalLM):
        tokens = ("bos_token_id", "eos_token_id", "pad_token_id")
        _write_json(directory / GENERATION_CONFIG, {name: getattr(model.config, name) for name in tokens})
    _write_json(directory / CONFIG, settings)


def weights(model: nn.Module) -> dict[str, Tensor]:
    """What a model directory holds, under our names: parameters, and buffers that training moves."""
    # named_parameters gives a shared parameter once, under its first name: the embedding.
    held = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return held | {
        name: tensor for name, tensor in model.state_dict().items() if name.endswith("expert_bias")
    }


def load_model(directory: Path) -> CausalLM:
    """Read a language model in fp32 from a directory in the Hugging Face layout of one of `models.families`.

    Raises `FileNotFoundError` for a missing file and `ValueError` for one that does not hold such a model;
    both name the file, and the settings or keys at fault.
    """
    model = _load(directory, CausalLM)
    model.tie_weights()
    return model


def load_reward_model(directory: Path) -> RewardModel:
    """Read a reward model in fp32 from a directory in the layout of the classes `…ForSequenceClassification`.

    Raises what `load_model` raises.
    """
    return _load(directory, RewardModel)


Model = TypeVar("Model", CausalLM, RewardModel)


def _load(directory: Path, kind: type[Model]) -> Model:
    config, model_type = _read_config(directory / CONFIG, TASKS[kind])
    path, tensors = _read_weights(directory)
    try:
        tensors = joined_experts(tensors, model_type, config.num_local_experts or 0)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if kind is CausalLM and config.tie_word_embeddings:
        _drop_tied_copy(tensors, path)
    # Built without memory: random numbers drawn only to be overwritten cost minutes in a big model.
    with torch.device("meta"):
        model = kind(config)
    _check_keys(model, tensors, path)
    model.model.rotary.to_empty(device="cpu")
    # A copy even of fp32: what safetensors returns maps the file, and a later save may replace that.
    owned = {name: tensor.to(torch.float32, copy=True) for name, tensor in tensors.items()}
    model.load_state_dict(owned, strict=False, assign=True)
    return model


def _read_config(path: Path, task: str) -> tuple[ModelConfig, str]:
    """The configuration and the name of its family."""
    settings = _read_json(path)
    found = settings.get("architectures")
    if found is not None and not any(str(name).endswith(task) for name in found):
        raise ValueError(f"{path}: architectures = {found}; expected one that ends in {task}")
    try:
        return from_huggingface(settings), settings["model_type"]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read_weights(directory: Path) -> tuple[Path, dict[str, Tensor]]:
    """All tensors of a directory, from one file or from the several that an index lists."""
    path, index = directory / WEIGHTS, directory / WEIGHTS_INDEX
    if path.exists() or not index.exists():
        return path, _read_tensors(path)
    shards = _read_json(index).get("weight_map")
    if not isinstance(shards, dict):
        raise ValueError(f"{index}: weight_map, the file of every key, is missing")
    tensors: dict[str, Tensor] = {}
    for shard in sorted(set(shards.values())):
        tensors |= _read_tensors(directory / shard)
    return index, tensors


def _read_tensors(path: Path) -> dict[str, Tensor]:
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; a model directory holds {CONFIG} and {WEIGHTS}")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path}: not a whole safetensors file ({error})") from error


def _drop_tied_copy(tensors: dict[str, Tensor], path: Path) -> None:
    """Some writers store a tied weight under both names; that is the same model only if they are equal."""
    head, embedding = tensors.pop("lm_head.weight", None), tensors.get("model.embed_tokens.weight")
    if head is not None and embedding is not None and not torch.equal(head, embedding):
        raise ValueError(
            f"{path}: lm_head.weight differs from model.embed_tokens.weight although "
            "tie_word_embeddings is true"
        )


def _check_keys(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in weights(model).items()}
    faults = []
    if missing := [name for name in expected if name not in tensors]:
        faults.append(f"missing keys: {_some(missing)}")
    if unexpected := [name for name in tensors if name not in expected]:
        faults.append(f"unexpected keys: {_some(unexpected)}")
    misshapen = [
        f"{name} {tuple(tensors[name].shape)} instead of {shape}"
        for name, shape in expected.items()
        if name in tensors and tuple(tensors[name].shape) != shape
    ]
    if misshapen:
        faults.append(f"wrong shapes: {_some(misshapen)}")
    if faults:
        raise ValueError(f"{path}: {'; '.join(faults)}")


def _some(items: list[str], limit: int = 8) -> str:
    items = sorted(items)
    return ", ".join(items[:limit]) + (f" and {len(items) - limit} more" if len(items) > limit else "")


def _read_json(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; a model directory holds {CONFIG} and {WEIGHTS}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error})") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: holds a {type(content).__name__}, not an object of settings")
    return content


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
