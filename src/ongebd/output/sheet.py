"""A run as a page: a row for each minute with its curve, and a picture for each segment that plays it."""

from __future__ import annotations

from html import escape
from math import ceil
from pathlib import Path

from ongebd.common.text import spoken_name
from ongebd.detector.notebook import LEGEND, curve, escaped, finite, highest, image, spoken_time
from ongebd.output.runs import address_of
from ongebd.output.whole import Scene
from ongebd.output.writer import mark

_ROW = 60  # seconds
_PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="generator" content="{mark}"><title>{name}</title>
<style>
:root {{ color-scheme: light dark; font: 15px/1.4 system-ui, sans-serif }}
body {{ max-width: 1200px; margin: auto; padding: 0 16px 40px }}
h1 {{ font-size: 22px; margin: 16px 0 0; overflow-wrap: anywhere }}
video {{ position: sticky; top: 8px; z-index: 1; width: 100%; max-height: 30vh; background: #000 }}
section {{ border-top: 1px solid #8886; padding-top: 12px; margin-top: 16px }}
svg {{ display: block; cursor: pointer; overflow: visible; margin-bottom: 8px }}
@media (max-width: 600px) {{ svg text {{ font-size: 25px; transform: translateY(9px) }} }}
section > div {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 8px }}
button {{ font: inherit; color: inherit; text-align: left; padding: 4px; border: 1px solid #8884 }}
button {{ background: none; border-radius: 6px; cursor: pointer; overflow: hidden }}
button:hover, button:focus-visible, button.now {{ outline: 2px solid #2a86d1 }}
img {{ width: 100% }}
small {{ opacity: .75 }}
</style>
<h1>{name}</h1><p>{facts}</p>
<video controls preload="metadata" src="{address}#t=0.001"></video>
{legend}{rows}
<script>
const video = document.querySelector("video"), buttons = [...document.querySelectorAll("button")];
video.onerror = () => video.replaceWith("This browser can't play the video.");
const play = time => {{ video.currentTime = time; video.play(); }};
for (const one of buttons) one.onclick = () => play(+one.dataset.start);
for (const one of document.querySelectorAll("svg")) one.onclick = event => {{
  const box = one.getBoundingClientRect();
  play(+one.parentNode.dataset.start + {row} * (event.clientX - box.left) / box.width);
}};
video.ontimeupdate = () => buttons.forEach((one, n) => one.classList.toggle("now",
  video.currentTime >= one.dataset.start && !(video.currentTime >= buttons[n + 1]?.dataset.start)));
</script>
"""


def html(scene: Scene) -> str:
    """The page. All text from outside is escaped; nothing but the video is loaded."""
    run, points = scene.run, finite(scene.points)
    pictures = {shot.boundary: shot.picture for shot in scene.snapshots}
    cells: dict[int, list[str]] = {}
    for number, one in enumerate(run.segments, 1):
        picture = scene.first if one.boundary is None else pictures.get(one.boundary)
        shown = "" if picture is None else image(picture, f"event {number}")
        kind = "" if one.boundary is None or one.boundary.kind is None else f" · {one.boundary.kind}"
        text = f"<b>{spoken_time(one.start)}</b><br><small>{one.end - one.start:.1f} s{kind}</small>"
        cell = f'<button data-start="{one.start:.3f}">{shown}{text}</button>'
        cells.setdefault(int(one.start // _ROW) * _ROW, []).append(cell)
    rows = []
    first = min(cells, default=0)
    for begin in range(first, max(first + 1, ceil(run.duration)), _ROW):
        inside = points[(points["time"] >= begin) & (points["time"] <= begin + _ROW)]
        drawn = "".join(curve(inside, run.boundaries, begin, begin + _ROW, highest(points)))
        pictured = "".join(cells.get(begin, []))
        rows.append(f'<section data-start="{begin}">{drawn}<div>{pictured}</div></section>')
    name = spoken_name(run.header.source)
    name = escaped(name if "://" in name else Path(name).name or name)
    found = f"{len(run.boundaries)} boundar{'y' if len(run.boundaries) == 1 else 'ies'}"
    facts = escaped(f"{found} in {spoken_time(run.duration)}, model {run.header.model}")
    facts += "" if run.complete else ", stopped early"
    address, source = escape(address_of(run)), mark(run.header.source)
    texts = {"name": name, "facts": facts, "address": address, "mark": source, "legend": LEGEND}
    return _PAGE.format(**texts, rows="\n".join(rows), row=_ROW)
