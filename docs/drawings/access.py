# SPDX-License-Identifier: Apache-2.0
"""Who reaches whose memory, inside a node."""

from __future__ import annotations

from canvas import Canvas


def draw() -> Canvas:
    canvas = Canvas(800, 330, "Who reaches whose memory: kernels and CPU threads, GPU memory and host memory")
    canvas.text(100, 28, "who", kind="faint", small=True)
    canvas.text(690, 28, "whose memory", kind="faint", small=True)
    canvas.box(20, 40, 160, 80, "kernel\non a GPU rank", "gpu")
    canvas.box(20, 210, 160, 80, "CPU thread\nof any rank", "host")
    canvas.box(600, 40, 180, 80, "GPU memory\nof any GPU of the node", "gpu")
    canvas.box(600, 210, 180, 80, "host memory\nof any rank of the node", "host")
    canvas.arrow((180, 70), (600, 70), "gpu")
    canvas.text(390, 62, "load, store, atomic")
    canvas.arrow((180, 105), (600, 232), "gpu", dashed=True)
    canvas.text(20, 150, "load, store; atomics only where", "start", True)
    canvas.text(20, 166, "the GPU's exclude those of CPUs", "start", True)
    canvas.arrow((180, 225), (600, 105), "host", dashed=True)
    canvas.text(780, 150, "copies and stream writes;", "end", True)
    canvas.text(780, 166, "words also by engines' threads", "end", True)
    canvas.arrow((180, 265), (600, 265), "host")
    canvas.text(390, 284, "load, store, atomic")
    canvas.text(
        20,
        318,
        "solid: everything works; dashed: only what is written there; the rest is refused",
        "start",
        True,
        "faint",
    )
    return canvas
