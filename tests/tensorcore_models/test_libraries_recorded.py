"""Recordings of cuBLASLt's choices: the recorder against a stand-in library, and files that cannot be used."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tensorcore_models.hardware.libraries import cublaslt_heuristic
from tensorcore_models.libraries import Unknown, load_recording
from tensorcore_models.libraries.recorded import FORMAT, Problem

SOURCE = Path(__file__).resolve().parents[1] / "support" / "fake_cublaslt.c"
RECORD = {
    "m": 1,
    "k": 4096,
    "n": 64,
    "format": "fp16",
    "out_format": "fp16",
    "config": {"ALGO_ID": 66, "STAGES_ID": 35},
}
WHOLE = {"format": FORMAT, "device": "h100", "cublaslt": "13.1.1", "workspace_bytes": 2**25, "records": [RECORD]}


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler for the stand-in of libcublasLt")
    library = tmp_path_factory.mktemp("fake") / "libfake.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, SOURCE], check=True)
    return str(library)


def test_the_recorder_passes_what_the_library_expects(stand_in, tmp_path, capsys):
    out = tmp_path / "chosen.json"
    shapes = ["--shape", "1", "4096", "64", "--shape", "16", "4096", "13"]
    common = [
        "--device",
        "h100",
        "--cublaslt",
        stand_in,
        "--cudart",
        stand_in,
        "--out",
        str(out),
        "--workspace",
        str(4 * 2**20),
    ]
    assert cublaslt_heuristic.main([*common, *shapes, "--format", "fp16", "e4m3fn"]) == 0
    assert "4 choices" in capsys.readouterr().out
    recording = load_recording(out, device="h100", version="13.1")
    assert (recording.version, recording.workspace_bytes) == ("13.1.1", 4 * 2**20)
    config = recording.configs[Problem("fp16", "fp16", 4096, 64, 1)]
    assert config == {"ALGO_ID": 66, "TILE_ID": None, "SPLITK_NUM": 4, "REDUCTION_SCHEME": 2, "CTA_SWIZZLING": 0,
                      "CUSTOM_OPTION": 0, "STAGES_ID": 35, "INNER_SHAPE_ID": 0, "CLUSTER_SHAPE_ID": 5}  # fmt: skip
    assert len(recording.recipe(Problem("fp16", "fp16", 4096, 64, 1)).chains) == 4
    assert len(recording.recipe(Problem("e4m3fn", "bf16", 4096, 64, 1)).chains) == 32
    with pytest.raises(Unknown, match="refused"):
        recording.recipe(Problem("fp16", "fp16", 4096, 13, 16))
    with pytest.raises(Unknown, match="has no m 2, k 4096"):
        recording.recipe(Problem("fp16", "fp16", 4096, 64, 2))


def test_a_library_that_is_not_there(tmp_path, capsys):
    arguments = [
        "--device",
        "h100",
        "--shape",
        "1",
        "1",
        "1",
        "--out",
        str(tmp_path / "x"),
        "--cublaslt",
        str(tmp_path / "none.so"),
    ]
    assert cublaslt_heuristic.main(arguments) == 2
    assert "cannot load" in capsys.readouterr().err and not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    (
        ({"format": "mpgemm cublaslt recording 0"}, "format is"),
        ({"device": "h200"}, "recorded on device 'h200'"),
        ({"device": "b200"}, "recorded on device 'b200'"),
        ({"cublaslt": "12.8.5"}, "version '12.8.5' on h100"),
        ({"workspace_bytes": "32M"}, "field workspace_bytes is '32M'"),
        ({"records": [{**RECORD, "m": None}]}, "record 0: field m is None"),
        ({"records": [{**RECORD, "config": {"ALGO": 66}}]}, "record 0: config is"),
        ({"records": [RECORD, {**RECORD, "config": None}]}, "two different configurations"),
    ),
)
def test_unusable_files(tmp_path, change, message):
    path = tmp_path / "chosen.json"
    path.write_text(json.dumps({**WHOLE, **change}))
    with pytest.raises(ValueError, match=message):
        load_recording(path, device="h100")


def test_files_that_are_no_recordings(tmp_path):
    path = tmp_path / "chosen.json"
    for text, message in (("{", "not JSON"), ("[]", "format is 'list'")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_recording(path)
