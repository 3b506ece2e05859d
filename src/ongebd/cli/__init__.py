"""The command line: `ongebd COMMAND …`, one thin file a command."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from cyclopts import App, CycloptsError

from ongebd import __version__
from ongebd.errors import OngebdError

app = App(
    name="ongebd",
    help="Online generic event boundary detection: where one event ends and the next begins.",
    version=__version__,
    help_format="plaintext",
    end_of_options_delimiter="--",
)
# Named by string: a command's module is imported when it is called, so that `--help` stays fast.
app.command(
    "ongebd.cli.detect:detect", name="detect", help="Find the event boundaries of videos, as they stream."
)
app.command("ongebd.cli.evaluate:evaluate", name="evaluate", help="Score boundaries against labels.")
app.command("ongebd.cli.extract:extract", name="extract", help="Store the features of videos, for training.")
app.command("ongebd.cli.train:train", name="train", help="Train the paper's anticipator on stored features.")
app.command("ongebd.cli.export:export", name="export", help="Write a trained model's ONNX file.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 when all went well, 2 after a mistake of the user (said in one line on stderr), 130 after Ctrl-C or
        a plain kill: what was found by then is on disk.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        status = app(argv, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as problem:
        return _refuse(f"{problem} (see: ongebd --help)")
    except OngebdError as problem:
        return _refuse(problem)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output went away: `ongebd detect … | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return status if isinstance(status, int) else 0


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _refuse(problem: object) -> int:
    print(f"ongebd: {' '.join(str(problem).split())}", file=sys.stderr)  # noqa: T201
    return 2
