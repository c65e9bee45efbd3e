"""Where and with how much a stage runs: what ``resources.yaml`` holds.

Nothing here decides a result, so nothing here is hashed: moving to a cluster makes no stage run again.
Each key may be overridden by an environment variable, ``GRISTMILL_<SECTION>__<KEY>``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SparkResources(_Section):
    """The Spark cluster that data stages run on."""

    master: str = Field(
        default="local[*]", description="local[*], local[N], spark://host:port, yarn, k8s://…"
    )
    driver_memory: str = Field(
        default="2g", pattern=r"^\d+[kmgt]$", description="Java heap of the driver, e.g. 2g"
    )
    java_options: str = Field(
        default="", description="for the driver's Java, e.g. -XX:TieredStopAtLevel=1 for short jobs"
    )
    partitions: int | None = Field(
        default=None, ge=1, description="shuffle partitions; empty: two for each core"
    )
    config: dict[str, str] = Field(default={}, description="further Spark settings, passed on as they are")


class TrainingResources(_Section):
    """The devices that training runs on."""

    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    devices: int = Field(default=1, ge=1, description="processes on this machine, one for each device")
    threads: int | None = Field(default=None, ge=1, description="CPU threads of a process; empty: all cores")


class Accelerator(_Section):
    """A kind of device that `gristmill plan` reckons with."""

    memory_gib: float | None = Field(default=None, gt=0, description="memory of one device")
    teraflops: dict[Literal["fp32", "bf16"], float] = Field(
        default={}, description="peak of its dense matrix products, by precision"
    )
    utilisation: float | None = Field(
        default=None, gt=0, le=1, description="share of the peak that training reaches; empty: assumed"
    )
    price_per_hour: float | None = Field(default=None, ge=0, description="of one device, in your currency")


class TrackingResources(_Section):
    """Where MLflow keeps runs: a server's address, or a database file on this machine."""

    uri: str = Field(default="sqlite:///work/mlflow.db", description="sqlite:///path or http(s)://host:port")
    experiment: str = "gristmill"


class ServerResources(_Section):
    """The addresses that `gristmill ui` binds to."""

    host: str = "127.0.0.1"
    prefect_port: int = Field(default=4200, ge=1, le=65535)
    mlflow_port: int = Field(default=5000, ge=1, le=65535)


class Retention(_Section):
    """How many of the newest snapshots keep each layer in DVC's cache on this machine; empty: all."""

    raw: int | None = Field(default=None, ge=1, description="data/raw")
    clean: int | None = Field(
        default=None, ge=1, description="data/scored to data/mixture, data/profile.json"
    )
    tokens: int | None = Field(default=None, ge=1, description="data/snapshot and data/tokens")


class StorageResources(_Section):
    """Where copies of snapshots go: a folder, a URL (s3://bucket/place), or the name of a remote of DVC's."""

    remote: str | None = Field(default=".dvc/storage", description="what `gristmill push` fills")
    cold: str | None = Field(default=None, description="what `gristmill push --cold` fills")
    retention: Retention = Retention()


class Resources(_Section):
    """All of ``resources.yaml``."""

    work: Path = Field(
        default=Path("work"), description="what may be thrown away: checkpoints, scratch, spools"
    )
    spark: SparkResources = SparkResources()
    training: TrainingResources = TrainingResources()
    accelerators: dict[str, Accelerator] = {}
    tracking: TrackingResources = TrackingResources()
    servers: ServerResources = ServerResources()
    storage: StorageResources = StorageResources()

    @property
    def kept(self) -> Path:
        """What stages keep of their last run for the next; a run in a worktree begins with the project's."""
        return self.work / "kept"
