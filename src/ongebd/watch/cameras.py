"""`cameras.toml`: cameras with their settings, their masks and where their alerts go."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from ongebd.common.settings import Range, changed
from ongebd.common.text import printable
from ongebd.errors import ConfigError, os_errors, shown
from ongebd.watch.incidents import Alerts

OUTPUTS = ("exec", "webhook", "notify", "mqtt")
_SECRET = re.compile(r"\$\{(?:(\w+)|file:([^}]+))\}")


@dataclass(frozen=True, kw_only=True)
class Camera(Alerts):
    """One camera, and which of its incidents alarm people.

    Attributes:
        sensitivity: None: that of the model.
        exec: Outputs as on the command line, of this camera only; so are the three that follow.
    """

    name: str = ""
    source: str = field(default="", repr=False)
    sensitivity: Annotated[float, Range(least=0.1, most=0.9)] | None = None
    masks: Polygons = ()
    exec: tuple[str, ...] = field(default=(), repr=False)
    webhook: tuple[str, ...] = field(default=(), repr=False)
    notify: tuple[str, ...] = field(default=(), repr=False)
    mqtt: tuple[str, ...] = field(default=(), repr=False)

    def outline(self) -> tuple[Any, ...]:
        """What can't change while it is watched: name, source and outputs."""
        return self.name, self.source, *(getattr(self, name) for name in OUTPUTS)


def read_cameras(path: Path, alerts: Alerts) -> tuple[list[Camera], list[str]]:
    """The cameras of a file, and one line for each mistake in it.

    What stands above the first `[[camera]]` is for all cameras that don't say otherwise. `${NAME}` in a
    source or an output stands for a variable of the environment, `${file:PATH}` for the content of a file.

    Args:
        path: Of the file.
        alerts: What cameras have of which the file says nothing.
    """
    name = printable(str(path))
    try:
        with os_errors(f"{name}: can't read"):
            content = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (ConfigError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        return [], [str(problem) if isinstance(problem, ConfigError) else f"{name}: {problem}"]
    tables = content.pop("camera", None)
    if not (isinstance(tables, list) and tables and all(isinstance(one, dict) for one in tables)):
        return [], [f"{name}: no camera; begin each with a line [[camera]], then name = and source ="]
    mistakes = list[str]()
    usual, cameras = {one.name: getattr(alerts, one.name) for one in fields(alerts)}, list[Camera]()
    everyone = _filled(Camera(**usual), content, f"{name}: ", mistakes)
    for number, table in enumerate(tables, 1):
        called = table.get("name")
        where = f"{name}, {printable(called) if isinstance(called, str) and called else f'camera {number}'}: "
        before = len(mistakes)
        camera = _filled(everyone, table, where, mistakes)
        missing = [needed for needed in ("name", "source") if not table.get(needed)]
        mistakes += [f'{where}{needed} is missing; add {needed} = "…"' for needed in missing]
        if len(mistakes) == before:
            cameras.append(camera)
    return cameras, mistakes


def _filled(camera: Camera, table: dict[str, Any], where: str, mistakes: list[str]) -> Camera:
    """A camera with the settings of a table; what is wrong becomes a line each."""
    for name, value in table.items():
        try:
            camera = changed(camera, {name: _read(name, value)}, where)
        except ConfigError as problem:
            text = str(problem)
            mistakes.append(text if text.startswith(where) else f"{where}{text}")
    return camera


def _read(name: str, value: Any) -> Any:
    if name == "masks":
        return tuple(_polygons(value))
    if name in OUTPUTS:
        texts = [value] if isinstance(value, str) else value
        if not (isinstance(texts, list) and all(isinstance(one, str) and one for one in texts)):
            raise ConfigError(f"{name} must be a string or a list of strings, not {shown(value)}")
        return tuple(_SECRET.sub(lambda found: _secret(name, found), one) for one in texts)
    if name == "source" and isinstance(value, str):
        return _SECRET.sub(lambda found: _secret(name, found), value)
    return value


def _secret(name: str, found: re.Match[str]) -> str:
    if (variable := found[1]) is None:
        with os_errors(f"{name}: can't read {printable(found[2])}", "name a file that holds the secret"):
            return Path(found[2]).read_text("utf-8").strip()
    if variable not in os.environ:
        raise ConfigError(f"{name}: the environment variable {variable} isn't set; set it, or name another")
    return os.environ[variable]


def _polygons(value: Any) -> Iterator[tuple[tuple[float, float], ...]]:
    advice = "draw it on the page, or give [[[x, y], [x, y], [x, y]], …] with x and y from 0 to 1"
    if not isinstance(value, list):
        raise ConfigError(f"masks must be a list of polygons, not {shown(value)}; {advice}")
    for number, polygon in enumerate(value, 1):
        if not isinstance(polygon, list) or len(polygon) < 3:
            raise ConfigError(f"masks: polygon {number} needs at least three corners; {advice}")
        for corner in polygon:
            numbers = isinstance(corner, list) and [one for one in corner if type(one) in (int, float)]
            if not numbers or len(corner) != 2 != len(numbers) or not all(0 <= one <= 1 for one in corner):
                raise ConfigError(f"masks: polygon {number} has the corner {shown(corner)}; {advice}")
        yield tuple((float(x), float(y)) for x, y in polygon)


Polygons = tuple[tuple[tuple[float, float], ...], ...]
"""Each a tuple of at least three corners (x, y), from 0 (left, top) to 1."""
Bools = npt.NDArray[np.bool_]


class Masks:
    """Tells which pixels of a picture are hidden.

    Attributes:
        polygons: What is hidden; may be replaced at any time.
    """

    def __init__(self, polygons: Polygons = ()) -> None:
        self.polygons = polygons
        self._made: tuple[object, Bools] | None = None

    def __call__(self, width: int, height: int, edge: float) -> Bools | None:
        """Which pixels, (height, width), are at most `edge` pixels from a polygon; None if there is none."""
        polygons = self.polygons
        if not polygons:
            return None
        asked = polygons, width, height, edge
        if self._made is None or self._made[0] != asked:
            self._made = asked, _inside(polygons, width, height, edge)
        return self._made[1]


def _inside(polygons: Polygons, width: int, height: int, edge: float) -> Bools:
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    inside = np.zeros((height, width), bool)
    for polygon in polygons:
        corners = [(x * width, y * height) for x, y in polygon]
        winding = np.zeros((height, width), int)
        for (ax, ay), (bx, by) in zip(corners, (*corners[1:], corners[0]), strict=True):
            right, down = bx - ax, by - ay
            side = right * (y - ay) - down * (x - ax)
            winding += (ay <= y) & (y < by) & (side > 0)
            winding -= (by <= y) & (y < ay) & (side < 0)
            along = ((x - ax) * right + (y - ay) * down) / max(right**2 + down**2, 1e-9)
            along = np.clip(along, 0, 1)
            inside |= np.hypot(x - ax - along * right, y - ay - along * down) <= edge
        inside |= winding != 0
    return inside
