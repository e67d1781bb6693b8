# SPDX-License-Identifier: Apache-2.0
"""A canvas for the drawings of the documents: boxes, arrows and text as SVG, for light and dark pages."""

from __future__ import annotations

from xml.etree import ElementTree

FONT_SIZE, SMALL_SIZE, LINE_HEIGHT = 14, 12, 17
CHARACTER = 0.53  # mean width of a character in font sizes, rather too wide than too narrow

LIGHT = {
    "paper": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "plain": "#f3f5f7", "line": "#6e7781",
    "gpu": "#dafbe1", "gpu-line": "#1a7f37", "host": "#ddf4ff", "host-line": "#0969da",
    "mark": "#fff8c5", "mark-line": "#9a6700", "fault": "#ffebe9", "fault-line": "#cf222e",
}  # fmt: skip
DARK = {
    "paper": "#0d1117", "ink": "#e6edf3", "faint": "#9198a1", "plain": "#1c2129", "line": "#8b949e",
    "gpu": "#12351f", "gpu-line": "#3fb950", "host": "#0c2d52", "host-line": "#58a6ff",
    "mark": "#3b2e0a", "mark-line": "#d29922", "fault": "#451a1c", "fault-line": "#f85149",
}  # fmt: skip
KINDS = ("gpu", "host", "mark", "fault")


class Canvas:
    """A picture of `width` x `height` pixels, on paper of its own, so that text is legible on whatever page."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.root = ElementTree.Element(
            "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", width=str(width), role="img"
        )
        self.add("title").text = title
        self.add("style").text = style()
        marker = self.add("defs")
        for kind in ("line", *KINDS):
            head = ElementTree.SubElement(
                marker, "marker", id=f"head-{kind}", viewBox="0 0 8 8", refX="7", refY="4", markerWidth="7",
                markerHeight="7", orient="auto-start-reverse",
            )  # fmt: skip
            ElementTree.SubElement(head, "path", {"d": "M0 0L8 4L0 8z", "class": f"head {kind}"})
        self.add("rect", width=str(width), height=str(height), rx="8", style="paper")

    def add(self, tag: str, style: str = "", **attributes: str) -> ElementTree.Element:
        return ElementTree.SubElement(self.root, tag, attributes | ({"class": style} if style else {}))

    def box(self, x: float, y: float, width: float, height: float, text: str = "", kind: str = "") -> None:
        """A box of a kind (gpu, host, mark, fault) with lines of text; those after the first are small."""
        self.add(
            "rect", f"box {kind}".strip(), x=f"{x:g}", y=f"{y:g}", width=f"{width:g}", height=f"{height:g}", rx="4"
        )
        lines = text.split("\n") if text else []
        first = y + height / 2 - (len(lines) - 1) * LINE_HEIGHT / 2 + 5
        for number, line in enumerate(lines):
            size = SMALL_SIZE if number else FONT_SIZE
            if len(line) * size * CHARACTER > width:
                raise ValueError(f"{line!r} is wider than its box of {width:g} pixels")
            self.text(x + width / 2, first + number * LINE_HEIGHT, line, small=number > 0)

    def text(self, x: float, y: float, text: str, anchor: str = "middle", small: bool = False, kind: str = "") -> None:
        """One line, whose base line is at `y`."""
        names = " ".join(name for name in ("small" if small else "", kind) if name)
        self.add("text", names, x=f"{x:g}", y=f"{y:g}", **{"text-anchor": anchor}).text = text

    def arrow(self, start: tuple[float, float], end: tuple[float, float], kind: str = "", dashed: bool = False) -> None:
        self.line(start, end, kind, dashed, head=True)

    def line(
        self, start: tuple[float, float], end: tuple[float, float], kind: str = "", dashed: bool = False,
        head: bool = False,
    ) -> None:  # fmt: skip
        attributes = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
        more = {"marker-end": f"url(#head-{kind or 'line'})"} if head else {}
        names = f"stroke {kind}".strip() + " dashed" * dashed
        self.add("line", names, **{name: f"{value:g}" for name, value in attributes.items()}, **more)

    def svg(self) -> str:
        ElementTree.indent(self.root, " ")
        return ElementTree.tostring(self.root, encoding="unicode") + "\n"


def style() -> str:
    rules = [
        f"text{{font-family:Helvetica,Arial,Liberation Sans,sans-serif;font-size:{FONT_SIZE}px}}",
        f".small{{font-size:{SMALL_SIZE}px}}",
    ]
    rules += [".dashed{stroke-dasharray:5 4}", ".stroke{stroke-width:1.5}", *colours(LIGHT)]
    return "".join(rules) + "@media (prefers-color-scheme:dark){" + "".join(colours(DARK)) + "}"


def colours(of: dict[str, str]) -> list[str]:
    rules = [f".paper{{fill:{of['paper']}}}", f"text{{fill:{of['ink']}}}", f".faint{{fill:{of['faint']}}}"]
    rules += [f".box{{fill:{of['plain']};stroke:{of['line']}}}", f".stroke{{stroke:{of['line']}}}"]
    rules += [f".head{{fill:{of['line']}}}"]
    for kind in KINDS:
        rules += [f".box.{kind}{{fill:{of[kind]};stroke:{of[kind + '-line']}}}"]
        rules += [f".stroke.{kind}{{stroke:{of[kind + '-line']}}}", f".head.{kind}{{fill:{of[kind + '-line']}}}"]
        rules += [f"text.{kind}{{fill:{of[kind + '-line']}}}"]
    return rules
