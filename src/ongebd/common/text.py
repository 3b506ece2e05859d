"""Names of sources and files as text: without credentials, and safe for terminals, files and pictures."""

from __future__ import annotations

import re
import unicodedata
from itertools import accumulate

HIDDEN = "***"
STANDARD_INPUT = "standard input"
# (A single letter is a Windows drive.)
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,20}:/"
_FIRST_SCHEME = re.compile(f"({_SCHEME}/?)")  # pathlib leaves one of the two slashes
_NEXT_SCHEME = re.compile(rf"(?<=[\s|'\"(</])({_SCHEME}/)")
# `USER:PASSWORD@` of an address without a scheme; `10:30@home.mp4` isn't one, nor is `C:\me@home.mp4`.
_BARE_USER = re.compile(r"(?<![^\s|'\"(<=])(?!file:)[A-Za-z][\w.%+~-]+:\S*@(?=[\w\[])")
# A colon, comma or full stop before a space belongs to the sentence around the URL.
_END = r"[:,;.]*(?:\s|$)"
_IP = r"\[[^\]/?#@]*\]|\d+(?:\.\d+){3}"
_SERVER = re.compile(rf"({_IP}|[\w.~-]*?)(:\d{{0,5}})?(?=[/?#\s'\")>|]|{_END})")
_NO_SERVER = re.compile(rf"\A(?:(?!{_END})[^/?#\s])*")
_SENTENCE = re.compile(r"([:,;]+(?:\s|$)|\n)")
_FIRST_VALUE = re.compile(r"\?[\w.%-]+=")
_ITEM = re.compile(r"([?&;#]+)([^&;#=]*)(?:=([^&;#]*))?")
_PAIR = re.compile(r"([^/_&;,=\s]*)=(.*?)(?=[_&;,][^/_&;,=\s]*=|\s|$)")
_APP = re.compile(r"(?:/+[^/\s]+(?=/+[^/\s]))?/*")
_NAMED_PART = re.compile(
    r"(?<=/)(user(?:name)?|usr|login|pin|pass(?:word|wd|phrase|code)?|pwd|psw|pw|secret|sig(?:nature)?|jwt|sid"
    r"|(?:api|access)?[_-]?(?:key|token)|auth(?:orization)?|session(?:[_-]?id)?|hdnts|hdnea|policy|credentials?"
    r")/[^/\s]+",
    re.IGNORECASE,
)
# Of television over the Internet: `/live/USER/PASSWORD/1234.ts`, `/USER/PASSWORD/1234`.
_ACCOUNT = re.compile(
    r"\A(/(?:live|movie|series|timeshift)/)[^/\s]+/[^/\s]+(?=/\d)|\A(/)[^/\s]+/[^/\s]+(?=/\d+(?:\s|\Z))",
    re.IGNORECASE,
)
_AFTER_COLON = re.compile(r"(?<=/)(?!(?:mp4|flv|smil):)([^/:\s]*:)[^/\s]+")  # `/0/USER:PASSWORD/main`
_RANDOM_PART = re.compile(
    r"(?<=/)(?![\w-]+\.[A-Za-z]\w{1,4}$)[^/\s]*?"  # not the name of a file
    r"(?=(?:[A-Za-z]*\d){2})(?=(?:\d*[A-Za-z]){3})[A-Za-z0-9]{16}[^/\s]*"
)
# The settings that tell cameras apart, and what their values look like. Every other value may be a secret.
_SHOWN = re.compile(
    r"action|audio|bitrate|buffer_size|cam(?:era)?(?:id)?|ch|chan|chn|channel(?:id)?|codec|compression|device"
    r"|duration|fifo_size|format|fps|framerate|h|height|index|input|latency|listen|live|mode|number|port|preset"
    r"|overrun_nonfatal|pkt_size|profile|proto(?:col)?|quality|rate|res(?:olution)?|reuse|rotation|size|t|time"
    r"|stream|streamtype|subtype|timeout|track|transport(?:mode)?|transtype|ttl|type|unicast|vcodec|video"
    r"|videocodec|view|w|width",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"(?:\d{1,10}(?:[.:x*-]\d{1,6}){0,3}[a-z]{0,3}|[a-z][a-z_-]{0,15}\d{0,4})(?:\.[a-z]\w{1,3})?",
    re.IGNORECASE,
)


def public_name(source: str) -> str:
    """Hide all of every URL in a text that may be a secret; the server and harmless settings stay.

    Hidden are user and password, also without a scheme; values of a query, fragment or path
    (`/user=x_password=y`) other than numbers and short words of well-known settings; the stream key of RTMP;
    parts of a path that follow the name of a secret, or look random. A second call changes nothing.

    >>> public_name("rtsp://admin:hunter2@10.0.0.7:554/live?channel=1&pw=abc")
    'rtsp://***@10.0.0.7:554/live?channel=1&pw=***'
    >>> public_name("holiday at 5@home.mp4")
    'holiday at 5@home.mp4'
    """
    before, *rest = _FIRST_SCHEME.split(source, maxsplit=1)
    after = ""
    if rest:
        body, *others = _NEXT_SCHEME.split(rest[1])
        addresses = zip([rest[0], *others[::2]], [body, *others[1::2]], strict=True)
        after = "".join(scheme + _public(scheme.lower(), body) for scheme, body in addresses)
    return _BARE_USER.sub(f"{HIDDEN}@", before) + after


def is_unique(name: str) -> bool:
    """Whether a public name can be that of one source only: nothing but user and password is hidden."""
    return HIDDEN not in name.replace(f"{HIDDEN}@", "")


def _public(scheme: str, body: str) -> str:
    """What follows the scheme of a URL: the address, and maybe a sentence."""
    if scheme.startswith("file:"):
        return body
    user = body[: _user_end(body)]
    body = body[len(user) :]
    server = _SERVER.match(body)
    shown = HIDDEN if server is None else server[0]
    body = _NO_SERVER.sub("", body) if server is None else body[server.end() :]
    address, *sentence = _SENTENCE.split(body, 1)
    path, *query = re.split(r"(?=[?#])", address, maxsplit=1)
    if scheme.startswith("http"):
        path = _ACCOUNT.sub(rf"\1\2{HIDDEN}/{HIDDEN}", path)
    path = _public_path(path, stream_key=scheme.startswith("rtmp"))
    query = [_ITEM.sub(_public_item, each) for each in query]
    return "".join([f"{HIDDEN}@" if len(user) > 1 else user, shown, path, *query, *sentence])


def _user_end(body: str) -> int:
    """Where `user:password@` ends: at the last @ that can end it, because a password may hold `@/?#`."""
    if body.startswith(f"{HIDDEN}@"):
        return len(HIDDEN) + 1
    address = _SENTENCE.split(body, 1)[0]
    before_query = _FIRST_VALUE.split(address, 1)[0]
    server = _SERVER.match(body)
    if server is not None and "@" not in re.split(r"[/?#\s]", body, maxsplit=1)[0]:
        sure = not server[2] or re.fullmatch(_IP, server[1])  # else a password may begin like a port
        return 0 if sure else before_query.rfind("@") + 1
    return next((part.rfind("@") + 1 for part in (before_query, address, body) if "@" in part), 0)


def _public_path(path: str, *, stream_key: bool) -> str:
    if stream_key:
        app = _APP.match(path)
        before = "" if app is None else app[0]
        key = path[len(before) :]
        return before + (key if key.startswith(HIDDEN) else HIDDEN if key.strip() else key)
    path = _NAMED_PART.sub(rf"\1/{HIDDEN}", _PAIR.sub(_public_pair, path))
    return _RANDOM_PART.sub(HIDDEN, _AFTER_COLON.sub(rf"\1{HIDDEN}", path))


def _public_pair(found: re.Match[str]) -> str:
    name, value = found.groups()
    first = value.partition("/")[0]
    return f"{name}={value if _is_harmless(name, first) else HIDDEN}"


def _public_item(found: re.Match[str]) -> str:
    mark, name, value = found.groups()
    word = re.split(r"[\s'\")>]", name if value is None else value, maxsplit=1)[0]
    if value is None:
        known = word in ("", HIDDEN) or _SHOWN.fullmatch(word) or re.fullmatch(r"\d{1,3}", word)
        return mark + (name if known else HIDDEN)
    name = name if re.fullmatch(r"[\w.%$~-]{0,40}", name) else HIDDEN
    return f"{mark}{name}={value if not value or (word and _is_harmless(name, word)) else HIDDEN}"


def _is_harmless(name: str, value: str) -> bool:
    return value in ("", HIDDEN) or bool(_SHOWN.fullmatch(name) and _HARMLESS.fullmatch(value))


_RAW = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # Persian and emoji need them


def spoken_name(source: str) -> str:
    """The name of a source for people: as `public_name`, with `-` spelled out.

    >>> spoken_name("-"), spoken_name("rtsp://me:secret@camera/1")
    ('standard input', 'rtsp://***@camera/1')
    """
    return STANDARD_INPUT if source == "-" else public_name(source)


def printable(text: str) -> str:
    r"""Escape what acts on a terminal instead of being seen: one line that any UTF-8 file or terminal takes.

    That is control characters, ends of lines, marks that turn the direction or take no room, stray bytes.

    >>> print(printable("two\nlines, a stray \udcff byte"))
    two\nlines, a stray \udcff byte
    """
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in _RAW and c not in _JOINERS else c
        for c in text
    )


def shortened(text: str, longest: int) -> str:
    """Leave out the middle of a text that is wider than `longest` Latin letters.

    >>> shortened("a_very_long_name_of_a_video.mp4", 12)
    'a_very_l….mp4'
    """
    cells = [2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text]
    total = sum(cells)
    if total <= longest:
        return text
    ends = list(accumulate(cells))
    head = "".join(c for c, end in zip(text, ends, strict=True) if end <= longest * 2 // 3)
    tail = "".join(c for c, end in zip(text, ends, strict=True) if total - end < longest // 3)
    return f"{head}…{tail}"
