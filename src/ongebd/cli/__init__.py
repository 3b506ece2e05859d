"""The command line: `ongebd COMMAND …`, one thin file per command."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from cyclopts import App, CycloptsError, Parameter

from ongebd import __version__
from ongebd.cli.options import TOKEN, ShortHelp, in_words, strict, with_help
from ongebd.cli.terminal import fill_closed_streams, leave_output, say
from ongebd.errors import OngebdError

_NOTES = """Defaults are in brackets; some depend on the model.

Exit status: 0 on success; 2 if a source failed or ended too early; 130 after Ctrl-C.
Results so far are kept."""

app = App(
    name="ongebd",
    help="Online generic event boundary detection: where one event ends and the next begins.",
    version=__version__,
    help_format="plaintext",
    help_formatter=ShortHelp(),
    end_of_options_delimiter="--",
    default_parameter=Parameter(converter=strict),
)
for name, where, text, notes in (
    ("detect", "detect:detect", "Find the event boundaries of videos, as they stream.", _NOTES),
    ("watch", "watch:watch", "Watch cameras and feeds, for days.", _NOTES),
    ("convert", "convert:convert", "Turn results or labels into another format.", None),
    ("split", "split:split", "Split a video into one file for each segment.", None),
    ("keyframes", "keyframes:keyframes", "Write one sharp picture for each segment of a video.", _NOTES),
    ("evaluate", "evaluate:evaluate", "Score boundaries against labels.", None),
    ("models", "models:models", "List the methods.", None),
    ("bench", "bench:bench", "Measure how fast the methods are on this machine.", None),
    ("compose", "compose:compose", "Make labelled test videos from clips.", None),
    ("extract", "extract:extract", "Store the features of videos, for training.", None),
    ("train", "train:train", "Train the paper's anticipator on stored features.", None),
    ("experiment", "experiment:app", "Run the paper's tables and figures on your data.", None),
    ("export", "train:export", "Write a trained model's ONNX file.", None),
):  # by string: a command's module is imported when the command runs, so that `--help` stays fast
    more = {} if notes is None else {"help_epilogue": notes}
    app.command(f"ongebd.cli.{where}", name=name, help=text, **more)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0; 2 after a mistake of the user or if the output can't be written (one line on stderr says which);
        130 after Ctrl-C or a plain kill, with the results until then on disk; 141 if the reader went away.
    """
    fill_closed_streams()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupt)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else the caller ignores it
            signal.signal(signal.SIGINT, interrupt)
    tokens = with_help(sys.argv[1:] if argv is None else argv)
    if tokens[:1] != ["watch"]:  # which takes it itself
        os.environ.pop(TOKEN, None)  # no program that we start inherits it
    try:
        status = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as problem:
        return _refuse(in_words(problem))
    except OngebdError as problem:
        return _refuse(problem)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output went away: `ongebd detect … | head -1`
        leave_output()
        return 141
    except SystemExit as ended:  # rich turns it into this
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        leave_output()
        return 141
    except OSError as problem:
        if problem.filename is not None:  # not an error of a stream
            raise
        leave_output()
        return _refuse(f"can't write to standard output: {problem.strerror or problem}")
    finally:
        if argv is None and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):  # all is done; the interpreter still tidies up
                signal.signal(number, signal.SIG_IGN)
    return status if isinstance(status, int) else 0


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End the command. A second signal changes nothing: it would tear the results that are being finished."""
    problem = sys.exception()
    while problem is not None and not isinstance(problem, KeyboardInterrupt):
        problem = problem.__context__
    if problem is None:
        raise KeyboardInterrupt


def _refuse(problem: object) -> int:
    say(f"ongebd: {' '.join(str(problem).split())}")
    return 2
