"""Runs a backbone that is an ONNX file inside this package, on the CPU with onnxruntime."""

from __future__ import annotations

import json
import threading
from functools import cached_property
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

import numpy as np

from ongebd.backbones.base import Features, FramesU8, check_frames
from ongebd.backbones.preprocess import resize_and_crop
from ongebd.backbones.sessions import open_session
from ongebd.common.geometry import Fit, View
from ongebd.types import ImageU8

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_WEIGHTS = files("ongebd.backbones") / "weights"


class OnnxBackbone:
    """A backbone with its weights in `weights/NAME.onnx` and their description in `weights/NAME.json`.

    The file is opened at the first `embed`. One object may be used from several threads at once: with
    `threads=1` each call computes in the thread that made it, and gets the same bits as a call alone.

    Args:
        name: The file's name without its ending.
        threads: Threads in which onnxruntime computes one call.

    Attributes:
        name: As given.
        threads: As given.
        dim: Numbers in a feature, D.
        input_size: Height and width of the pictures that `embed` takes, in pixels.
        resize_size: The shorter side, in pixels, of the picture out of which `crop` cuts the centre.
        view: The same, for a reader.
        identity: Name and the first 12 digits of the weights' sha256.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        about: dict[str, Any] = json.loads((_WEIGHTS / f"{name}.json").read_text(encoding="utf-8"))
        self.name = name
        self.threads = threads
        self.dim: int = about["dim"]
        self.input_size: int = about["input"]["shape"][1]
        self.resize_size: int = about["input"]["resize_size"]
        self.view: View = Fit(self.resize_size)
        self.identity = f"{name}@{about['sha256'][:12]}"
        self._opening = threading.Lock()

    def __repr__(self) -> str:
        return f"<backbone {self.identity}: {self.dim} numbers a frame>"

    def crop(self, rgb: ImageU8) -> ImageU8:
        """An upright picture of any size, made into one for `embed`.

        Args:
            rgb: uint8, RGB, shape (height, width, 3).

        Returns:
            uint8, shape (S, S, 3), S being `input_size`: the centre of the picture, after its shorter side
            was made `resize_size` long (bicubic).

        Raises:
            FrameError: Another type or shape.
        """
        return resize_and_crop(rgb, self.resize_size, self.input_size)

    def embed(self, frames: FramesU8) -> Features:
        """The features of some pictures.

        Args:
            frames: uint8, RGB, shape (N, S, S, 3), S being `input_size`; N may be 0. No normalisation: the
                network does its own.

        Returns:
            float32, shape (N, D).

        Raises:
            FrameError: Another type or shape.
        """
        frames = check_frames(frames, self.input_size)
        if not len(frames):
            return np.empty((0, self.dim), np.float32)
        with self._opening:  # held only while a session is made, or for a moment
            session = self._session
        (features,) = session.run(["features"], {"frames": frames})
        result: Features = features
        return result

    @cached_property
    def _session(self) -> InferenceSession:
        with as_file(_WEIGHTS / f"{self.name}.onnx") as path:
            return open_session(path, self.threads)
