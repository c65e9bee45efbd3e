"""Proximal policy optimisation: the tuned model learns to write what the reward model scores highly.

The loop follows Ziegler et al. 2019 and Ouyang et al. 2022: draw responses, score each at its end, subtract a
penalty for every token that leads away from the tuned model, estimate advantages, and improve the clipped
surrogate for a few epochs on the same responses.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import nn

from models.heads import RewardModel, ValueModel
from models.transformer import CausalLM
from tasks.resources import Resources
from tasks.stage import Input, Output, StageError, StageReport, Tracker, run_as_stage, stage
from tasks.training.allocator import keep_freed_memory
from tasks.training.chat import ChatTokenizer
from tasks.training.checkpoints import Checkpoint, CheckpointDirectory, discard_when_published
from tasks.training.fingerprint import fingerprint
from tasks.training.instructions import InstructionRow, Split
from tasks.training.json_lines import RowCounts, Rows, read_rows
from tasks.training.model_directory import open_model, open_reward_model, write_model
from tasks.training.optimizer import adamw
from tasks.training.order import seed_of
from tasks.training.policy_comparison import Comparison, compare_policies
from tasks.training.ppo_update import COMPARISON, VALUE_HEAD, PpoParams, PpoState, ppo_update
from tasks.training.precision import choose_device, resolve_precision
from tasks.training.rollout import (
    Sampling,
)

log = logging.getLogger("gristmill")


class PpoReport(StageReport):
    """What `ppo` did: both models on the same held-out prompts with the same seed of sampling."""

    rows: RowCounts
    train_prompts: int
    held_out_prompts: int
    updates: int
    precision: str
    final_kl_coefficient: float
    comparison: Comparison


@discard_when_published
@stage
def ppo(
    tuned: Input,
    reward: Input,
    instructions: Input,
    aligned: Output,
    params: PpoParams,
    resources: Resources,
    tracker: Tracker,
) -> PpoReport:
    """Align the tuned model: raise its reward on the prompts of the training split, near to where it began.

    Raises:
        StageError: if a model, a tokenizer or the rows are not as they should be, or a loss is not finite.
    """
    keep_freed_memory()
    device = choose_device(resources.training)
    precision = resolve_precision(params.precision, device)
    policy, chat = open_model(tuned)
    reference, _ = open_model(tuned)
    reward_model, reward_chat = open_reward_model(reward)
    _check_same_tokens(chat, reward_chat, tuned, reward)
    _check_lengths(params, policy, reward_model)
    rows = read_rows(instructions, InstructionRow, max_broken=params.max_broken)
    prompts = _prompts(rows, chat, params.max_prompt_tokens)
    train, held_out = prompts["train"], prompts["held_out"][: params.held_out_prompts]
    if not train or not held_out:
        raise StageError(f"{instructions}: ppo needs rows with split `train` and rows with split `held_out`")
    for model in (policy, reference, reward_model):
        model.to(device).eval()
    for frozen in (reference, reward_model):
        frozen.requires_grad_(False)
    sampling = Sampling(
        params.max_new_tokens, params.temperature, torch.bfloat16 if precision == "bf16" else None
    )
    resolved = params.model_copy(update={"precision": precision})
    identity = fingerprint("ppo", [tuned, reward, instructions], resolved)
    with CheckpointDirectory(resources.work, identity, params.keep_checkpoints) as checkpoints:
        state = _resume(checkpoints, policy, reward_model, params)
        while state.update < params.updates:
            entry = ppo_update(state, reference, reward_model, chat, train, params, sampling)
            _record(state, entry, params.updates, tracker)
            if state.update % params.checkpoint_every == 0 or state.update == params.updates:
                checkpoints.save(_checkpoint(state))
        checkpoints.mark_finished()
    comparison = compare_policies(
        reference,
        policy,
        reward_model,
        chat,
        held_out,
        sampling,
        missing_eos_penalty=params.missing_eos_penalty,
        batch=params.prompts,
        seed=seed_of(params.seed, COMPARISON),
    )
    write_model(policy.cpu(), aligned, tokenizer_from=tuned, history=state.history)
    return PpoReport(
        rows=rows.counts(used=len(rows.good)),
        train_prompts=len(train),
        held_out_prompts=len(held_out),
        updates=state.update,
        precision=precision,
        final_kl_coefficient=state.kl_coefficient,
        comparison=comparison,
    )


def _resume(
    checkpoints: CheckpointDirectory, policy: CausalLM, reward_model: RewardModel, params: PpoParams
) -> PpoState:
    """The state that the newest checkpoint holds, or the one at the beginning.

    The value model begins as the reward model's trunk: it is to foretell that model's score, and these are
    the features from which the score is read (Stiennon et al. 2020, section 3.4).
    """
    value = ValueModel.from_trunk(reward_model.model, seed_of(params.seed, VALUE_HEAD)).requires_grad_(True)
    both = nn.ModuleDict({"policy": policy, "value": value})
    state = PpoState(policy, value, adamw(both, params.optimizer), params.kl.coefficient, 0, [])
    checkpoint = checkpoints.load_newest()
    if checkpoint is not None:
        with torch.no_grad():
            for name, parameter in both.named_parameters():
                parameter.copy_(checkpoint.weights[name])
        state.optimizer.load_state_dict(checkpoint.state["optimizer"])
        state.kl_coefficient = checkpoint.state["kl_coefficient"]
        state.history = checkpoint.state["history"]
        state.update = checkpoint.step
        log.info("resumed from %s: update %d of %d", checkpoints.path, state.update, params.updates)
    return state


def _checkpoint(state: PpoState) -> Checkpoint:
    both = nn.ModuleDict({"policy": state.policy, "value": state.value})
    return Checkpoint(
        step=state.update,
        weights={name: parameter.detach() for name, parameter in both.named_parameters()},
        state={
            "optimizer": state.optimizer.state_dict(),
            "kl_coefficient": state.kl_coefficient,
            "history": state.history,
        },
    )


def _record(state: PpoState, entry: dict[str, float], updates: int, tracker: Tracker) -> None:
    state.history.append({"step": state.update, **entry})
    tracker.metrics({f"train/{name}": value for name, value in entry.items()}, state.update)
    log.info(
        "update %d of %d: reward %.3f, KL %.3f per response, entropy %.2f, %.1f tokens, %.0f %% ended",
        state.update,
        updates,
        entry["reward"],
        entry["kl_per_response"],
        entry["entropy"],
        entry["response_tokens"],
        100 * entry["eos_rate"],
    )


def _prompts(rows: Rows[InstructionRow], chat: ChatTokenizer, context: int) -> dict[Split, list[list[int]]]:
    """The prompts of each split, equal ones once, in the order of the rows."""
    split: dict[Split, dict[tuple[int, ...], None]] = {"train": {}, "held_out": {}}
    for row in rows.good:
        split[row.split][tuple(chat.prompt(row.dialogue()[:-1], context))] = None
    return {name: [list(prompt) for prompt in prompts] for name, prompts in split.items()}


def _check_same_tokens(chat: ChatTokenizer, other: ChatTokenizer, tuned: Any, reward: Any) -> None:
    if chat.vocabulary() != other.vocabulary():
        raise StageError(
            f"{tuned} and {reward} have different tokenizers; train the reward model from the tuned model"
        )


def _check_lengths(params: PpoParams, policy: CausalLM, reward_model: RewardModel) -> None:
    # One more for the EOS that the reward model is shown where a response has none.
    needed = params.max_prompt_tokens + params.max_new_tokens + 1
    positions = min(m.config.max_position_embeddings for m in (policy, reward_model))
    if needed > positions:
        raise StageError(
            f"ppo.max_prompt_tokens {params.max_prompt_tokens} + ppo.max_new_tokens {params.max_new_tokens} "
            f"+ 1 are more than the {positions} positions of the models"
        )


if __name__ == "__main__":
    run_as_stage(ppo)
