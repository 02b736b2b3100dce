"""This tool makes mpgemm/selftest/hardware.npz: samples of published outputs of real GPUs and of the project's own run.

Run it from the repository root with the folder of the published vectors: python tools/make_selftest_vectors.py FOLDER
"""

import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "mpgemm" / "selftest" / "hardware.npz"
#: Number of outputs of a published set, and of the own run for each instruction and kind of data.
ROWS, OWN = 24, 2
ARCHITECTURES = {
    "V100": "volta", "A100": "ampere", "A2": "ampere", "Ada": "ada", "L40S": "ada", "H100": "hopper", "H200": "hopper",
    "B200": "blackwell",
}  # fmt: skip
FORMATS = {"E4M3": "e4m3fn", "E5M2": "e5m2"}


def instruction_of(facts: dict) -> str:
    """Return the catalogue's instruction for a set; tf32 sets have K = 4, which is what WMMA takes at a time."""
    import tensorcore_models as tcm

    a_format, arch = FORMATS.get(facts["a_format"], facts["a_format"]), ARCHITECTURES[facts["device"]]
    wide = arch == "hopper" and a_format.startswith("e") and facts["d_format"] == "fp32"
    path = "wmma" if a_format == "tf32" else "wgmma" if wide else "mma"
    return str(tcm.default_instruction(arch, a_format, facts["d_format"], path))


def own_run(rng, arrays: dict, sets: list) -> None:
    """Draw outputs of every instruction and kind of tests/vectors/hopper."""
    from tensorcore_models.hardware.campaign.recording import INDEX, recorded

    folder = ROOT / "tests" / "vectors" / "hopper"
    facts = json.loads((folder / INDEX).read_text())
    drawn: dict = {}
    for unit, _, inputs, d in recorded(folder):
        batch, i, j = (rng.integers(0, size, OWN) for size in d.shape)
        row = drawn.setdefault(str(unit), [])
        row.append((inputs.a[batch, i], inputs.b[batch, :, j], inputs.c[batch, i, j], d[batch, i, j]))
    for unit, parts in drawn.items():
        joined = (np.concatenate(part) for part in zip(*parts, strict=True))
        arrays |= {f"{letter}{len(sets)}": x for letter, x in zip("abcd", joined, strict=True)}
        sets.append({"device": facts["gpu"], "instruction": unit, "own": facts["date"]})


def main(folder: Path) -> None:
    """Draw the same number of rows of every set, and of the own run."""
    rng = np.random.default_rng(0)
    arrays, sets = {}, []
    for number, (name, facts) in enumerate(json.loads((folder / "index.json").read_text()).items()):
        data = np.load(folder / f"{name}.npz")
        rows = np.sort(rng.choice(len(data["d"]), ROWS, replace=False))
        arrays |= {f"{letter}{number}": data[letter][rows] for letter in "abcd"}
        sets.append({"device": facts["device"], "instruction": instruction_of(facts)})
    own_run(rng, arrays, sets)
    np.savez_compressed(TARGET, sets=json.dumps(sets), **arrays)
    print(f"{TARGET.name}: {len(sets)} sets, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
