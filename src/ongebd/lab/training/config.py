"""Every setting of a training, in one place: for the API, the command line and the YAML file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self, get_type_hints

from ongebd.baselines.methods import find_method
from ongebd.data.labelled import NEAR, LabelRule
from ongebd.detector.config import StreamConfig
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.estimator.anticipation import Metric
from ongebd.estimator.anticipator_config import AnticipatorConfig
from ongebd.lab.evaluation.figures import FIGURES
from ongebd.lab.training.setting_types import as_type, checked

ESTIMATOR = "estimator"
"""The paper's own method among those that can be trained."""

# What may differ between a training and the one that goes on with it: where it runs, and for how long.
_MAY_CHANGE = frozenset(
    (
        *("store", "labels", "out", "epochs", "device", "precision", "compile", "features_in"),
        *("checkpoint_every", "tensorboard"),
    )
)

# The least and the most that whole numbers may be: beyond, memory or a library's own numbers end.
_WHOLE = dict(
    **dict.fromkeys(("window", "heads"), (1, 4096)),
    **dict.fromkeys(("run", "batch"), (1, 2**20)),
    **dict.fromkeys(("width", "ffn"), (1, 2**16)),
    **dict.fromkeys(("seed", "split_seed"), (0, 2**63 - 1)),
    **dict.fromkeys(("epochs", "validate_every", "validation_limit", "checkpoint_every"), (1, 2**63 - 1)),
    layers=(1, 1000),
    region=(0, 4096),
)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How a model is trained. The paper's settings by default, ours where it is silent: docs/training.md.

    Raises:
        ConfigError: A setting is of another type or outside its range, or does not go with another one.
    """

    store: str = ""
    """Folder of the features (`ongebd extract`)."""
    labels: str = ""
    """File of the labels."""
    out: str = ""
    """Folder for the model, the checkpoint and the report."""
    dataset: Literal["auto", "kinetics-gebd", "tapos", "inria", "custom"] = "auto"
    """Which set's rules hold."""
    id_pattern: str | None = None
    """Regular expression with a group that takes a label's id out of a store's, where they differ."""
    label_rule: LabelRule = "near"
    """"near": all frames within `near` of a boundary are positive; "exact": the nearest one alone."""
    near: float = NEAR
    """Seconds."""
    validation_share: float = 0.2
    """Of the videos, drawn at random, that validate."""
    split_seed: int = 0
    """Of that draw."""

    method: str = "estimator"
    """"estimator", or a baseline: "miniroad", "testra", "simon", "oadtr"."""
    network: str = ""
    """A baseline's network, where it is not the published one: "hidden=256,embedding=256"."""
    own_recipe: bool = True
    """Train a baseline with its authors' optimiser, not with AdamW, `lr` and `weight_decay` as here."""

    window: int = 8
    """L, past frames that the anticipator looks at."""
    width: int | None = None
    """Numbers in a token; None takes 1024 from D = 2048 on and 512 below. Likewise `ffn`."""
    layers: int = 3
    """Transformer decoder layers."""
    heads: int = 8
    """Attention heads."""
    ffn: int | None = None
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
    alpha: float = 0.5
    """α, the weight of REST."""
    region: int = 9
    """K, how many errors before a target its region has."""
    balanced: bool = True
    """Batch-wise weighting of the boundaries' loss."""

    epochs: int = 10
    """Passes over the training videos."""
    batch: int = 512
    """Targets in a batch, over all GPUs together."""
    run: int = 64
    """Neighbouring targets that share their windows; divides `batch`."""
    lr: float = 1e-4
    """AdamW's learning rate, constant."""
    weight_decay: float = 0.01
    """AdamW's weight decay."""
    seed: int = 0
    """Of the weights, the order of the runs and dropout."""

    delta: int = 21
    """Δ, errors in the discriminator's queue."""
    warmup: int = 8
    """Errors that must be known before the first test (2 to delta)."""
    min_std: float = 0.004
    """Floor on the standard deviation of the errors."""
    min_error: float = 0.02
    """No error at or under this makes a boundary."""
    min_gap: float = 0.5
    """Seconds after a boundary in which another must stand out twice as far."""
    max_run: float = 1.0
    """Seconds after which a run of positive frames is ended."""
    tau: float | None = None
    """τ of the finished model; None takes the best one on the validation videos."""
    select_by: str = "absolute 0.25"
    """The figure that chooses τ and the best epoch: "absolute 0.25", or 0.1, 0.5, 1.0; "average"; "relative
    0.05". A clock that never looks at the video scores high by the last two."""

    validate_every: int = 1
    """Epochs between two validations; the last epoch always has one."""
    validation_limit: int = 500
    """Videos of a validation after an epoch; the report uses all of them."""
    checkpoint_every: int | None = None
    """Steps between two checkpoints; None writes one after each epoch only."""
    device: str = "auto"
    """auto (a GPU if there is one), cpu, cuda or cuda:N."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: bfloat16 autocast on a GPU, float32 elsewhere."""
    compile: Literal["auto", "off", "default", "graphs"] = "auto"
    """torch.compile; auto: on a GPU only. "graphs" adds CUDA graphs, for small batches."""
    features_in: Literal["auto", "device", "host"] = "auto"
    """Where the features lie: in the device's memory, or in the store and brought over batch by batch."""
    tensorboard: bool = True
    """Write curves for TensorBoard into the out folder."""

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self)).items():
            object.__setattr__(self, name, checked(name, getattr(self, name), hint))
        for name, (least, most) in _WHOLE.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise ConfigError(f"{name} must be a whole number from {least} to {most}, not {value}")
        if self.method != ESTIMATOR:
            find_method(self.method)
        elif self.network:
            raise ConfigError("network is for baselines; ESTimator has width, ffn, layers and heads")
        if self.batch % self.run:
            raise ConfigError(f"batch ({self.batch}) must be a multiple of run ({self.run})")
        if not 0 < self.validation_share < 1:
            raise ConfigError(
                f"validation_share must lie between 0 and 1, not {self.validation_share}: without validation"
                " no threshold can be chosen"
            )
        for name in ("lr", "alpha"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("weight_decay", "near"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} must be at least 0, not {getattr(self, name)}")
        if self.is_baseline and self.obd:
            raise ConfigError(
                "without est and rest there is no error for the discriminator: set obd to false"
            )
        if self.select_by not in FIGURES:
            raise ConfigError(f"select_by must be one of {', '.join(FIGURES)}, not {self.select_by!r}")
        # Everything that is made of the settings only after hours of training is made once now: it raises.
        stream = self.stream(24.0, 1.0 if self.tau is None else self.tau)
        stream.discriminator(), stream.runs()
        self.model(2048)

    @property
    def is_baseline(self) -> bool:
        """Whether a binary classifier is trained instead of an anticipator."""
        return not (self.est or self.rest)

    def model(self, dim: int, **changes: Any) -> AnticipatorConfig:
        """The network's shape for features of D = `dim` numbers."""
        sizes = {name: value for name in ("width", "ffn") if (value := getattr(self, name)) is not None}
        given = {name: getattr(self, name) for name in ("window", "layers", "heads", "dropout", "residual")}
        head = "classifier" if self.is_baseline else "anticipation"
        return AnticipatorConfig.for_dim(
            dim, **{**sizes, **given, "metric": self.metric, "head": head, **changes}
        )

    def stream(self, fps: float, tau: float) -> StreamConfig:
        """The settings of a stream with the trained model."""
        return StreamConfig(
            fps=fps,
            tau=tau,
            delta=self.delta,
            window=self.window,
            warmup=self.warmup,
            min_std=self.min_std,
            min_error=self.min_error,
            min_gap=self.min_gap,
            max_run=self.max_run,
        )

    def changed(self, changes: dict[str, Any], where: str = "") -> Self:
        """A copy with some settings changed; text is read as the setting's type.

        Raises:
            ConfigError: A name is unknown or a value of another type.
        """
        hints = get_type_hints(type(self))
        prefix = f"{where}: " if where else ""
        checked = {}
        for name, value in changes.items():
            if name not in hints:
                close = get_close_matches(name, hints, n=1)
                hint = f"did you mean {close[0]}?" if close else "see docs/training.md"
                raise ConfigError(f"{prefix}unknown setting {name!r}: {hint}")
            checked[name] = as_type(value, hints[name], f"{prefix}{name}")
        if checked.get("method", ESTIMATOR) != ESTIMATOR:  # whose own head is a fixed threshold
            checked.setdefault("obd", False)
        return replace(self, **checked)

    def require_same_recipe(self, other: TrainConfig, where: str) -> None:
        """Make sure that a training may be gone on with under `other`.

        Raises:
            ConfigError: They differ in more than where they run and for how long.
        """
        differing = [
            f"{f.name} {getattr(self, f.name)!r}, not {getattr(other, f.name)!r}"
            for f in fields(self)
            if f.name not in _MAY_CHANGE and getattr(self, f.name) != getattr(other, f.name)
        ]
        if differing:
            raise ConfigError(f"{where}: was trained with {'; '.join(differing)}; name another --out")

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for YAML and JSON."""
        return asdict(self)


def read_config(path: Path) -> TrainConfig:
    """The configuration in a YAML file of `setting: value` lines.

    Raises:
        ConfigError: It cannot be read, or says something unknown.
        MissingExtraError: PyYAML is not installed.
    """
    try:
        import yaml
    except ModuleNotFoundError as problem:
        raise MissingExtraError.of(problem.name, "train") from None
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read ({problem.strerror}); check the path") from None
    except (UnicodeDecodeError, yaml.YAMLError) as problem:
        raise ConfigError(f"{path}: not YAML ({problem})") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: lines of `setting: value` are wanted")
    return TrainConfig().changed({str(name): value for name, value in values.items()}, str(path))


def write_config(config: TrainConfig, path: Path) -> None:
    """Write what `read_config` reads."""
    import yaml

    path.write_text(yaml.safe_dump(config.to_dict(), sort_keys=False), encoding="utf-8")
