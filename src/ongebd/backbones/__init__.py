"""From a picture to a feature.

>>> import numpy as np
>>> from ongebd import backbones
>>> backbone = backbones.get("efficientnet_lite0")
>>> picture = np.zeros((720, 1280, 3), np.uint8)
>>> backbone.embed(backbone.crop(picture)[None]).shape
(1, 1280)
"""

from ongebd.backbones.base import Backbone, Features, FramesU8
from ongebd.backbones.registry import DEFAULT, get, names, takes_device

__all__ = ["DEFAULT", "Backbone", "Features", "FramesU8", "get", "names", "takes_device"]
