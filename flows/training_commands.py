"""The commands of `gristmill` that look into training."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from flows.project import PARAMETERS, BadInput
from flows.tables import size, table

if TYPE_CHECKING:
    from tasks.resources import Accelerator, Resources
    from tasks.training.plan import MemoryOf, Plan

EXCERPT = 96
"""Characters of a piece that are shown."""


def trace(project: Path, step: int, sequence: int | None) -> int:
    """Print the documents of a step of pretraining, one line for each piece of the batch."""
    from tasks.parameters import ParameterError, load_section
    from tasks.stage import StageError
    from tasks.training.pretrain import PretrainParams
    from tasks.training.trace import trace as trace_step

    data = project / "data"
    try:
        params = load_section(project / PARAMETERS, "pretrain", PretrainParams)
        if step > params.steps:
            raise BadInput(f"pretraining has {params.steps} steps (pretrain.steps): there is no step {step}")
        pieces = list(
            trace_step(
                step, data / "tokens", data / "snapshot", params.context, params.batch_size, params.seed
            )
        )
    except (ParameterError, StageError) as error:
        raise BadInput(str(error)) from None
    if sequence is not None and not 0 <= sequence < params.batch_size:
        raise BadInput(
            f"a batch has {params.batch_size} sequences (pretrain.batch_size), 0 to {params.batch_size - 1}"
        )
    print("row  from  tokens  document                          copy  characters")
    for piece in pieces:
        if sequence in (None, piece.sequence):
            place = f"{piece.sequence:3d}  {piece.position:4d}  {piece.tokens:6d}"
            where = f"{piece.document}  {piece.copy:4d}  {piece.start}–{piece.end}"
            print(f"{place}  {where}  {_excerpt(piece.text)}")
    print("\n`gristmill explain ID` tells a document's story")
    return 0


def plan(project: Path, resources: Resources, arguments: argparse.Namespace) -> int:
    """Print what pretraining with the project's parameters, changed by ``--set``, will need and cost."""
    from tasks.parameters import ParameterError, read_yaml, set_value, validate
    from tasks.training.model_params import model_config
    from tasks.training.plan import plan as make_plan
    from tasks.training.precision import choose_device, resolve_precision
    from tasks.training.pretrain import PretrainParams

    if arguments.devices < 1:
        raise BadInput(f"--devices {arguments.devices} is not a number from 1 up")
    try:
        content = read_yaml(project / PARAMETERS)
        for assignment in arguments.set:
            set_value(content, assignment)
        params = validate(content.get("pretrain") or {}, PretrainParams, f"{PARAMETERS}: pretrain")
        here = arguments.on == "here"
        device = choose_device(resources.training) if here else None
        precision = params.precision if params.precision != "auto" else "bf16"
        if device is not None:
            precision = resolve_precision(params.precision, device)
        vocabulary = arguments.vocabulary or _vocabulary(project, content)
        config = model_config(
            params.model, vocab_size=vocabulary, context=params.context, bos=None, eos=None, pad=None
        )
        made = make_plan(
            config,
            steps=params.steps,
            batch_size=params.batch_size,
            micro_batch_size=params.micro_batch_size,
            context=params.context,
            precision=precision,
            device=arguments.on,
            accelerator=_accelerator(resources, arguments.on, precision),
            devices=arguments.devices,
            checkpoint_activations=arguments.recompute,
        )
    except (ParameterError, ValueError) as error:
        raise BadInput(str(error)) from None
    _print_plan(made, vocabulary)
    return 0


def _vocabulary(project: Path, content: dict) -> int:
    from tasks.corpus.encode import EncodeParams
    from tasks.corpus.encoding.index import read_index
    from tasks.parameters import validate

    tokens = project / "data" / "tokens"
    if (tokens / "index.json").exists():
        return read_index(tokens).vocab_size
    return validate(content.get("encode") or {}, EncodeParams, f"{PARAMETERS}: encode").vocabulary


def _accelerator(resources: Resources, name: str, precision: str) -> Accelerator:
    import psutil
    import torch

    from tasks.resources import Accelerator
    from tasks.training.plan import HERE, measured_teraflops

    if name != HERE:
        if name not in resources.accelerators:
            known = ", ".join([*resources.accelerators, HERE])
            raise BadInput(f"resources.yaml has no accelerators.{name}; known are {known}")
        return resources.accelerators[name]
    memory = psutil.virtual_memory().total
    if torch.cuda.is_available() and resources.training.accelerator != "cpu":
        memory = torch.cuda.get_device_properties(0).total_memory
    kind = "bf16" if precision == "bf16" else "fp32"
    return Accelerator(memory_gib=memory / 2**30, teraflops={kind: measured_teraflops(kind)})


def _print_plan(plan: Plan, vocabulary: int) -> None:
    one = "measured just now" if plan.device == "here" else "as its maker states"
    devices = f"{plan.devices} × {plan.device}"
    rows = [
        ("parameters", f"{plan.parameters:,} with a vocabulary of {vocabulary:,}"),
        ("of them in a token's products", f"{plan.active_parameters:,}"),
        ("operations for a token", f"{plan.flops_per_token:.3g}, forward and backward"),
        ("tokens", f"{plan.tokens:,}, {plan.tokens / plan.parameters:.1f} for each parameter"),
        ("peak of a device", f"{plan.peak_flops / 1e12:.3g} teraflops in {plan.precision}, {one}"),
        ("of it reached", f"{plan.utilisation:.0%}, assumed or from resources.yaml"),
        ("tokens a second", f"{plan.tokens_per_second:,.0f} on {devices}"),
        ("time", _duration(plan.hours)),
        ("cost", "no price_per_hour for it in resources.yaml" if plan.cost is None else f"{plan.cost:,.2f}"),
    ]
    width = max(len(name) for name, _ in rows)
    print("\n".join(f"{name:<{width}}  {text}" for name, text in rows))
    print("\nmemory of a device, estimated\n")
    head = ("strategy", "weights", "gradients", "optimizer", "activations", "together", "in host", "fits")
    print(table([head, *(_memory_row(entry) for entry in plan.memory)]))


def _memory_row(entry: MemoryOf) -> tuple[str, ...]:
    memory = entry.memory
    kept = (memory.weights, memory.gradients, memory.optimizer, memory.activations)
    parts = (*kept, memory.device, memory.host)
    fits = {None: "?", True: "yes", False: "no"}[entry.fits]
    return (entry.strategy + (" + offload" if entry.offload else ""), *map(size, parts), fits)


def _duration(hours: float) -> str:
    if hours < 1 / 60:
        return f"{hours * 3600:.0f} s"
    return f"{hours * 60:.0f} min" if hours < 2 else f"{hours:,.1f} h"


def _excerpt(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= EXCERPT else f"{shown[: EXCERPT // 2]} … {shown[-EXCERPT // 2 :]}"
