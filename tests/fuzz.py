"""Gives ongebd thousands of damaged files, labels, settings and weights, and keeps what it doesn't stand.

An input may end with a result or with one line of ours. A finding is anything else: another exception, a
dead process, more than `SECONDS` or `MEBIBYTES`, a file written elsewhere, a connection. Seed and number
decide what an input is. A finding's folder holds the input, to be run again.

Usage: python tests/fuzz.py [--seed 1] [--files 20000] [--texts 5000] [--jobs 2] [--keep .cache/fuzz]
       python tests/fuzz.py --replay .cache/fuzz/1-video-17
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import pickle
import random
import re
import resource
import shutil
import socket
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
from safetensors.torch import save_file

import ongebd
from ongebd import backbones
from ongebd.backbones.checkpoint import read_state
from ongebd.cli import main as command
from ongebd.cluster.manifest import Manifest
from ongebd.errors import OngebdError
from ongebd.estimator.learned import LearnedModel, LearnedScorer
from ongebd.features.store import FeatureStore
from ongebd.lab.composites import read_composites
from ongebd.output import Reading, detect_source, open_writers
from ongebd.output.jsonl import read_jsonl

ROOT = Path(__file__).resolve().parents[1]
SECONDS, MEBIBYTES, LONGEST_LINE = 20, 1024, 6000
FILMS = """
mp4:libx264+aac mp4:libx264+aac:movflags=frag_keyframe+empty_moov mov:prores_ks mov:qtrle mov:png mov:svq1
mp4:mpeg4 mov:mjpeg mov:rpza mov:cinepak mov:cfhd mov:dxv mov:magicyuv matroska:libx265+flac
matroska:libx264 matroska:ffv1 webm:libvpx-vp9+libopus webm:libvpx webm:libsvtav1 avi:mpeg4+mp3 avi:mjpeg
avi:huffyuv avi:msmpeg4v2 avi:utvideo avi:rawvideo avi:msvideo1 avi:asv1 avi:flashsv mpegts:libx264+aac
mpegts:mpeg2video+mp2 mpegts:libx265 mpegts:libx264:mpegts_m2ts_mode=1 flv:flv+mp3 flv:libx264 asf:wmv2+mp3
asf:wmv1 mpeg:mpeg1video+mp2 vob:mpeg2video dvd:mpeg2video+ac3 ogg:libvpx gif:gif apng:apng
webp:libwebp_anim mjpeg:mjpeg yuv4mpegpipe:rawvideo rm:rv10+ac3 rm:rv20 mxf:mpeg2video mxf:jpeg2000
gxf:mpeg2video nut:ffv1 nut:libx264+flac nut:snow nut:zlib 3gp:h263 wtv:mpeg2video dv:dvvideo h264:libx264
hevc:libx265 ivf:libvpx ivf:libsvtav1 obu:libsvtav1 m4v:mpeg4 h261:h261 h263:h263 swf:flv f4v:libx264
ismv:libx264 roq:roqvideo smjpeg:mjpeg mpjpeg:mjpeg filmstrip:rawvideo fits:fits mpeg1video:mpeg1video
mpeg2video:mpeg2video avif:libsvtav1 image2:png image2:mjpeg image2:bmp image2:tiff image2:webp image2:ppm
image2:pgm image2:exr image2:hdr image2:qoi image2:sgi image2:jpeg2000 image2:dpx image2:pcx image2:xwd
image2:sunrast image2:pfm image2:pam image2:jpegls image2:xbm image2:gif
"""
"""`container:codec+sound:option=value`."""
SIZES = ((64, 48), (176, 144), (720, 576))
SHAPES = tuple(itertools.product((12, 25), SIZES, ("yuv420p", "rgb24", "rgba", "rgb8", None)))

TEXTS = """
== good.json
{"a": [1.0, 2.4], "b": [3.0]}
== known.json
{"a": {"duration": 10.0, "boundaries": [[1, 2.5], [2]], "fps": 25}, "b": {"duration": 9, "boundaries": [3]}}
== labels.csv
id,duration,annotator,boundaries
a,10,anna,1 2.5
a,10,ben,2.4
b,9,anna,3;4
== labels-steps.csv
id,duration,annotator,start,end
a,10,x,1,2.5
b,9,x,3,4
== predictions.csv
id,time,onset,decided,onset_known
a,1,1,1.1,1
a,2.4,2.3,2.6,2.4
b,,,,
== predictions.json
{"a": {"times": [1.0, 2], "decided": [1.1, 3], "onsets": [1, 2], "onsets_known": [1, 2.4]}, "b": [3.0]}
== ids.csv
id
a
b
== list.txt
a.mp4

in/text/a.mp4
== groups.csv
file,group
a.mp4,x
b,y
== results/manifest.jsonl
{"id": "a", "source": "a.mp4", "status": "done", "files": {"csv": ""}}
== composites/composites.json
{"format": "ongebd composites 1", "settings": {}, "clips": {"a": {"group": "x"}}, "videos": {"v": {"fps": 25,
"part": "test", "duration": 2.0, "file": "a.mp4", "frames": 50, "clips": ["a"], "boundaries": [{"time": 1.0,
"kind": "cut", "start": 1.0, "end": 1.0}], "distractors": [{"start": 0.5, "end": 1, "kind": "shake"}]}}}
== resume-1/train.yaml
{width: 8, ffn: 8, heads: 2, layers: 1, epochs: 1, batch: 32, run: 32, device: cpu}
== resume-2/train.yaml
{method: miniroad, network: "embedding=4,hidden=4", epochs: 1, batch: 32, run: 32, device: cpu}
== trees/about.txt
Copies.
"""
"""Files as text, each after a line with its name."""
NAMES, VALUES = re.compile(rb"[A-Za-z][A-Za-z0-9]{3}"), re.compile(rb'-?\d+(?:\.\d+)?|"[^"\n]*"|true|null')
NUMBERS = (0, 1, -1, 2, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1)
WORDS = rb"""
0 -1 -0.0 0.5 1e999 -1e308 1e-320 NaN Infinity 0x10 1_0 null true "" [] {} [[1]] , ; " ? - : . R b u Q \x93
"\\ud800" "\\u001b[2J" \xd9\xa3 \xef\xbb\xbf \xff\xfe \0 \r \n\n \t \x20 \xe2\x80\xa8 \x1b[31m ../../../x
&a\x20[*a,*a] <<:\x201 1:2:3 2001-99-99 .inf !!python/object/apply:os.system\x20['touch\x20x'] !!binary\x20=
{OUTSIDE} http://{ADDRESS}/a.ts #EXT-X-DISCONTINUITY\n #EXTINF:1e99,\n #EXT-X-MAP:URI="{OUTSIDE}"\n
#EXT-X-ENDLIST\n cos\nsystem\n(S'touch\x20x'\ntR cbuiltins\neval\n r\xff\xff\xff\x7f \x8b\xff\xff\xff\x7f
\x8e\xff\xff\xff\xff\xff\xff\xff\x3f \x95\xff\xff\xff\xff\xff\xff\xff\xff 222222222222222222 \x81
""".split()
WORDS = [word.decode("unicode_escape").encode("latin1") for word in WORDS]
WORDS += [b"9" * 400, b"9" * 5000, b"[" * 99_999, b'{"a":' * 50_000, b"(" * 5000, b"x" * 70_000]


def mutated(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """Data with some damage, perhaps by parts of `other`. An archive's checksums are right again."""
    if data[:2] == b"PK" and dice.random() < 0.8:
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file := io.BytesIO(), "w") as new:
            hit = dice.choice(old.namelist())
            for name in old.namelist():
                new.writestr(name, mutated(old.read(name), other, dice) if name == hit else old.read(name))
        return file.getvalue()
    for _ in range(dice.choice((1, 1, 2, 3, 8))):
        at, to = _place(data, dice), _place(data, dice)
        end = at + dice.choice((1, 2, 4, 8, 16, 64, 188, 1024, len(data) // 3))
        found = list(VALUES.finditer(data)) if dice.random() < 0.1 else []
        match dice.randrange(9):
            case _ if found:
                at, end, new = *dice.choice(found).span(), dice.choice(WORDS)
            case 0:
                end, new = at + 1, bytes([(data[at : at + 1] or b"\0")[0] ^ 1 << dice.randrange(8)])
            case 1:
                width = dice.choice((1, 2, 3, 4, 8))
                number = dice.choice(NUMBERS) % 2 ** (8 * width)
                end, new = at + width, number.to_bytes(width, "big" if dice.random() < 0.5 else "little")
            case 2:
                new = b""
            case 3:
                at, end, new = to, to, data[at:end] * dice.choice((1, 1, 2, 50))
            case 4:
                new = data[to : to + end - at]
            case 5:
                end, new = len(data), b"" if dice.random() < 0.5 else data[at:]
            case 6:
                end, new = len(data), other[_place(other, dice) :]
            case 7:
                end, new = at, dice.choice(WORDS)
            case _:
                new = dice.randbytes(min(end, len(data)) - at)
        data = (data[:at] + new + data[end:])[: 8 << 20]
    return data


def _place(data: bytes, dice: random.Random) -> int:
    """Anywhere, near the beginning, at a packet, or at the size, name or content of a part."""
    if dice.random() < 0.4 and (names := list(NAMES.finditer(data))):
        place = dice.choice(names).start() + dice.choice((-8, -4, -4, 4, 8, 12, 16, 20))
    elif data[:1] == b"G" and dice.random() < 0.7:
        place = dice.randrange(len(data) // 188 + 1) * 188 + dice.choice((0, 1, 2, 3, 4, 10))
    else:
        place = dice.randrange(len(data) + 1) if dice.random() < 0.5 else dice.randrange(300)
    return max(0, min(place, len(data)))


Way = str | Callable[[Path, Path], object]
"""How to run an input: a command line, or what takes the path and the folder for results."""


def detect(path: Path, out: Path) -> None:
    """As the command does it, but faster."""
    model, writers = ongebd.load("clock:0.1"), partial(open_writers, ["jsonl", "csv", "vtt"], out, "a")
    detect_source(str(path), model, Reading(version="1"), writers, lambda *_: None, lambda _: None)


def of_object(path: Path, _out: Path) -> None:
    found = ongebd.detect(io.BytesIO(path.read_bytes()) if path.is_file() else path, "clock:0.1")
    assert all(0 <= one.onset <= one.time <= one.decided for one in found.boundaries), found.boundaries


def of_pipe(path: Path, _out: Path) -> object:
    read, write = os.pipe2(os.O_NONBLOCK)
    with os.fdopen(read) as sys.stdin, os.fdopen(write, "wb", 0) as pipe:
        pipe.write(path.read_bytes() if path.is_file() else b"")
        pipe.close()
        return command(DETECT.replace("PATH", "-").split())


def store(path: Path, _out: Path) -> None:
    videos = FeatureStore.open(path.parent)
    assert all(len(videos[name].features) == len(videos[name].times.tolist()) for name in videos)


def trees(path: Path, out: Path) -> None:
    about = shutil.copytree(path.parent, out, dirs_exist_ok=True) / "immediate.json"
    right = b'"sha256": "%s"' % sha256(about.with_suffix(".npz").read_bytes()).hexdigest().encode()
    about.write_bytes(re.sub(rb'"sha256": *"\w*"', right, about.read_bytes()))
    scorer = LearnedScorer(LearnedModel.read(out, "immediate"), 4416)
    for number in range(10):
        scorer.update(np.ones(4416, np.float32), number / 24)


DETECT, EVALUATE = "detect PATH --model clock:0.1", "evaluate --resamples 5 --out OUT/made --labels"
VIDEO: dict[Way, float] = {
    detect: 60,
    of_object: 20,
    of_pipe: 5,
    f"{DETECT} --format vtt": 4,
    f"{DETECT} --fps 2 --source-fps 5 --stream 0 --max-pixels 10000": 4,
    f"watch {DETECT[7:]} --clips OUT/c --thumbnails OUT/t --jsonl OUT/a --clip-after 0.1 --retries 0": 3,
    "detect PATH --model persistence --out OUT": 0.5,
    "detect PATH --out OUT --plot": 0.3,
    "extract PATH --out OUT/made": 0.4,
    "compose PATH --out OUT/made --minutes 0.05": 0.5,
}
"""Ways to read a video, and how often."""
TEXT: dict[str, list[Way]] = {
    "labels": [f"{EVALUATE} PATH --predictions IN/good.json"],
    "predictions": [
        f"{EVALUATE} IN/known.json --predictions PATH --compare IN/good.json",
        f"{EVALUATE} IN/known.json --predictions PATH --unit frames --score onset",
    ],
    "ids": [f"{EVALUATE} IN/known.json --predictions IN/good.json --ids PATH"],
    "list": ["detect --list PATH --model clock:0.1 --out OUT"],
    "settings": ["train PATH --store IN/none --out OUT/made"],
    "groups": ["compose IN/a.mp4 --groups PATH --labels IN/known.json --out OUT/made --minutes 0.05"],
    "results": [
        lambda path, _: (Manifest(path.parent).read(), read_jsonl(path.parent / "a.jsonl")),
        "detect COPY/a.mp4 --model clock:0.1 --out COPY --format jsonl,csv,vtt",
    ],
    "resume": ["train COPY/train.yaml --store COPY --labels COPY/labels.json --out COPY --resume"],
    "model": ["detect IN/a.mp4 --model HERE"],
    "checkpoint": [lambda path, _: read_state(path)],
    "composites": [lambda path, _: read_composites(path.parent).labels()],
    "store": [store],
    "trees": [trees],
}
"""Ways to read other files, by the beginning of their names."""
GIVEN = {"list": "a.m3u8", "mapped": "a.m3u8", "master": "a.m3u8", "pictures": "", "pattern": "a%d.png"}
"""What is given to read the videos of a folder."""


def run(way: Way, path: Path, out: Path) -> object:
    """Run an input; the exit status if it is a command line."""
    if not isinstance(way, str):
        return way(path, out)
    if "COPY" in way:
        shutil.copytree(path.parent, out, dirs_exist_ok=True)
    here = {"PATH": path, "HERE": path.parent, "IN/": "in/text/", "OUT": out, "COPY": out}
    for name, place in here.items():
        way = way.replace(name, str(place))
    return command(way.split())


def film(spec: str) -> bytes:
    """A tiny film or picture; empty if this FFmpeg can't make it."""
    form, codecs, *options = spec.split(":")
    picture, _, sound = codecs.partition("+")
    quick = {"threads": "1", "strict": "-2"}
    quick |= {"preset": "ultrafast", "x265-params": "log-level=none"} if "x26" in picture else {}
    how = {"fflags": "bitexact", **dict(option.split("=") for option in options)}
    how |= {"update": "1"} if form == "image2" else {}
    for rate, (width, height), pixels in SHAPES:
        with suppress(av.FFmpegError, ValueError), tempfile.NamedTemporaryFile() as made:
            with av.open(made.name, "w", format=form, options=how) as file:
                stream: Any = file.add_stream(picture, rate=rate, options=quick)
                stream.width, stream.height, stream.gop_size = width, height, 5
                stream.pix_fmt = pixels or stream.codec.video_formats[0].name
                track: Any = file.add_stream(sound, rate=48000) if sound else None
                for number in range(1 if form == "image2" else 10):
                    shade = np.random.default_rng(number // 4).integers(0, 255, (6, 8, 3), np.uint8)
                    shade = np.kron(shade, np.ones((height // 6, width // 8, 1), np.uint8))
                    shade[number : number + 5, :9] = 255
                    file.mux(stream.encode(av.VideoFrame.from_ndarray(shade)))
                file.mux(stream.encode(None))
                if track is not None:
                    silence = av.AudioFrame.from_ndarray(np.zeros((1, 48000), np.float32), "fltp", "mono")
                    silence.sample_rate, silence.pts = 48000, 0
                    file.mux([*track.encode(silence), *track.encode(None)])
            return Path(made.name).read_bytes()
    return b""


def make_videos(folder: Path, specs: list[str]) -> None:
    """Films and pictures of all kinds, joined films, playlists, folders of pictures."""
    for number, spec in enumerate(specs):
        form, codec = spec.replace("+", ":").split(":")[:2]
        if data := film(spec):
            (folder / f"{number}.{codec if form == 'image2' else form}").write_bytes(data)
    piece, movie, picture = map(film, ("mpegts:libx264+aac", FILMS.split()[1], "image2:png"))
    (folder / "two.ts").write_bytes(piece * 2)
    (folder / "two.mp4").write_bytes(movie * 2)
    for name in GIVEN:
        (folder / name).mkdir()
    head, init = b"#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:1\n", movie.index(b"moof") - 4
    pieces = b"#EXTINF:0.8,\n1.ts\n#EXTINF:0.8,\n1.ts\n#EXT-X-ENDLIST\n"
    playlists = {"list/a": head + pieces, "mapped/a": head + b'#EXT-X-MAP:URI="0.mp4"\n' + pieces}
    playlists |= {"master/a": b"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nb.m3u8\n", "master/b": head + pieces}
    for name, data in playlists.items():
        (folder / f"{name}.m3u8").write_bytes(data)
        (folder / name).with_name("1.ts").write_bytes(movie[init:] if name == "mapped/a" else piece)
    (folder / "mapped/0.mp4").write_bytes(movie[:init])
    for number in range(3):
        (folder / f"pictures/a{number}.png").write_bytes(picture)
        (folder / f"pattern/a{number}.png").write_bytes(picture)


def make_texts(folder: Path) -> None:
    """Labels, predictions, lists, settings, weights, and what our own commands write."""
    whole = {"video_duration": 10.0, "fps": 25.0, "num_frames": 250, "f1_consis_avg": np.float64(0.85)}
    mark = {"start_time": 1.0, "end_time": 1.5, "label": "EventChange (Timestamp/Range): x"}
    marks = [[mark, {**mark, "label": "ShotChangeGradualRange: x"}]] * 3
    for name, entry in (
        ("labels-official", {**whole, "substages_timestamps": [[1.0, 2.5], np.array([2.4])]}),
        ("labels-raw", {**whole, "substages_timestamps": marks}),
        ("labels-frames", {**whole, "substages_myframeidx": [[25]], "f1_consis": [0.8]}),
        ("predictions", np.array([1.0])),
    ):
        for protocol in (0, 2, 4, 5):
            value = dict.fromkeys(("a", "1y60SfvKbxY_s00002_79_481_81_895"), entry)
            (folder / f"{name}-{protocol}.pkl").write_bytes(pickle.dumps(value, protocol))
    for name, text in re.findall(r"^== (.+)\n([^=]+(?:=[^=]+)*)", TEXTS, re.MULTILINE):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    shutil.copy(folder / "known.json", folder / "labels.json")
    (folder / "list-16.txt").write_bytes("in/text/ä.mp4\r\nb".encode("utf-16"))
    for path in (*(ROOT / "configs").iterdir(), *(ROOT / "src/ongebd/estimator/weights").glob("immediate.*")):
        shutil.copy(
            path, folder / (f"settings-{path.name}" if path.suffix == ".yaml" else f"trees/{path.name}")
        )
    state = {"conv.weight": torch.ones(3, 4), "bn.bias": torch.zeros(3, dtype=torch.float16)}
    save_file(state, folder / "checkpoint.safetensors")
    torch.save({"state_dict": state, "meta": {"epoch": 1}}, folder / "checkpoint.pt")
    torch.save(state, folder / "checkpoint-old.pt", _use_new_zipfile_serialization=False)
    for path in (folder / "a.mp4", folder / "results/a.mp4"):
        path.write_bytes(film("mp4:libx264"))
    detect(path, path.parent)
    shutil.copy(folder / "results/a.jsonl", folder / "predictions.jsonl")
    dice = np.random.default_rng(0)
    with FeatureStore.create(folder / "store", backbone=backbones.get().identity, dim=1280, fps=24.0) as made:
        for number in range(4):
            made.add(f"{number}", dice.random((60, 1280)), np.arange(60) / 24, np.zeros(60), 2.5, "a.mp4")
    for out in (folder / "resume-1", folder / "resume-2"):
        shutil.copytree(folder / "store", out, dirs_exist_ok=True)
        labels = [f'"{number}": {{"duration": 2.5, "boundaries": [1.0, 1.6]}}' for number in range(4)]
        (out / "labels.json").write_text(f"{{{', '.join(labels)}}}")
        command(f"train {out}/train.yaml -q --store {out} --labels {out}/labels.json --out {out}".split())
        shutil.copytree(out / "model", folder / f"model{out.name[-2:]}")


def case_of(kind: str, seed: int, number: int, folder: Path) -> tuple[Way, str, bytes]:
    """An input of a kind, `video` or `text`: the way to run it, the file to damage, and its content."""
    dice = random.Random(f"{seed} {kind} {number}")
    paths = sorted(path for path in (folder / kind).rglob("*") if path.is_file())
    names = [str(path.relative_to(folder)) for path in paths]
    if kind == "video":
        way, name = dice.choices(list(VIDEO), list(VIDEO.values()))[0], dice.choice(names)
    else:
        word = dice.choice(list(TEXT))
        name = dice.choice([name for name in names if name.startswith(f"text/{word}")])
        way = dice.choice(TEXT[word])
    return way, name, mutated((folder / name).read_bytes(), (folder / dice.choice(names)).read_bytes(), dice)


class Sandbox:
    """A folder in which this process runs inputs, and what watches over them."""

    def __init__(self, root: Path, corpus: Path) -> None:
        self.root, self.corpus, self.strays = root, corpus, list[str]()
        self.out, self.said, self.outside = root / "home/out", root / "said", root / "outside.ts"
        (root / "home").mkdir()
        shutil.copytree(corpus, root / "home/in")
        os.mkfifo(self.outside)  # whoever opens it hangs
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.setblocking(False)
        cache = {name: str(corpus.parent / "cache") for name in ("MPLCONFIGDIR", "TORCHINDUCTOR_CACHE_DIR")}
        os.environ.update(cache, HOME=str(root / "home"), TMPDIR=str(self.out))
        os.chdir(root / "home")
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))  # a finding must not harm the machine
        for descriptor in (1, 2):  # libraries write there, too
            os.dup2(os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
        self.usual = self._around()
        sys.addaudithook(self._watch)

    def _watch(self, event: str, about: tuple[Any, ...]) -> None:
        """Note connections, programs, and changes of files in other places."""
        if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "os.system", "subprocess.Popen"):
            self.strays += [f"{event} {about}"] if about[0] != "fc-list" else []  # Matplotlib looks for fonts
        count = {"os.remove": 1, "os.rmdir": 1, "os.mkdir": 1, "os.rename": 2}.get(event, 0)
        if event == "open" and about[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            count = 1
        for path in (path for path in about[:count] if isinstance(path, str)):
            mine = str(Path(path).absolute()).startswith(
                (str(self.root), f"{self.corpus.parent}/cache", os.devnull)
            )
            self.strays += [] if mine else [f"{event} {about}"]

    def run(self, way: Way, name: str, data: bytes) -> str | None:
        """Run a file with this content; what is wrong with the end, None if nothing is."""
        path, (kind, first) = self.root / "home/in" / name, name.split("/")[:2]
        given = path.parent / GIVEN[first] if kind == "video" and first in GIVEN else path
        if not first.startswith("list.") and not first.startswith("list-"):  # what a user lists may be opened
            data = data.replace(b"{OUTSIDE}", bytes(self.outside))
        data = data.replace(b"{ADDRESS}", b"127.0.0.1:%d" % self.server.getsockname()[1])
        path.write_bytes(data)
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        os.truncate(self.said, 0)
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins again
        memory, began, trouble = _mebibytes("VmRSS"), time.process_time(), list[str]()
        self.strays.clear()
        try:
            status = run(way, given, self.out)
            trouble += [f"exit status {status}"] if isinstance(way, str) and status not in (0, 2) else []
        except OngebdError as problem:
            trouble += _odd(str(problem))
        except BaseException:  # noqa: BLE001 - everything is a finding
            trouble.append(traceback.format_exc())
        sys.stdout.flush()
        for line in self.said.read_text(errors="replace").split("\n"):
            trouble += _odd(line)
        used, took = _mebibytes("VmHWM") - memory, time.process_time() - began
        trouble += [] if path.is_file() and path.read_bytes() == data else ["it changed its input"]
        shutil.copy2(self.corpus / name, path)
        trouble += [f"{used} MiB of memory"] if used > MEBIBYTES else []
        trouble += [f"{took:.0f} s of computing"] if took > SECONDS else []
        if odd := self._around() ^ self.usual:
            trouble.append(f"other files changed: {odd}")
            self.usual ^= odd
        with suppress(BlockingIOError):
            self.server.accept()
            trouble.append("it connected to an address that a file names")
        return "\n".join(trouble + self.strays) or None

    def _around(self) -> set[tuple[str, int, int]]:
        """All files but the results."""
        found = set()
        for folder, inner, names in os.walk(self.root):
            inner[:] = [name for name in inner if f"{folder}/{name}" != str(self.out)]
            for path in (f"{folder}/{name}" for name in names if name != self.said.name):
                found.add((path, (status := os.lstat(path)).st_size, status.st_mtime_ns))
        return found


def _odd(line: str) -> list[str]:
    odd = re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]|^Traceback|^Exception|Warning: |^\w*Error\b", line)
    return [f"not a line of ours: {line[:3000]!r}"] if odd or len(line) > LONGEST_LINE else []


def _mebibytes(name: str) -> int:
    return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0]) >> 10


def serve(pipe: Any, corpus: Path) -> None:
    """The life of a worker process: run the inputs that it is told."""
    sandbox = Sandbox(Path(tempfile.mkdtemp(dir=corpus.parent)), corpus)
    pipe.send("ready")
    with suppress(EOFError):
        while True:
            number, data = pipe.recv()
            way, name, made = case_of(*number, corpus)
            pipe.send(sandbox.run(way, name, made if data is None else data))


class Worker:
    """A process that runs inputs, and is replaced when it hangs or dies."""

    def __init__(self, corpus: Path) -> None:
        self._corpus = corpus
        self._process: Any = None

    def run(self, number: tuple[str, int, int], data: bytes | None = None) -> str | None:
        """How an input ended; `data` replaces its content."""
        if self._process is None:
            new = get_context("spawn")
            self._pipe, theirs = new.Pipe()
            self._process = new.Process(target=serve, args=(theirs, self._corpus), daemon=True)
            self._process.start()
            theirs.close()
            self._pipe.recv()
        self._pipe.send((number, data))
        try:
            if self._pipe.poll(6 * SECONDS):  # other programs may need the processor, too
                return self._pipe.recv()  # type: ignore[no-any-return]
            found = f"no end within {6 * SECONDS} s"
        except EOFError:
            self._process.join()
            found = f"the process died (exit code {self._process.exitcode})"
        self._process.kill()
        self._process = None
        return found


def main(arguments: list[str] | None = None, films: str = FILMS) -> int:
    """Run inputs and print what was found; 1 if anything was."""
    parser = argparse.ArgumentParser(description="See the top of this file.")
    for name, number in {"seed": 1, "files": 20_000, "texts": 5_000, "jobs": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--keep", type=Path, default=Path(".cache/fuzz"))
    parser.add_argument("--replay", type=Path)
    given = parser.parse_args(arguments)
    todo = [("video", given.seed, number) for number in range(given.files)]
    todo += [("text", given.seed, number) for number in range(given.texts)]
    left, began, findings = enumerate(todo, 1), time.monotonic(), list[Path]()

    def work(worker: Worker) -> None:
        for count, number in left:
            if (found := worker.run(number)) is not None:
                way, name, data = case_of(*number, corpus)
                findings.append(place := given.keep / "{1}-{0}-{2}".format(*number))
                place.mkdir(parents=True, exist_ok=True)
                (place / Path(name).name).write_bytes(data)
                (place / "finding.txt").write_text(f"{way}: {name}\n{found}\n")
                print(f"{place}: {found.strip().splitlines()[-1][:200]}", flush=True)
            if count % 1000 == 0:
                took = time.monotonic() - began
                print(f"{count} of {len(todo)}: {took:.0f} s, {len(findings)} findings", flush=True)

    with tempfile.TemporaryDirectory(prefix="ongebd-fuzz-", ignore_cleanup_errors=True) as folder:
        corpus = Path(folder) / "corpus"
        for kind in ("video", "text"):
            (corpus / kind).mkdir(parents=True)
        make_videos(corpus / "video", films.split())
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # SVT-AV1 makes root's a real-time one
        if given.texts or given.replay:
            make_texts(corpus / "text")
        if given.replay is not None:
            seed, kind, number = given.replay.name.split("-")
            saved = next(path for path in given.replay.iterdir() if path.name != "finding.txt")
            print(found := Worker(corpus).run((kind, int(seed), int(number)), saved.read_bytes()))
            return int(found is not None)
        with ThreadPoolExecutor(given.jobs) as threads:
            try:
                list(threads.map(work, [Worker(corpus) for _ in range(given.jobs)]))
            finally:
                todo.clear()
    print(f"seed {given.seed}, {given.files} files, {given.texts} texts: {len(findings)} findings")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
