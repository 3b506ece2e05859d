"""Videos and their events into a FiftyOne dataset: python fiftyone_import.py NAME talk.mp4 …"""

import sys
from importlib.util import find_spec
from pathlib import Path

import ongebd

if find_spec("fiftyone") is None:
    sys.exit("FiftyOne is not installed: pip install fiftyone")
import fiftyone as fo

dataset = fo.Dataset(sys.argv[1], persistent=True, overwrite=False)
for path in sys.argv[2:]:
    sample = fo.Sample(filepath=str(Path(path).resolve()))
    sample.compute_metadata()  # frame rate and count, by ffprobe
    found = [
        fo.TemporalDetection.from_timestamps([one.start, one.end], sample=sample, label="segment")
        for one in ongebd.detect(path).segments
    ]
    sample["events"] = fo.TemporalDetections(detections=found)
    dataset.add_sample(sample)
    print(f"{path}: {len(found)} segments")
