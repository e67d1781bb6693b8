# SPDX-License-Identifier: Apache-2.0
"""The meter: joules of a window, and power over time, by component.

Unknown values are None, with the reason beside them::

    meter = Meter()
    window = meter.start()      # blocks until the counters tick: up to 100 ms with GPUs
    work()                      # several seconds: NVML's counter advances every 100 ms
    measured = meter.stop(window)
    for part in measured.components:
        print(part.component.name, part.joules, part.watts, part.reason)
"""

from __future__ import annotations

from beeline.energy_record import Record, read_record
from beeline.library import Component, ComponentEnergy, Measured, Meter, Sample, Window, _beeline

__all__ = [
    "Component", "ComponentEnergy", "Measured", "Meter", "Record", "Sample", "Window", "read_record", "replay",
]  # fmt: skip


def replay(record: Record, begin_s: float, end_s: float, *, widen: bool = False) -> Measured:
    """The energy between two times of a record, as a meter would have measured it then.

    The samples of a record have no CPU time: the CPU time in the result is that of this process.
    """
    rows = []
    for device in record.components:
        component = Component(
            device["kind"], device["name"], device["device"], device["tick_s"], device["range_joules"]
        )
        samples = record.samples.get(device["name"]) or [{"time_s": 0.0, "reason": "the record has no sample of it"}]
        counted = [one for one in samples if one.get("joules") is not None or one.get("reason")]
        readings = [(one["time_s"], one.get("joules"), one.get("watts"), one.get("reason") or "") for one in counted]
        rows.append((component, readings))
    return _beeline._replay(rows, begin_s, end_s, widen)
