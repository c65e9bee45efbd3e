"""The training loop that pretraining, supervised tuning and the reward model share.

One training step of Lightning is one optimizer step. A run is a pure function of its fingerprint: a process
that is killed and started again goes on from the newest checkpoint and ends with the same weights.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from tasks.parameters import StageParams
from tasks.resources import Resources
from tasks.stage import StageError, Tracker
from tasks.training.checkpoints import Checkpoint, CheckpointDirectory
from tasks.training.fingerprint import Fingerprint
from tasks.training.nonfinite import first_bad_layer
from tasks.training.objective import Batch, Examples, Objective, evaluate, micro_batches
from tasks.training.optimizer import OptimizerParams, adamw
from tasks.training.precision import Precision, ResolvedPrecision, autocast, choose_device, resolve_precision
from tasks.training.random_state import random_state, seeded, set_random_state
from tasks.training.schedule import ScheduleParams, learning_rate_ratio
from tasks.training.stopping import Stopped, StopRequest

log = logging.getLogger("gristmill")


class TrainerParams(StageParams):
    """What every stage on the shared loop has in its section of ``params.yaml``."""

    steps: int = Field(default=1000, ge=1, description="optimizer steps of the whole run")
    batch_size: int = Field(default=32, ge=1, description="examples of one optimizer step")
    micro_batch_size: int = Field(default=32, ge=1, description="examples that pass the model together")
    precision: Precision = "auto"
    seed: int = Field(default=0, ge=0)
    optimizer: OptimizerParams = OptimizerParams()
    schedule: ScheduleParams = ScheduleParams()
    validate_every: int = Field(
        default=200, ge=1, description="steps between validations; the last step always has one"
    )
    checkpoint_every: int = Field(default=1000, ge=1, description="steps between checkpoints")
    keep_checkpoints: int = Field(default=2, ge=1)
    log_every: int = Field(default=10, ge=1, description="steps between lines of the history")


@dataclass(frozen=True)
class FitResult:
    """How a run went; equal for equal runs, however often they were interrupted."""

    steps: int
    targets_seen: int
    precision: ResolvedPrecision
    history: list[dict[str, float]]
    """One entry every ``log_every`` steps: step, loss (mean per target since the last entry), learning_rate,
    gradient_norm (before clipping). One for every validation: step, validation_loss, validation_<measure>."""

    @property
    def train_loss(self) -> float:
        """Mean loss per target, in nats, over the last ``log_every`` steps."""
        return next(entry["loss"] for entry in reversed(self.history) if "loss" in entry)

    @property
    def validation(self) -> dict[str, float]:
        """The last validation: ``loss`` (mean per target) and the objective's measures."""
        last = next(entry for entry in reversed(self.history) if "validation_loss" in entry)
        return {key.removeprefix("validation_"): value for key, value in last.items() if key != "step"}


class TrainingDiverged(StageError):
    """The loss or the gradient is not a number; the message names the step and the first bad layer."""


def fit(
    model: nn.Module,
    objective: Objective,
    examples: Examples,
    params: TrainerParams,
    fingerprint: Fingerprint,
    resources: Resources,
    tracker: Tracker | None = None,
) -> FitResult:
    """Train ``model`` in place for ``params.steps`` steps, from the newest checkpoint where there is one.

    The loss of a step is summed over all its micro-batches and divided by the step's number of targets, so
    that the split does not matter. Checkpoints go to ``resources.work/checkpoints/<stage>/<fingerprint>/``;
    put `checkpoints.discard_when_published` around the stage to have them removed when its output stands.
    Build ``fingerprint`` with `fingerprint.fingerprint` from parameters whose precision `resolve_precision`
    has resolved. On return the model is on the CPU, in evaluation mode.

    At SIGTERM the step is finished and a checkpoint saved; then the process ends with status 143.

    Raises:
        ParameterError: if this machine cannot fulfil ``resources.training``.
        CheckpointError: if the checkpoints are all damaged, of another run, or in use.
        TrainingDiverged: if the loss or the gradient of a step is not finite; that step changed no weight.
        StageError: if a step has no targets.
        Stopped: after SIGTERM.
        OSError: if a checkpoint cannot be written; older ones are intact.
    """
    device = choose_device(resources.training)
    precision = resolve_precision(params.precision, device)
    tracker = tracker or Tracker()
    directory = CheckpointDirectory(resources.work, fingerprint, params.keep_checkpoints)
    with directory as checkpoints, StopRequest() as stop:
        model.to(device).train()
        run = _Run(model, objective, examples, params, precision, device, checkpoints, tracker, stop)
        run.resume()
        if run.progress.step < params.steps:
            _run_lightning(run)
        checkpoints.mark_finished()
    model.to("cpu").eval()
    return FitResult(params.steps, run.progress.targets_seen, precision, run.progress.history)


@dataclass
class _Progress:
    """What a run has behind it; together with the weights and the optimizer all that a resume needs."""

    step: int = 0
    targets_seen: int = 0
    loss_sum: float = 0.0  # since the last entry of the history
    loss_targets: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


class _Run:
    """One training run: the state that changes from step to step, and the steps."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        examples: Examples,
        params: TrainerParams,
        precision: ResolvedPrecision,
        device: torch.device,
        checkpoints: CheckpointDirectory,
        tracker: Tracker,
        stop: StopRequest,
    ) -> None:
        self.model = model
        self.objective = objective
        self.examples = examples
        self.params = params
        self.precision: ResolvedPrecision = precision
        self.device = device
        self.checkpoints = checkpoints
        self.tracker = tracker
        self.stop = stop
        self.optimizer = adamw(model, params.optimizer)
        self._random_state: dict[str, Any] | None = seeded(params.seed)
        self.progress = _Progress()
        self._clock = time.perf_counter()
        self._clock_targets = 0

    def resume(self) -> None:
        """Go on from the newest checkpoint, if there is one."""
        for other in self.checkpoints.others():
            log.info("not resumed: checkpoints of run %s", other)
        checkpoint = self.checkpoints.load_newest()
        if checkpoint is None:
            return
        weights = _weights(self.model)
        if weights.keys() != checkpoint.weights.keys():
            raise StageError(f"the weights of {self.checkpoints.path} are not those of this model")
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(checkpoint.weights[name])
        self.optimizer.load_state_dict(checkpoint.state["optimizer"])
        self.progress = _Progress(**checkpoint.state["progress"])
        self._random_state = checkpoint.state["random"]
        reached = max(self.checkpoints.reached(), checkpoint.step)
        log.info(
            "resumed from %s: step %d of %d, %d %s seen; steps %s",
            self.checkpoints.path,
            checkpoint.step,
            self.params.steps,
            self.progress.targets_seen,
            self.objective.unit,
            f"{checkpoint.step + 1} to {reached} are replayed"
            if reached > checkpoint.step
            else "none replayed",
        )

    def train_step(
        self, batch: Batch, backward: Callable[[Tensor], None], update: Callable[[], None]
    ) -> None:
        """One optimizer step on the whole batch of that step; ``update`` applies the gradients."""
        if self._random_state is not None:
            # Only now: starting up a loop and a loader draws random numbers too.
            set_random_state(self._random_state)
            self._random_state = None
        step = self.progress.step + 1
        targets = self.objective.targets(batch)
        if targets == 0:
            raise StageError(f"the batch of step {step} holds no {self.objective.unit} to learn from")
        learning_rate = self.params.optimizer.learning_rate * learning_rate_ratio(
            self.params.schedule, step, self.params.steps
        )
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.zero_grad(set_to_none=True)
        loss_sum = torch.zeros((), device=self.device)
        for micro_batch in micro_batches(batch, self.params.micro_batch_size):
            loss = self.objective.loss(self.model, micro_batch)
            backward(loss / targets)
            loss_sum += loss.detach()
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        if not torch.isfinite(loss_sum) or not torch.isfinite(norm):
            raise TrainingDiverged(self._diagnosis(step, batch, float(loss_sum) / targets, float(norm)))
        torch.nn.utils.clip_grads_with_norm_(self.model.parameters(), self.params.optimizer.clip_norm, norm)
        update()
        if self.objective.after_update is not None:
            self.objective.after_update(self.model)
        self.progress.step = step
        self.progress.targets_seen += targets
        self.progress.loss_sum += float(loss_sum)
        self.progress.loss_targets += targets
        self._clock_targets += targets
        self._record(learning_rate, float(norm))

    def after_step(self) -> None:
        """Validate and save where it is due; stop where that was asked for."""
        step, last = self.progress.step, self.progress.step == self.params.steps
        if step % self.params.validate_every == 0 or last:
            self._validate()
        stopping = self.stop.made and not last
        if step % self.params.checkpoint_every == 0 or last or stopping:
            self._save()
        if stopping:
            log.info("stopped by SIGTERM at step %d of %d, which is saved", step, self.params.steps)
            raise Stopped(step)

    def _record(self, learning_rate: float, gradient_norm: float) -> None:
        progress = self.progress
        if progress.step % self.params.log_every and progress.step != self.params.steps:
            return
        entry = {
            "step": progress.step,
            "loss": progress.loss_sum / progress.loss_targets,
            "learning_rate": learning_rate,
            "gradient_norm": gradient_norm,
        }
        progress.history.append(entry)
        progress.loss_sum, progress.loss_targets = 0.0, 0
        now = time.perf_counter()
        rate = self._clock_targets / max(now - self._clock, 1e-9)
        self._clock, self._clock_targets = now, 0
        log.info(
            "step %d of %d: loss %.4f, learning rate %.2e, gradient norm %.2f, %.0f %s/s",
            progress.step,
            self.params.steps,
            entry["loss"],
            learning_rate,
            gradient_norm,
            rate,
            self.objective.unit,
        )
        values = {f"train/{name}": value for name, value in entry.items() if name != "step"}
        self.tracker.metrics({**values, f"train/{self.objective.unit}_per_second": rate}, progress.step)
        self.checkpoints.note_reached(progress.step)

    def _validate(self) -> None:
        started = time.perf_counter()
        batches = self.examples.validation()
        measured = evaluate(self.model, self.objective, batches, self.precision, self.device)
        step = self.progress.step
        self.progress.history.append({"step": step, **{f"validation_{k}": v for k, v in measured.items()}})
        log.info(
            "step %d of %d: validation %s",
            step,
            self.params.steps,
            ", ".join(f"{name} {value:.4f}" for name, value in measured.items()),
        )
        self.tracker.metrics({f"validation/{name}": value for name, value in measured.items()}, step)
        self._clock += time.perf_counter() - started

    def _save(self) -> None:
        started = time.perf_counter()
        state = {
            "optimizer": self.optimizer.state_dict(),
            "progress": asdict(self.progress),
            "random": random_state(),
        }
        self.checkpoints.save(Checkpoint(self.progress.step, _weights(self.model), state))
        self._clock += time.perf_counter() - started

    def _diagnosis(self, step: int, batch: Batch, loss: float, norm: float) -> str:
        def forward() -> None:
            with autocast(self.precision, self.device):
                for micro_batch in micro_batches(batch, self.params.micro_batch_size):
                    self.objective.loss(self.model, micro_batch)

        return (
            f"step {step}: the loss is {loss} and the gradient norm {norm}; first bad layer: "
            f"{first_bad_layer(self.model, forward)}. The weights are those of step {step - 1}. "
            "A smaller optimizer.learning_rate or a longer schedule.warmup_steps often helps."
        )


def _run_lightning(run: _Run) -> None:
    """Drive the remaining steps with Lightning, in manual optimization, with nothing of it on the screen."""
    import pytorch_lightning as lightning
    from torch.utils.data import DataLoader, Dataset

    class Steps(Dataset[Batch]):
        """The batches of the steps that remain."""

        def __init__(self, first: int) -> None:
            self.first = first

        def __len__(self) -> int:
            return run.params.steps - self.first + 1

        def __getitem__(self, index: int) -> Batch:
            if index >= len(self):
                raise IndexError(index)
            return run.examples.at_step(self.first + index)

    class Loop(lightning.LightningModule):
        """Lightning's view of a run."""

        def __init__(self) -> None:
            super().__init__()
            self.model = run.model
            self.automatic_optimization = False

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return run.optimizer

        def training_step(self, batch: Batch, batch_idx: int) -> None:
            optimizer: Any = self.optimizers()
            run.train_step(batch, self.manual_backward, optimizer.step)

        def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
            run.after_step()

    for name in ("pytorch_lightning", "lightning.pytorch", "lightning_fabric"):
        for part in ("", ".utilities.rank_zero"):
            logging.getLogger(name + part).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        # Batches are computed in this process: they are quick, and workers would bring their own seeds.
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        warnings.filterwarnings("ignore", module="pytorch_lightning", category=FutureWarning)
        trainer = lightning.Trainer(
            accelerator="gpu" if run.device.type == "cuda" else "cpu",
            devices=1,
            precision="bf16-mixed" if run.precision == "bf16" else "32-true",
            max_epochs=1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(Loop(), DataLoader(Steps(run.progress.step + 1), batch_size=None))


def _weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters, a shared one once, and the buffers that belong to the state dict."""
    kept = model.state_dict().keys()
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return weights | {name: buffer for name, buffer in model.named_buffers() if name in kept}
