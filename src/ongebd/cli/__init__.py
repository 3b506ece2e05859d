"""The command line: `ongebd COMMAND …`, one thin file a command."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from cyclopts import App, CycloptsError, Parameter

from ongebd import __version__
from ongebd.cli.standard_streams import fill_closed_streams, leave_output, say
from ongebd.cli.usage import in_words, strict
from ongebd.errors import OngebdError

app = App(
    name="ongebd",
    help="Online generic event boundary detection: where one event ends and the next begins.",
    version=__version__,
    help_format="plaintext",
    end_of_options_delimiter="--",
    default_parameter=Parameter(converter=strict),
)
# Named by string: a command's module is imported when it is called, so that `--help` stays fast.
app.command(
    "ongebd.cli.detect:detect",
    name="detect",
    help="Find the event boundaries of videos, as they stream.",
    help_epilogue=(
        "What stands in brackets is the value of the model named there, or of all.\n\n"
        "Exit status: 0; 2 if a source was refused or broke off (what was found until then is kept); 130"
        " after Ctrl-C (likewise)."
    ),
)
app.command(
    "ongebd.cli.watch:watch",
    name="watch",
    help="Watch cameras and feeds, for days.",
    help_epilogue=(
        "What stands in brackets is the value of the model named there, or of all.\n\n"
        "Exit status: 0; 2 if a source was refused or given up; 130 after Ctrl-C."
    ),
)
app.command("ongebd.cli.evaluate:evaluate", name="evaluate", help="Score boundaries against labels.")
app.command("ongebd.cli.models:models", name="models", help="List the methods that can be named.")
app.command("ongebd.cli.bench:bench", name="bench", help="Measure how fast the methods are on this machine.")
app.command("ongebd.cli.compose:compose", name="compose", help="Make labelled videos out of clips.")
app.command("ongebd.cli.extract:extract", name="extract", help="Store the features of videos, for training.")
app.command("ongebd.cli.train:train", name="train", help="Train the paper's anticipator on stored features.")
app.command(
    "ongebd.cli.experiment:app", name="experiment", help="Run the paper's tables and figures, on your data."
)
app.command("ongebd.cli.export:export", name="export", help="Write a trained model's ONNX file.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 when all went well, 2 after a mistake of the user or where the output cannot be written (said in one
        line on stderr), 130 after Ctrl-C or a plain kill: what was found by then is on disk.
    """
    fill_closed_streams()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        status = app(argv, exit_on_error=False, print_error=False, result_action="return_value")
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
    except SystemExit as ended:  # which rich makes of it
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        leave_output()
        return 141
    except OSError as problem:
        if problem.filename is not None:  # no writing to a stream: of something else
            raise
        leave_output()
        return _refuse(f"cannot write to standard output: {problem.strerror or problem}")
    return status if isinstance(status, int) else 0


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _refuse(problem: object) -> int:
    from ongebd.common.text import (
        printable,
        public_name,  # here: its room brings PyAV, and `--help` must stay fast
    )

    say(f"ongebd: {printable(public_name(' '.join(str(problem).split())))}")
    return 2
