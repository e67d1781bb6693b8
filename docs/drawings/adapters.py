# SPDX-License-Identifier: Apache-2.0
"""The bytes that kernels and adapters exchange: a work request and a completion of the verbs-style format, a descriptor
and a notification of the RMA-style format."""

from __future__ import annotations

from canvas import Canvas

LEFT, WIDTH, ROW = 120, 740, 34
Field = tuple[str, int]  # name, and its bits


def row(canvas: Canvas, y: float, label: str, fields: list[Field], kind: str = "") -> None:
    """One line of memory: the widths of its fields are in proportion to their bits, but for the narrowest ones."""
    canvas.text(LEFT - 10, y + ROW / 2 + 5, label, "end", small=True)
    least = 34
    wide = [max(least, WIDTH * bits / sum(bits for _, bits in fields)) for _, bits in fields]
    spare = sum(wide) - WIDTH
    largest = wide.index(max(wide))
    wide[largest] -= spare
    x = float(LEFT)
    for (name, _), width in zip(fields, wide, strict=True):
        canvas.box(x, y, width, ROW, "", kind)
        canvas.text(x + width / 2, y + ROW / 2 + 5, name, small=True)
        x += width


def draw() -> Canvas:
    canvas = Canvas(880, 640, "Descriptors and completions of software adapters")
    canvas.text(20, 28, "Verbs-style work request: 64 bytes, big-endian; the doorbell counts requests", "start")
    rows: list[tuple[str, list[Field]]] = [
        ("bytes 0 to 15", [("owner 1, opcode 31", 32), ("flags", 8), ("segments", 14), ("payload bytes", 16),
                           ("request index", 32), ("immediate", 32)]),
        ("16 to 31", [("remote address", 64), ("remote key", 32), ("bytes in all", 32)]),
        ("32 to 47", [("bytes of segment 0", 32), ("its key", 32), ("its address", 64)]),
        ("48 to 63", [("bytes of segment 1", 32), ("its key", 32), ("its address", 64)]),
    ]  # fmt: skip
    y = 40
    for label, fields in rows:
        row(canvas, y, label, fields, "gpu")
        y += ROW
    note = "bytes 32 to 63 of an atomic: operand, expected value (8 bytes each); or up to 32 bytes of payload"
    canvas.text(LEFT, y + 18, note, "start", True, "faint")
    y += 48
    canvas.text(20, y, "Verbs-style completion: 32 bytes, big-endian, the owner stored last", "start")
    completion: list[tuple[str, list[Field]]] = [
        ("bytes 0 to 15", [("queue pair", 32), ("request index", 32), ("old value of an atomic", 64)]),
        ("16 to 31", [("immediate", 32), ("bytes", 32), ("opcode", 10), ("status", 10), ("receive", 10), ("0", 24),
                      ("owner", 10)]),
    ]  # fmt: skip
    y += 12
    for label, fields in completion:
        row(canvas, y, label, fields, "host")
        y += ROW
    y += 32
    canvas.text(20, y, "RMA-style descriptor: three words in the requester page, word 0 stored last", "start")
    descriptor: list[tuple[str, list[Field]]] = [
        ("word 0, bit 63 to 0", [("0", 2), ("size - 1", 23), ("modifier", 7), ("units", 5), ("node", 16), ("vpid", 8),
                                 ("0", 2), ("command", 7), ("3", 2)]),
        ("word 1", [("source address; number of a lock", 64)]),
        ("word 2", [("destination address; operand and expected value of a lock; value", 64)]),
    ]  # fmt: skip
    y += 12
    for label, fields in descriptor:
        row(canvas, y, label, fields, "gpu")
        y += ROW
    y += 32
    canvas.text(20, y, "RMA-style notification: two words, word 1 stored last; 0 is a free entry", "start")
    notification: list[tuple[str, list[Field]]] = [
        ("word 0", [("own end of the request; number and old value of a lock; value", 64)]),
        ("word 1, bit 63 to 0", [("0", 2), ("size - 1", 23), ("node", 16), ("vpid", 8), ("error", 5), ("modifier", 7),
                                 ("command", 7), ("kind", 4)]),
    ]  # fmt: skip
    y += 12
    for label, fields in notification:
        row(canvas, y, label, fields, "host")
        y += ROW
    canvas.text(20, y + 26, "green: written by posters; blue: written by adapters", "start", True, "faint")
    return canvas
