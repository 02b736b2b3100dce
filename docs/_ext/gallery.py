"""Makes the pictures of the gallery, and its page with the command that makes each."""

import contextlib
import io
import os
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpgemm.cli import main


@dataclass(frozen=True)
class Picture:
    """`Picture` is a picture of the gallery with its command and its description.

    Attributes
    ----------
    name : str
        Name of the file in the gallery, without its suffix.
    title, text : str
        Heading and description; the description says whether numbers are measured or predicted.
    command : str
        Command that makes the picture, which runs in an empty folder.
    made : str
        File that the command writes.
    """

    name: str
    title: str
    text: str
    command: str
    made: str

    @property
    def file(self) -> str:
        """Return the name of the picture's file in the gallery."""
        return self.name + Path(self.made).suffix


PICTURES = (
    Picture(
        "errors", "Errors of each method on one input",
        "The picture compares SGEMM-cube with native FP16 and FP32 on a matrix of the package. The errors were measured by "
        "this build against the exact product.",
        "mpgemm evaluate --distribution uniform_symmetric --shape 64 256 64 --repeats 2 --out out", "out/errors.png",
    ),
    Picture(
        "exponents", "Exponents of an input",
        "The picture shows the exponents of the elements, and the range of exponents that FP16 holds.",
        "mpgemm evaluate --distribution log_uniform --param low=-20 high=5 --shape 64 256 64 --methods fp32 "
        "sgemm_cube --out out",
        "out/exponents.png",
    ),
    Picture(
        "figure_8a", "Error against the size of the entries",
        "This is figure 8a of the SGEMM-cube paper, measured by this build on smaller matrices than the paper's.",
        "mpgemm reproduce xue8a --shape 64 64 64 --repeats 1 --out out", "out/xue8a.png",
    ),
    Picture(
        "comparison", "Markidis, Ootomo and SGEMM-cube on tensor cores",
        "The picture shows errors on three generations of simulated tensor cores, measured by this build.",
        "mpgemm compare --methods fp16 markidis ootomo sgemm_cube --engines v100 a100 h100 --shape 64 256 64 --out out",
        "out/comparison.png",
    ),
    Picture(
        "khattak7", "Multi-word products on V100, A100, H100 and B200",
        "This is figure 7 of Khattak and Mikaitis, measured by this build at fewer points.",
        "mpgemm reproduce khattak7 --quick --out out", "out/khattak7.png",
    ),
    Picture(
        "order", "Order of a sum",
        "The tree shows how an AMX instruction adds one element of its result: two interleaved chains, then c.",
        "mpgemm models x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32 --picture order.svg", "order.svg",
    ),
    Picture(
        "gantt", "Pipes of an Ascend core",
        "The picture shows when each pipe of a 910A core works while a block of C is computed. The times are predicted by a "
        "simulation of the schedule.",
        "mpgemm simulate --block 176,64,176 --gantt gantt.png", "gantt.png",
    ),
    Picture(
        "waterfall", "From the peak to the predicted speed",
        "The picture shows the predicted loss by each cause, from the peak of the 910A to the predicted speed.",
        "mpgemm simulate --block 176,64,176 --waterfall-plot waterfall.png", "waterfall.png",
    ),
    Picture(
        "pareto", "Time against bits",
        "The picture shows the time that one more correct bit costs on a 910B3. The times are predicted, the bits are those "
        "of a sample.",
        "mpgemm plan 128 7168 2048 --chip 910B3 --pareto --out out", "out/pareto_910B3_128x7168x2048.png",
    ),
)  # fmt: skip


@contextlib.contextmanager
def _in_scratch_folder() -> Iterator[Path]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def _make(picture: Picture, target: Path) -> None:
    printed, complaints = io.StringIO(), io.StringIO()
    with _in_scratch_folder() as folder:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
            status = main(shlex.split(picture.command)[1:])
        if status:
            raise RuntimeError(f"{picture.command} ended with {status}: {complaints.getvalue().strip()}")
        target.write_bytes((folder / picture.made).read_bytes())


def write_gallery(folder: Path, *, fresh: bool = False) -> Iterator[tuple[str, str]]:
    """Make the pictures that are missing (all with `fresh`), and yield the page as (name, text)."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Gallery", "", "The build of this site makes each picture by the command below it.", ""]
    for picture in PICTURES:
        target = folder / picture.file
        if fresh or not target.exists():
            _make(picture, target)
        lines += [
            f"## {picture.title}",
            "",
            picture.text,
            "",
            f"![{picture.title}]({picture.file})",
            "",
            "```console",
            f"$ {picture.command}",
            "```",
            "",
        ]
    yield "index.md", "\n".join(lines)
