"""The Consistent Event Anticipator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from ongebd.baselines.network import parameter_count
from ongebd.errors import ConfigError
from ongebd.estimator.anticipator import (
    AnticipatorConfig,
    ConsistentEventAnticipator,
    DecoderLayer,
    window_means,
)


def small(**changes: object) -> ConsistentEventAnticipator:
    torch.manual_seed(0)
    config = AnticipatorConfig(**{"dim": 12, "width": 16, "heads": 4, "ffn": 24, "window": 5, **changes})
    return ConsistentEventAnticipator(config).eval()


def test_the_default_has_23_1_million_parameters() -> None:
    with torch.device("meta"):
        model = ConsistentEventAnticipator(AnticipatorConfig())
    assert f"{parameter_count(model) / 1e6:.1f}" == "23.1"


def test_the_one_for_1280_numbers_is_half_as_wide() -> None:
    config = AnticipatorConfig.for_dim(1280)
    with torch.device("meta"):
        model = ConsistentEventAnticipator(config)
    assert (config.width, config.ffn, config.heads) == (512, 512, 8)
    assert f"{parameter_count(model) / 1e6:.1f}" == "6.1"


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_a_run_gives_what_its_windows_give_one_by_one(layers: int) -> None:
    model = small(layers=layers).double()  # in float32, rounding hides what algebra loses
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0.2, 0.5)
    features = 3 + torch.rand(2, 13, 12, dtype=torch.float64)
    whole = model(features)
    assert whole.shape == (2, 9, 12)
    for place in range(9):
        alone = model(features[:, place : place + 5])
        torch.testing.assert_close(whole[:, place], alone[:, 0], atol=1e-12, rtol=1e-12)


def test_the_last_layer_may_compute_its_token_alone() -> None:
    torch.manual_seed(0)
    layer = DecoderLayer(AnticipatorConfig(dim=12, width=16, heads=4, ffn=24)).eval().double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, 0.2, 0.5)
    tokens = torch.randn(3, 6, 16, dtype=torch.float64)
    torch.testing.assert_close(layer.last(tokens), layer(tokens)[:, -1], atol=1e-12, rtol=1e-12)


def test_a_token_sees_no_later_one() -> None:
    torch.manual_seed(0)
    layer = DecoderLayer(AnticipatorConfig(dim=12, width=16, heads=4, ffn=24)).eval()
    tokens = torch.randn(1, 6, 16)
    changed = tokens.clone()
    changed[:, 4:] += 1
    before, after = layer(tokens), layer(changed)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_every_parameter_learns() -> None:
    model = small().train()
    model(torch.rand(2, 9, 12)).square().sum().backward()
    for name, parameter in model.named_parameters():
        # Attention is as it was when all keys move together: the key's bias alone has no say.
        moved = parameter.grad[16:] if name.endswith("key_value.bias") else parameter.grad
        assert moved is not None, name
        assert moved.abs().sum() > 0, name


def test_residual_begins_as_the_window_mean() -> None:
    model = small(residual=True)
    features = torch.rand(2, 9, 12)
    torch.testing.assert_close(model(features), window_means(features, 5))
    torch.testing.assert_close(window_means(features, 5)[1, 2], features[1, 2:7].mean(0))


def test_the_classifier_gives_a_logit_a_window() -> None:
    assert small(head="classifier")(torch.rand(2, 9, 12)).shape == (2, 5, 1)


def test_it_is_read_back_from_a_folder_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = small(residual=True)
    torch.nn.init.normal_(model.head.weight)
    model.save_pretrained(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a network was asked for")

    monkeypatch.setattr("socket.socket.connect", refuse)
    again = ConsistentEventAnticipator.from_pretrained(tmp_path)
    assert again.config == model.config
    features = torch.rand(1, 5, 12)
    assert torch.equal(again(features), model(features))
    assert capsys.readouterr().out == ""
    assert json.loads((tmp_path / "config.json").read_text())["window"] == 5


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    small().save_pretrained(tmp_path)
    shape = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**shape, "layers": 2}))
    with pytest.raises(RuntimeError, match="layers"):
        ConsistentEventAnticipator.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window": 0}, "window"),
        ({"heads": 5}, "multiple of heads"),
        ({"dropout": 1.0}, "dropout"),
        ({"metric": "chi"}, "metric"),
        ({"head": "both"}, "head"),
        ({"layers": 1.5}, "layers"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AnticipatorConfig(**{"dim": 12, "width": 16, "heads": 4, **changes})
