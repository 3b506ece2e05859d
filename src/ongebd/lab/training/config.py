"""Every setting of a training, in one place: for the API, the command line and the YAML file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from ongebd.baselines.methods import Optimizer, Schedule
from ongebd.common import settings
from ongebd.common.settings import Range, check_fields
from ongebd.data.labelled import NEAR, LabelRule
from ongebd.detector.config import StreamConfig
from ongebd.errors import ConfigError, import_extra, os_errors, shown
from ongebd.estimator.anticipation import Metric
from ongebd.estimator.anticipator_config import AnticipatorConfig
from ongebd.lab.evaluation.relative_distance import FIGURES
from ongebd.offline.systems import recipe_of

ESTIMATOR = "estimator"
"""The paper's own method among those that can be trained."""

RATES = {"kinetics-gebd": 24.0, "tapos": 6.0, "inria": 24.0}
"""Frames per second of the paper's sets; INRIA's, at which the paper is silent, is that of the training."""

# Settings that may differ when a training is resumed: where it runs, and for how long.
MAY_CHANGE = frozenset(
    ["store", "labels", "out", "epochs", "device", "precision", "compile", "features_in", "checkpoint_every"]
)
_NOT_THE_METHOD = MAY_CHANGE - {"epochs"} | {
    *("dataset", "id_pattern", "method", "split_seed", "seed", "validate_every", "validation_limit")
}

Count = Annotated[int, Range(least=1)]
Size = Annotated[int, Range(least=1, most=2**16)]
Seed = Annotated[int, Range(least=0, most=2**63 - 1)]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How a model is trained. The defaults are the paper's, and ours only where it is silent.

    configs/kinetics-gebd.yaml says which is which. `changed` sets a baseline's defaults, its authors', with
    `method`.

    Raises:
        ConfigError: A setting has the wrong type or is out of range, or doesn't fit another one.
    """

    store: str = ""
    """Folder of the features (`ongebd extract`)."""
    labels: str = ""
    """File of the labels."""
    out: str = ""
    """Folder for the model, the checkpoint and the report."""
    dataset: Literal["auto", "kinetics-gebd", "tapos", "inria", "custom"] = "auto"
    """Whose rules apply."""
    id_pattern: str | None = None
    """Regular expression with a group that extracts a label's id from a store's, if they differ."""
    fps: Annotated[float | None, Range(above=0)] = None
    """The features' frames per second; None means the data set's: 24, or 6 for TAPOS. Others are refused."""
    label_rule: LabelRule = "exact"
    """"exact": only the frame nearest to a boundary is positive; "near": all within `near` of it."""
    near: Annotated[float, Range(least=0)] = NEAR
    """Seconds."""
    validation_share: Annotated[float, Range(above=0, below=1)] = 0.2
    """Share of the videos, drawn at random, for validation."""
    split_seed: Seed = 0
    """Seed of that draw."""

    method: str = ESTIMATOR
    """"estimator"; a baseline: "miniroad", "testra", "simon", "oadtr"; or a system of docs/offline.md."""
    network: str = ""
    """A baseline's or offline system's network, if it isn't the published one: "hidden=256,embedding=256"."""

    window: Annotated[int, Range(least=1, most=4096)] = 8
    """L, past frames that the anticipator sees."""
    width: Size | None = None
    """Numbers in a token; None means 1024 from D = 2048 on and 512 below. The same for `ffn`."""
    layers: Annotated[int, Range(least=1, most=1000)] = 3
    """Transformer decoder layers."""
    heads: Annotated[int, Range(least=1, most=4096)] = 8
    """Attention heads."""
    ffn: Size | None = None
    """Width of the feed-forward network."""
    dropout: float = 0.0
    """Dropout in the layers."""
    residual: bool = False
    """Predict the change from the window's mean. Not in the paper."""
    metric: Metric = "cosine"
    """The error's distance."""

    est: bool = True
    """The EST loss. Without both losses a binary classifier is trained, the paper's baseline."""
    rest: bool = True
    """The REST loss."""
    obd: bool = True
    """Decide by the Online Boundary Discriminator; else by a fixed threshold, as the baselines do."""
    alpha: Annotated[float, Range(above=0)] = 0.5
    """α, the weight of REST."""
    region: Annotated[int, Range(least=0, most=4096)] = 9
    """K, the number of errors before a target in its region."""
    balanced: bool = True
    """Batch-wise weighting of the boundaries' loss."""

    epochs: Count = 10
    """Passes over the training videos."""
    batch: Annotated[int, Range(least=1, most=2**20)] = 512
    """Targets in a batch, over all GPUs together."""
    run: Annotated[int, Range(least=1, most=2**20)] = 1
    """Neighbouring targets that share their windows; divides `batch`. 1: all targets are drawn by themselves,
    as in the paper; 64: a tenth of the work."""
    optimizer: Optimizer = "adamw"
    """adamw, adam, or sgd with a momentum of 0.9."""
    lr: Annotated[float, Range(above=0)] = 1e-4
    """Learning rate."""
    weight_decay: Annotated[float, Range(least=0)] = 0.01
    """Weight decay."""
    schedule: Schedule = "constant"
    """Schedule of the learning rate: constant, or that of the authors of testra, simon or oadtr."""
    clip: Annotated[float | None, Range(above=0)] = None
    """Largest norm of a gradient."""
    seed: Seed = 0
    """Seed of the weights, the order of the runs and dropout."""

    delta: int = 21
    """Δ, errors in the discriminator's queue."""
    warmup: int = 8
    """Errors that must be known before the first test (2 to delta)."""
    min_std: float = 1e-6
    """Floor on the standard deviation of the errors. 1e-6 only catches rounding."""
    min_error: float = 0.0
    """An error up to this makes no boundary."""
    min_gap: float = 0.0
    """Seconds after a boundary in which another must stand out twice as far."""
    max_run: float = 10.0
    """Seconds after which a run of positive frames ends; a stream needs some bound."""
    tau: float | None = 1.5
    """τ of the finished model; none means the best one on the validation videos."""
    select_by: str = "absolute 0.25"
    """The figure that chooses the best epoch, and τ and thresholds if they aren't given: "absolute 0.25", or
    0.1, 0.5, 1.0; "average"; "relative 0.05". A clock that never looks at the video scores high by the last
    two."""

    validate_every: Count = 1
    """Epochs between two validations; the last epoch always has one."""
    validation_limit: Count = 500
    """Videos of a validation after an epoch; the report uses all of them."""
    checkpoint_every: Count | None = None
    """Steps between two checkpoints; None writes one after each epoch only."""
    device: str = "auto"
    """auto (a GPU if there is one), cpu, cuda or cuda:N."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: bfloat16 autocast on a GPU, float32 elsewhere."""
    compile: Literal["auto", "off", "default", "graphs"] = "auto"
    """torch.compile; auto: on a GPU, not for ddm-net and coseg, at which it fails. "graphs" adds CUDA graphs,
    for small batches."""
    features_in: Literal["auto", "device", "host"] = "auto"
    """Where the features are: in the device's memory, or in the store and copied batch by batch."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.method != ESTIMATOR:
            recipe_of(self.method)
        elif self.network:
            raise ConfigError("network is for baselines; ESTimator has width, ffn, layers and heads")
        elif self.batch % self.run:
            raise ConfigError(f"batch ({self.batch}) must be a multiple of run ({self.run})")
        if self.is_baseline and self.obd:
            raise ConfigError("without est and rest the discriminator has no error: set obd to false")
        if self.select_by not in FIGURES:
            raise ConfigError(f"select_by must be one of {', '.join(FIGURES)}, not {shown(self.select_by)}")
        # These are needed only after hours of training; making them raises an error now.
        self.stream(24.0, 1.0 if self.tau is None else self.tau)
        self.model(2048)

    @property
    def is_baseline(self) -> bool:
        """Whether a binary classifier is trained instead of an anticipator."""
        return not (self.est or self.rest)

    def model(self, dim: int) -> AnticipatorConfig:
        """The network's shape for features of D = `dim` numbers."""
        names = ("window", "layers", "heads", "dropout", "residual", "metric", "width", "ffn")
        shape = {name: value for name in names if (value := getattr(self, name)) is not None}
        head = "classifier" if self.is_baseline else "anticipation"
        return AnticipatorConfig.for_dim(dim, **shape, head=head)

    def stream(self, fps: float, tau: float) -> StreamConfig:
        """The settings of a stream with the trained model."""
        names = ("delta", "window", "warmup", "min_std", "min_error", "min_gap", "max_run")
        return StreamConfig(fps=fps, tau=tau, **{name: getattr(self, name) for name in names})

    def network_settings(self) -> dict[str, int | float]:
        """The settings of a baseline's network that differ from the published ones.

        Raises:
            ConfigError: `network` is not a list of `name=number`.
        """
        values: dict[str, int | float] = {}
        for pair in filter(None, self.network.replace(" ", "").split(",")):
            name, _, text = pair.partition("=")
            try:
                values[name] = int(text) if text.isdecimal() else float(text)
            except ValueError:
                raise ConfigError(f"network: {pair!r} is not name=number") from None
        return values

    def changed(self, changes: dict[str, Any], where: str = "") -> Self:
        """A copy with some settings changed; text is read as the setting's type.

        With a baseline's `method` come its authors' settings and a fixed threshold, unless others are among
        the changes.

        Raises:
            ConfigError: A name is unknown or a value doesn't fit.
        """
        if (method := changes.get("method", ESTIMATOR)) != ESTIMATOR:
            changes = {"obd": False, **recipe_of(str(method)), **changes}
        return settings.changed(self, changes, f"{where}: " if where else "")

    def deviations(self) -> list[str]:
        """The settings that aren't the paper's, or the baseline's authors', each with its value."""
        paper = TrainConfig().changed({"method": self.method})
        unused = _NOT_THE_METHOD if self.method == ESTIMATOR else _NOT_THE_METHOD | {"run"}
        pairs = [(name, value) for name, value in asdict(self).items() if name not in unused]
        return [f"{name} {value}" for name, value in pairs if value != getattr(paper, name)]


_LARGEST = 1 << 16


def read_config(path: Path) -> TrainConfig:
    """Read a YAML file of `setting: value` lines.

    A value is a single one: lists and mappings, which can grow without limit or nest, are refused unread.

    Raises:
        ConfigError: The file can't be read or is too large, or a setting is unknown or wrong.
        MissingExtraError: PyYAML is not installed.
    """
    yaml = import_extra("yaml", "train")
    with os_errors(path, "check the path"), path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ConfigError(
            f"{path}: more than {_LARGEST} bytes; a file of settings is small, name another one"
        )
    try:
        text = data.decode("utf-8-sig")
        collections = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            collections += isinstance(event, yaml.CollectionStartEvent)
            if collections > 1:
                where = f"{path}, line {event.start_mark.line + 1}" if event.start_mark else str(path)
                raise ConfigError(f"{where}: a setting has one value, not a list or a mapping")
        values = yaml.safe_load(text)
    except (UnicodeDecodeError, yaml.YAMLError) as problem:
        raise ConfigError(f"{path}: not YAML ({' '.join(str(problem).split())})") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        ValueError,
    ) as problem:  # of PyYAML, for odd scalars
        if isinstance(problem, ConfigError):
            raise
        raise ConfigError(f"{path}: a value that YAML can't read ({problem}); put it in quotes") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected lines of `setting: value`")
    return TrainConfig().changed({str(name): value for name, value in values.items()}, str(path))


def write_config(config: TrainConfig, path: Path) -> None:
    """Write a file for `read_config`."""
    import yaml

    path.write_text(yaml.safe_dump(asdict(config), sort_keys=False), encoding="utf-8")
