"""What a source may make FFmpeg do: which formats it may be in, which protocols and files it may reach."""

from __future__ import annotations

import errno
import io
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final
from urllib.parse import unquote, urlsplit

from ongebd.errors import SourceError
from ongebd.video.connecting import give_up

if TYPE_CHECKING:
    from ongebd.video.connecting import PipeEnd

INSECURE: Final = "insecure+"
"""In front of a URL (`insecure+https://…`): accept any certificate."""

# Containers that hold a video and open nothing else. Not among them: lists of other files (concat, hls, dash,
# image2), descriptions of sessions (sdp), devices, filters (lavfi), and text drawn as a picture (tty, …).
_FORMATS: Final = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpegtsraw,mpeg,mpegvideo,avi,flv,"
    "live_flv,asf,asf_o,ogg,nut,mxf,mxg,gxf,wtv,ivf,h264,hevc,vvc,evc,h261,h263,m4v,av1,"
    "obu,mjpeg,mjpeg_2000,smjpeg,mpjpeg,dv,dirac,vc1,vc1test,cavsvideo,avs,avs2,avs3,apv,"
    "dnxhd,rawvideo,yuv4mpegpipe,gif,apng,jpegxl_anim,ico,rm,ivr,rpl,roq,swf,4xm,bink,smk,"
    "flic,film_cpk,nuv,nsv,pva,ty,mtv,mv,mm,vmd,wc3movie,xmv,dhav,kux,pmp,psxstr,thp,"
    "usm,r3d,lmlm4,cine,fits,filmstrip,iv8,ipmovie,idcin,ea,dxa,c93,bmp_pipe,dds_pipe,"
    "dpx_pipe,exr_pipe,gem_pipe,gif_pipe,hdr_pipe,j2k_pipe,jpeg_pipe,jpegls_pipe,jpegxl_pipe,"
    "jpegxs_pipe,pam_pipe,pbm_pipe,pcx_pipe,pfm_pipe,pgm_pipe,pgmyuv_pipe,phm_pipe,pictor_pipe,"
    "png_pipe,ppm_pipe,psd_pipe,qoi_pipe,sgi_pipe,sunrast_pipe,tiff_pipe,webp_pipe,xbm_pipe,"
    "xpm_pipe,xwd_pipe"
)
# Sound alone: recognised, so that the refusal can say that the video is missing.
_SOUND: Final = "mp3,wav,flac,aac,ac3,eac3,aiff,caf,amr,ape,au,w64,wv,tta,dts"
_PLAYLIST = "hls"
PLAYLISTS: Final = (".m3u8", ".m3u")
"""How the name of an HLS playlist ends, in lower case."""
DATA_OPTIONS: Final = {"protocol_whitelist": "file,fd,pipe", "format_whitelist": f"{_FORMATS},{_SOUND}"}
"""FFmpeg's options for a file, a pipe or a file object: a container that opens nothing else."""
WEB_OPTIONS: Final = {
    "format_whitelist": f"{_FORMATS},{_SOUND},{_PLAYLIST}",
    "protocol_whitelist": "file,http,https,crypto,data",  # for HLS to ask us; FFmpeg can't connect by these
    "http_persistent": "0",
    **dict.fromkeys(("allowed_extensions", "allowed_segment_extensions"), "ALL"),
    "extension_picky": "0",
}
"""FFmpeg's options for what asks us for each file: web addresses and playlists, also of disguised pieces."""
_STREAM = "udp,tcp,tls,rtp,srtp,rtsp,rtsps,rtmp,rtmps,rtmpe,ffrtmpcrypt,srt,crypto"
_SCHEMES: Final = {
    **dict.fromkeys(("http", "https"), ""),
    **dict.fromkeys(("rtsp", "rtsps", "rtmp", "rtmps", "rtmpe"), _STREAM),
    **dict.fromkeys(("udp", "tcp", "tls", "rtp", "srtp", "srt"), _STREAM),
    **dict.fromkeys(("ftp", "sftp"), "ftp,sftp,tcp"),
}


def options_for_url(url: str) -> dict[str, str]:
    """FFmpeg's options that keep a URL's source to the network, in a video format, with checked certificates.

    Raises:
        SourceError: The protocol isn't one of the network's.
    """
    try:
        parts = urlsplit(plain_url(url))
        scheme, _ = parts.scheme.lower(), parts.port  # which raises for a port that can't be
    except ValueError:  # whose text may hold a password
        raise SourceError(
            "not a whole address; check it (in a password, write / as %2F, ? as %3F, # as %23)"
        ) from None
    if scheme not in _SCHEMES:
        raise SourceError(f"unknown protocol; use one of {', '.join(_SCHEMES)}, or a file")
    if scheme in ("http", "https"):
        return WEB_OPTIONS
    formats = [_FORMATS, _SOUND, *(name for name in ("rtsp", "rtp") if scheme.startswith(name))]
    options = {"protocol_whitelist": _SCHEMES[scheme], "format_whitelist": ",".join(formats)}
    if not url.startswith(INSECURE):
        options["tls_verify"] = "1"
        if (authorities := _authorities()) is not None:
            options["ca_file"] = authorities
    return options


def plain_url(url: str) -> str:
    """A URL without our own mark, as FFmpeg takes it."""
    return url.removeprefix(INSECURE)


_MOST: Final = 100


@dataclass(slots=True)
class Pieces:
    """What happened to the pieces of a source: those that a playlist names, or the bytes of a pipe.

    Attributes:
        refused: The newest names of files and addresses that it was not allowed to open.
        missing: The newest names of pieces that didn't come.
        cut_off: Whether it is a local one without an end mark.
        pipe: Of standard input.
        close: Ends the connections to a web server.
    """

    refused: deque[str] = field(default_factory=partial(deque, maxlen=_MOST))
    missing: deque[str] = field(default_factory=partial(deque, maxlen=_MOST))
    cut_off: bool = False
    pipe: PipeEnd | None = None
    close: Callable[[], None] | None = None

    def check(self) -> None:
        """End reading after a hundred of them: a playlist may name millions."""
        if max(len(self.refused), len(self.missing)) == _MOST:
            give_up()
            raise OSError(errno.EIO, "too many pieces of the playlist are missing")


_END_MARK: Final = b"#EXT-X-ENDLIST"


class PlaylistFolder:
    """Opens a local playlist and its pieces: files in the playlist's folder or below, nothing else.

    A playlist without an end mark was cut off, or is being written: it ends where it ends now, since FFmpeg
    would begin near its end and wait for more. What can't be opened is an empty piece, and is noted.
    """

    def __init__(self, path: str, pieces: Pieces) -> None:
        self._folder, self._pieces = Path(path).resolve().parent, pieces

    def __call__(self, url: str, flags: int, options: dict[str, str]) -> BinaryIO:
        """Open what FFmpeg asks for, without an exception: PyAV would print it."""
        name = url.removeprefix("crypto:").removeprefix("crypto+")
        if name != url or ("://" in name and not name.startswith("file://")):
            return self._without(self._pieces.refused, name)
        try:
            path = Path(unquote(urlsplit(name).path) if "://" in name else name.removeprefix("file:"))
            if self._folder not in path.resolve().parents:
                return self._without(self._pieces.refused, str(path))
            file = _Piece(io.FileIO(path))
            if not file.peek(7).startswith(b"#EXTM3U"):
                return file
            with file:
                text = file.read().decode(errors="replace").encode()  # PyAV takes no other names
        except (OSError, RuntimeError, ValueError):
            return self._without(self._pieces.missing, Path(name).name)
        ended = any(line.startswith(_END_MARK) for line in text.splitlines())
        self._pieces.cut_off |= b"#EXTINF" in text and not ended
        return io.BytesIO(b"%s\n%s\n" % (text, _END_MARK))

    def _without(self, names: deque[str], name: str) -> BinaryIO:
        names.append(name)
        self._pieces.check()
        return io.BytesIO()


class _Piece(io.BufferedReader):
    """A file that refuses an impossible place without an exception: PyAV would print it."""

    def seek(self, target: int, whence: int = 0, /) -> int:
        """-1 if the place is impossible."""
        try:
            return super().seek(target, whence)
        except (OSError, ValueError):
            return -1


@cache
def _authorities() -> str | None:
    """The system's file of certificate authorities; None: FFmpeg's own default."""
    import ssl  # here, because it is slow to import

    return ssl.get_default_verify_paths().cafile
