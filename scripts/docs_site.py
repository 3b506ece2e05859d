"""What mkdocs needs beside docs/: the measured results, and the settings of a training from their code."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ongebd.lab.training.config import TrainConfig

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def on_files(files: Any, *, config: Any) -> Any:
    """Put the results beside the pages."""
    from mkdocs.structure.files import File

    for path in sorted(RESULTS.iterdir()):
        files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Point links to the results there, and fill in the table."""
    markdown = markdown.replace("](../benchmarks/results/", "](results/")
    return markdown.replace("<!-- settings -->", "\n".join(settings_table()))


def settings_table() -> Iterator[str]:
    """The fields of `TrainConfig` as rows of a Markdown table."""
    yield "| setting | default | |\n|---|---|---|"
    body = ast.parse(inspect.getsource(TrainConfig)).body[0].body
    for field, text in itertools.pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(about))):
                about = " ".join(about.split()).replace("|", "\\|")
                yield f"| `{name}` | {getattr(TrainConfig, name)} | {about} |"
