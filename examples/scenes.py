"""A PySceneDetect pipeline that cuts at events: python scenes.py talk.mp4 OUT. Needs the extra `peers`."""

import sys
from pathlib import Path

from scenedetect import detect, open_video
from scenedetect.output import save_images, write_scene_list, write_scene_list_edl

from ongebd.detector.scene_detector import EventDetector

video, out = Path(sys.argv[1]), Path(sys.argv[2])
out.mkdir(parents=True, exist_ok=True)
scenes = detect(str(video), EventDetector(), start_in_scene=True)
with (out / "scenes.csv").open("w", encoding="utf-8") as file:
    write_scene_list(file, scenes)
write_scene_list_edl(out / "scenes.edl", scenes, title=video.stem)
save_images(scenes, open_video(str(video)), num_images=1, output_dir=str(out))
print(f"{len(scenes)} scenes, in {out}")
