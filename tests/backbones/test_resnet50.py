"""ResNet-50: torchvision's network, without needing torchvision; checkpoints fit or are refused by name."""

from __future__ import annotations

import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest

torch = pytest.importorskip("torch")
# ruff: noqa: E402 - without torch, what follows cannot be imported

from ongebd import backbones
from ongebd.backbones import resnet50 as resnet50_module
from ongebd.backbones.resnet50 import ResNet50
from ongebd.errors import ConfigError, MissingExtraError


def network(seed: int = 0) -> ResNet50:
    """A network of random weights whose normalisations do something, as after training."""
    torch.manual_seed(seed)
    made = ResNet50()
    for module in made.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_mean, -0.1, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.8, 1.5)
            torch.nn.init.uniform_(module.weight, 0.2, 0.5)
            torch.nn.init.uniform_(module.bias, -0.1, 0.2)
    return made.eval()


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    return network().state_dict()


@pytest.fixture(scope="module")
def checkpoint(state: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As torchvision's file is: with the classifier."""
    path = tmp_path_factory.mktemp("weights") / "resnet50.pth"
    torch.save({**state, "fc.weight": torch.zeros(1000, 2048), "fc.bias": torch.zeros(1000)}, path)
    return path


@pytest.fixture(scope="module")
def squares() -> np.ndarray:
    noise = np.random.default_rng(0).integers(0, 256, (3, 224, 224, 3), dtype=np.uint8)
    noise[1] = 0
    noise[2] = noise[2] // 8 * 4 + 60
    return noise


def test_its_tensors_are_named_as_torchvision_names_them(state: dict[str, Any]) -> None:
    for name, shape in {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.running_var": (64,),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer1.0.downsample.1.bias": (256,),
        "layer3.5.conv2.weight": (256, 256, 3, 3),
        "layer4.2.bn3.num_batches_tracked": (),
    }.items():
        assert tuple(state[name].shape) == shape
    assert len(state) == 318
    assert sum(p.numel() for p in ResNet50().parameters()) == 23_508_032


def test_it_is_torchvisions_network() -> None:
    try:
        from torchvision.models import resnet50
    except (ImportError, RuntimeError) as problem:  # RuntimeError: it was built for another torch
        pytest.skip(f"torchvision cannot be imported here: {problem}")
    ours, theirs = network(), resnet50(weights=None)
    theirs.fc = torch.nn.Identity()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    pictures = torch.randn(2, 3, 224, 224)
    with torch.inference_mode():
        assert torch.equal(ours(pictures), theirs.eval()(pictures))


def test_features_are_the_networks_of_pictures_normalised_as_imagenets(
    checkpoint: Path, squares: np.ndarray
) -> None:
    backbone = backbones.get("resnet50", weights=checkpoint)
    assert (backbone.dim, backbone.input_size, backbone.resize_size) == (2048, 224, 256)
    pictures = torch.from_numpy(squares).permute(0, 3, 1, 2).double() / 255
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    with torch.inference_mode():
        wanted = network()(((pictures - mean) / std).float()).numpy()
    found = backbone.embed(squares)
    assert (found.dtype, found.shape) == (np.float32, (3, 2048))
    np.testing.assert_allclose(found, wanted, atol=1e-4 * np.abs(wanted).max())


def test_features_do_not_depend_on_how_many_frames_come_at_once(
    checkpoint: Path, squares: np.ndarray
) -> None:
    backbone = backbones.get("resnet50", weights=checkpoint)
    together = backbone.embed(squares)
    alone = np.concatenate([backbone.embed(square[None]) for square in squares])
    np.testing.assert_allclose(together, alone, atol=1e-5 * np.abs(alone).max())
    with ThreadPoolExecutor(3) as pool:
        at_once = np.concatenate(list(pool.map(backbone.embed, squares[:, None])))
    np.testing.assert_array_equal(at_once, alone)
    assert backbone.embed(squares[:0]).shape == (0, 2048)


def test_read_only_pictures_are_accepted(checkpoint: Path, squares: np.ndarray) -> None:
    backbone = backbones.get("resnet50", weights=checkpoint)
    locked = squares.copy()
    locked.flags.writeable = False
    np.testing.assert_array_equal(backbone.embed(locked), backbone.embed(squares))


def test_the_callers_number_of_threads_is_given_back(checkpoint: Path, squares: np.ndarray) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        backbones.get("resnet50", 1, weights=checkpoint).embed(squares[:1])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_identity_is_the_weights_and_the_precision(
    checkpoint: Path, state: dict[str, Any], tmp_path: Path
) -> None:
    identity = backbones.get("resnet50", weights=checkpoint).identity
    assert identity.startswith("resnet50@")
    torch.save({"state_dict": state}, tmp_path / "same.pth")
    assert backbones.get("resnet50", weights=tmp_path / "same.pth").identity == identity
    torch.save(network(1).state_dict(), tmp_path / "other.pth")
    assert backbones.get("resnet50", weights=tmp_path / "other.pth").identity != identity
    half = backbones.get("resnet50", weights=checkpoint, precision="bfloat16")
    assert half.identity == f"{identity}+bfloat16"


def test_the_same_file_is_loaded_once_and_a_changed_one_again(state: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    torch.save(state, path)
    first = backbones.get("resnet50", weights=path)
    assert backbones.get("resnet50", weights=str(path)) is first
    torch.save({**network(1).state_dict(), "fc.bias": torch.zeros(7)}, path)
    assert backbones.get("resnet50", weights=path).identity != first.identity


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: s.pop("layer1.0.conv1.weight"), r"it lacks layer1\.0\.conv1\.weight; give torchvision's"),
        (
            lambda s: s.update({"layer3.6.conv1.weight": s["conv1.weight"]}),
            r"it has more .* layer3\.6\.conv1",
        ),
        (lambda s: s.update({"conv1.weight": s["bn1.weight"]}), r"other shapes for conv1\.weight"),
        (lambda s: [s.pop(k) for k in list(s) if k != "bn1.bias"], r"lacks conv1\.weight, .* and 261 more"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_by_its_keys(
    state: dict[str, Any], tmp_path: Path, change: Any, said: str
) -> None:
    changed = dict(state)
    change(changed)
    torch.save(changed, tmp_path / "w.pth")
    with pytest.raises(ConfigError, match=rf"w\.pth: doesn't fit resnet50: .*{said}"):
        backbones.get("resnet50", weights=tmp_path / "w.pth")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        (b"folder", "is a folder"),
        (b"", "not a checkpoint of plain tensors"),
        (b"not a checkpoint at all", "not a checkpoint of plain tensors"),
        (b"PK\x03\x04 half a zip", "not a checkpoint of plain tensors"),
        (
            b"\x80\x02cos\nsystem\nq\x00X\x04\x00\x00\x00trueq\x01\x85q\x02Rq\x03.",
            "not a checkpoint of plain tensors",
        ),
    ],
)
def test_a_file_that_is_not_a_checkpoint_is_refused_in_one_line(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "w.pth"
    if content == b"folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=said) as caught:
        backbones.get("resnet50", weights=path)
    assert "\n" not in str(caught.value)


def test_without_a_network_the_message_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_args: object, **_kwargs: object) -> None:
        raise URLError("no route to host")

    monkeypatch.setattr("torch.hub.load_state_dict_from_url", unreachable)
    with pytest.raises(ConfigError, match=r"can't download its weights \(no route to host\); fetch resnet50"):
        backbones.get("resnet50", threads=7)


def test_what_is_downloaded_is_checked_and_used(
    state: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, object] = {}

    def download(address: str, **options: object) -> dict[str, Any]:
        asked.update(options, address=address)
        return {**state, "fc.weight": torch.zeros(1000, 2048)}

    monkeypatch.setattr("torch.hub.load_state_dict_from_url", download)
    assert resnet50_module.resnet50().identity.startswith("resnet50@")
    assert asked["check_hash"] is True
    assert str(asked["address"]).endswith("/resnet50-0676ba61.pth")


def test_a_missing_device_is_reported(checkpoint: Path) -> None:
    with pytest.raises(ConfigError, match="--device abacus: unknown device"):
        backbones.get("resnet50", weights=checkpoint, device="abacus")
    with pytest.raises(ConfigError, match="--device cuda:77: PyTorch sees"):
        backbones.get("resnet50", weights=checkpoint, device="cuda:77")


def test_on_a_gpu_the_features_are_those_of_the_cpu(checkpoint: Path, squares: np.ndarray) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    there = backbones.get("resnet50", weights=checkpoint, device="cuda")
    here = backbones.get("resnet50", weights=checkpoint)
    assert there.identity == here.identity
    wanted, found = here.embed(squares), there.embed(squares)
    np.testing.assert_allclose(found, wanted, atol=5e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ["resnet50", "tsn-kinetics", "tsn-sthv2"])
def test_without_torch_the_extra_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert importlib.util.find_spec("torch") is None
    with pytest.raises(MissingExtraError, match=r'^torch is not installed: .*install .*"torch\S*"$'):
        backbones.get(name, weights="w.pth")
