"""A source that breaks off: what came is kept, the cause is reported, and the result is marked incomplete."""

from __future__ import annotations

import http.server
import io
import json
import os
import threading
from contextlib import contextmanager

import av
import numpy as np
import pytest

import ongebd
from ongebd.cli import main
from ongebd.errors import SourceError
from ongebd.output import read_jsonl
from ongebd.video import VideoReader, connecting


@pytest.fixture(scope="module")
def pictures(make_scene):
    scenes = [make_scene(seed, 256, 192) for seed in range(6)]
    return [np.roll(scenes[n // 10], 2 * n, axis=1) for n in range(60)]


@contextmanager
def breaking(data: bytes, share: float, how: str):
    """A server that sends a share of the data, and then ends the connection, or falls silent."""
    over = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: int(share * len(data))])
            self.wfile.flush()
            if how == "silent":
                over.wait(150)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/clip"
        finally:
            over.set()
            server.shutdown()


@pytest.mark.parametrize(("how", "says"), [("ends", "the connection was cut"), ("silent", "no data for 1 s")])
@pytest.mark.parametrize("ending", ["ts", "mkv"])
def test_a_connection_that_breaks_keeps_what_came_and_says_so(
    tmp_path, make_video, pictures, capfd, monkeypatch, how, says, ending
):
    monkeypatch.setattr(connecting, "READ_TIMEOUT", 1.0)
    path = make_video(tmp_path / f"clip.{ending}", pictures, options={"g": "12"})
    with breaking(path.read_bytes(), 0.6, how) as url:
        status = main(["detect", url, "--out", str(tmp_path / "out"), "--stem", "r", "--fps", "5"])
    err = capfd.readouterr().err
    end = json.loads((tmp_path / "out" / "r.jsonl").read_text().splitlines()[-1])
    assert status == 2
    assert (end["type"], end["complete"]) == ("end", False)
    assert end["frames"] > 3
    assert says in err
    assert says in " ".join(end["warnings"])
    assert "stopped early" in err
    assert "Immediate exit" not in err


def test_the_python_result_says_that_it_is_incomplete(tmp_path, make_video, pictures):
    path = make_video(tmp_path / "clip.ts", pictures)
    with breaking(path.read_bytes(), 0.5, "ends") as url:
        detection = ongebd.detect(url, "persistence", fps=5)
    assert detection.complete is False
    assert detection.decisions
    assert ongebd.detect(path, "persistence", fps=5).complete is True


def test_a_part_of_a_video_is_not_stored_as_features_of_the_whole(tmp_path, make_video, pictures, capfd):
    path = make_video(tmp_path / "clip.ts", pictures)
    with breaking(path.read_bytes(), 0.5, "ends") as url:
        assert main(["extract", url, "--out", str(tmp_path / "store"), "--fps", "5"]) == 2
    assert "broke off after" in capfd.readouterr().err
    assert "0 videos" not in (tmp_path / "store" / "failures.jsonl").read_text()


class Failing(io.BytesIO):
    """A file on a disk that dies."""

    limit = 0

    def read(self, size=-1):
        if self.tell() > self.limit:
            raise OSError("the disk is gone")
        return super().read(size)


def test_a_device_error_is_a_break_and_a_file_that_is_cut_off_is_not_whole(
    tmp_path, make_video, pictures, capfd
):
    path = make_video(tmp_path / "clip.mkv", pictures)
    file = Failing(path.read_bytes())
    file.limit = path.stat().st_size // 2
    with VideoReader(file) as video:
        assert 0 < len(list(video)) < 60
    assert "the source broke off after" in video.broken
    cut = tmp_path / "cut.mkv"
    cut.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with VideoReader(cut) as video:
        assert 0 < len(list(video)) < 60
    assert video.broken is None
    assert any("cut off or damaged" in warning for warning in video.warnings)
    assert main(["detect", str(cut), str(path), "--out", str(tmp_path / "out"), "-q", "--fps", "5"]) == 2
    said = capfd.readouterr().err
    assert said.count("cut off or damaged") == 1
    assert "1 of 2 sources failed: " in said
    wholes = [read_jsonl(tmp_path / "out" / f"{stem}.jsonl").complete for stem in ("cut", "clip")]
    assert wholes == [False, True]


@pytest.mark.parametrize("how", ["ends", "silent"])
def test_a_source_that_breaks_before_its_first_frame_is_refused_and_leaves_nothing(
    tmp_path, make_video, pictures, capfd, monkeypatch, how
):
    monkeypatch.setattr(connecting, "READ_TIMEOUT", 1.0)
    monkeypatch.setattr(connecting, "OPEN_TIMEOUT", 1.0)
    path = make_video(tmp_path / "clip.mp4", pictures, container_options={"movflags": "faststart"})
    data = path.read_bytes()
    with breaking(data, (data.index(b"mdat") + 8) / len(data), how) as url:
        status = main(["detect", url, "--out", str(tmp_path / "out"), "-f", "jsonl,csv,vtt,png"])
    said = capfd.readouterr().err
    assert status == 2
    assert said.count("\n") == 1
    assert said.startswith(f"ongebd: {url}: ")
    assert "check the address and the network" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.name == "nt", reason="a named pipe")
def test_a_named_pipe_with_an_index_at_the_end_is_refused(tmp_path, make_video, pictures):
    path = make_video(tmp_path / "clip.mp4", pictures)
    pipe = tmp_path / "pipe.mp4"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_bytes, args=[path.read_bytes()], daemon=True).start()
    with pytest.raises(SourceError, match="pipe MPEG-TS or Matroska"), VideoReader(pipe) as video:
        list(video)


def test_a_valid_video_without_a_packet_is_an_empty_result_on_disk(tmp_path):
    path = tmp_path / "none.avi"
    with av.open(str(path), "w") as out:
        stream = out.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        out.start_encoding()
    assert main(["detect", str(path), "--out", str(tmp_path / "out"), "-q", "-f", "jsonl,csv,vtt,png"]) == 0
    assert len(list((tmp_path / "out").iterdir())) == 4
    end = json.loads((tmp_path / "out" / "none.jsonl").read_text().splitlines()[-1])
    assert (end["complete"], end["frames"], end["duration"]) == (True, 0, 0.0)
