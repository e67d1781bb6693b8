# SPDX-License-Identifier: Apache-2.0
"""The fields of records, by kind of event. Fields that are not named here may have any value, and are not used."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Ranks = Annotated[int, Meta(ge=1, le=1 << 20)]
Number = Annotated[float, Meta(ge=-1e30, le=1e30)]
Positive = Annotated[float, Meta(gt=0, le=1e30)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Word = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.+-]{1,64}$")]  # it becomes part of file names


class Fields(msgspec.Struct):
    """The fields of an event: those without a default are required."""


class Host(Fields, kw_only=True):
    cores_allowed: Count | None = None


class Environment(Fields, kw_only=True):
    commit: str | None = None
    dirty: bool | None = None
    devices: list[dict[str, Any]] | None = None
    host: Host | str | None = None


class Progress(Fields, kw_only=True):
    operation: str | None = None
    method: str | None = None
    bytes: Count | None = None
    done: Number | None = None
    total: Number | None = None
    left_s: Number | None = None


class Step(Fields, kw_only=True):
    """The end of a step of a long measurement."""

    name: Name
    asked: dict[str, Any]
    results: Count


class Part(Fields, kw_only=True):
    """A kind of component."""

    watts: Number | None
    joules: Number | None
    joules_error: Number | None = None
    joules_above_idle: Number | None = None
    joules_above_idle_error: Number | None = None
    reason: str | None = None


class Parts(Fields, kw_only=True):
    gpu: Part
    cpu: Part
    dram: Part


class Spent(Fields, kw_only=True):
    """The energy of an operation, or of a unit that an application counts."""

    components: Parts
    seconds: Positive
    cpu_cores: Number
    error: Number | None = None  # of the joules, as a share
    spread: Number | None = None
    gpus: list[dict[str, Any] | None] = []
    wait_policy: Name = "automatic"
    wait_period_us: Count = 0
    power: dict[Name, list[tuple[Number, Number]]] | None = None


class Settings(Fields, kw_only=True):
    blocks: Count | None = None
    control: str | None = None
    matrix: Count | None = None
    stride: Number | None = None
    threads: Number | None = None
    type: Name | None = None


class Measurement(Fields, kw_only=True):
    """A result of `beeline bench`."""

    operation: Word
    method: Name
    bytes: Count
    ranks: Ranks
    settings: Settings
    available: bool | None = None
    reason: str | None = None
    unit: Name | None = None
    median: Number | None = None
    bus_gb_per_s: Number | None = None
    cpu_cores: Number | None = None
    samples: list[Number] | None = None
    verified: bool | None = None
    peer_of: Name | None = None
    baseline: Name | None = None
    ratio_to_baseline: Number | None = None
    energy: Spent | None = None
    single_us: Number | None = None
    call_us: Number | None = None
    launch_us: Number | None = None
    transfer_us: Number | None = None
    wait_us: Number | None = None
    first_us: Number | None = None
    last_transfer: str | None = None

    def __post_init__(self) -> None:
        if self.median is None:
            return
        if self.unit is None:
            raise ValueError("a median without a unit")
        if self.unit.startswith("nJ") and (self.energy is None or self.median <= 0):
            raise ValueError(f"a median of {self.median:g} {self.unit}, which takes a field energy and more than 0")
        # Medians of parts are differences, and may be 0 or negative.
        if self.median <= 0 and (self.bus_gb_per_s is not None or self.settings.control is not None):
            raise ValueError(f"calls of {self.median:g} {self.unit}")


class Overlap(Measurement, kw_only=True):
    """A result of `beeline bench overlap`."""

    samples: list[dict[str, Number]] | None = None
    allreduce_alone_us: Number | None
    allreduce_beside_us: Number | None
    matmul_alone_tflops: Number | None
    matmul_beside_tflops: Number | None
    matmul_slowdown: Number | None
    lost_us: Number | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.median is not None and self.matmul_slowdown is None:
            raise ValueError("a median without matmul_slowdown")


class Accuracy(Fields, kw_only=True):
    """A result of `beeline bench accuracy`."""

    method: Name
    ranks: Ranks
    available: bool
    reason: str | None = None
    type: Name | None = None
    reduction: Name | None = None
    data: Name | None = None
    digest: Count | None = None
    max_ulp: Number | None
    mean_ulp: Number | None
    max_relative: Number | None
    correctly_rounded: Number | None
    wrong: Count | None
    verified: bool | None = None

    def __post_init__(self) -> None:
        for name in ("type", "reduction", "data", "digest") if self.available else ():
            if getattr(self, name) is None:
                raise ValueError(f"an available method without {name}")


class Application(Fields, kw_only=True):
    app: Word
    method: Name
    ranks: Ranks
    device: str | None = None
    verified: bool | None = None
    energy: Spent | None = None
    size: list[Count] | None = None
    iterations: Count | None = None
    verified_iterations: Count | None = None
    seconds: Positive | None = None
    samples_seconds: list[Number] | None = None
    launch_seconds: Number | None = None
    cpu_seconds: Number | None = None
    communication_share: Number | None = None
    overlap_efficiency: Number | None = None
    bound_share: Number | None = None
    max_error: Number | None = None
    mflops: Number | None = None
    gosa: Number | None = None
    gosa_reference: Number | None = None
    gosa_float32: Number | None = None
    mflop_per_joule: Number | None = None
    columns: Count | None = None
    rows: Count | None = None
    updates_per_second: Number | None = None
    updates_per_joule: Number | None = None
    picoseconds_per_update: Number | None = None
    sweeps: Count | None = None
    words: Count | None = None
    updates: Count | None = None
    update_share: Number | None = None
    errors: Count | None = None
    max_change: Number | None = None
    converged: bool | None = None
    bytes: Count | None = None
    bus_bytes_per_second: Number | None = None
    lanes: Count | None = None
    values: Count | None = None
    reductions_per_second: Number | None = None
    reductions_per_joule: Number | None = None
    nodes: Count | None = None
    deepest: Count | None = None
    nodes_per_second: Number | None = None
    searches_per_joule: Number | None = None
    scale: Count | None = None
    roots: Count | None = None
    validated_roots: Count | None = None
    teps: Number | None = None
    edges_per_joule: Number | None = None

    def __post_init__(self) -> None:
        lacking = [name for name in ("size", "seconds", "iterations") if getattr(self, name) is None]
        if self.launch_seconds is not None and lacking:
            raise ValueError(f"launch_seconds without {', '.join(lacking)}")


class OnDevices(Application, kw_only=True):
    """A result of a program without ranks."""

    ranks: None = None  # type: ignore[assignment]
    devices: Ranks
    halo_bytes: Count | None = None
    steps: Count | None = None
    verified_steps: Count | None = None
    compute_seconds: Number | None = None
    keys: Count | None = None
    key_bits: Count | None = None
    keys_per_second: Number | None = None
    elements: Count | None = None
    transforms: Count | None = None
    local_seconds: Number | None = None
    bound_seconds: Number | None = None
    relative_error: Number | None = None


class Himeno(Application, kw_only=True):
    device: str
    size: list[Count]
    iterations: Count
    seconds: Positive
    mflops: Number


class RingReduction(Application, kw_only=True):
    bytes: Count


APPLICATIONS = {
    "fft": OnDevices,
    "himeno": Himeno,
    "merge_sort": OnDevices,
    "ring_reduction": RingReduction,
    "stencil": OnDevices,
}


class Component(Fields, kw_only=True):
    kind: Name
    name: Name
    device: str
    tick_s: Number
    range_joules: Number | None


class MeteredEnvironment(Environment, kw_only=True):
    """The environment of `beeline energy`."""

    components: list[Component]
    arguments: list[str] = []


class Sample(Fields, kw_only=True):
    time_s: Number
    component: Name
    joules: Number | None = None
    watts: Number | None = None
    reason: str | None = None


class ComponentJoules(Fields, kw_only=True):
    name: Name
    joules: Number | None


class MeteredResult(Fields, kw_only=True):
    components: list[ComponentJoules]


def fields_of(event: dict[str, Any]) -> type[Fields]:
    """The fields that an event must have; for a result they depend on its kind of measurement."""
    kind = event.get("event", "result")
    if kind == "environment":
        return MeteredEnvironment if "components" in event else Environment
    if kind != "result":
        return {"sample": Sample, "energy_step": Step, "progress": Progress}.get(str(kind), Fields)
    if "app" in event:
        return APPLICATIONS.get(str(event["app"]), Application)
    if "components" in event:
        return MeteredResult
    if "max_ulp" in event:
        return Accuracy
    return Overlap if "matmul_slowdown" in event else Measurement
