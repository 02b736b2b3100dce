"""Lists the dense peak rates of devices by operand format, from the vendors' data sheets.

A rate counts multiplications and additions in TFLOP/s (TOP/s for integers) without sparsity. Sums are in FP32, those of FP64
operands in FP64, those of integers in int32. If a data sheet prints a rate with sparsity, half of it is listed; if it prints
the rate of a board with several GPUs, the share of one GPU. A rate that a data sheet does not state is not listed, and then no
cost is claimed. Editions of a document differ (FP64 of the B200: 40 in 2024, 37 later), and the later edition is used.

The rates of A2, A40, A100, L40S, T4, RTX 4090, RTX PRO 6000, H100, H200, B200, B300, GB300, MI210, MI250 and MI250X were
compared with published pages that quote these documents. The rates of the other devices were entered without such a comparison.
"""

from dataclasses import dataclass, field

from .devices import SAME_UNIT

#: Name of each operand format in data sheets, where it differs.
_NAMES = {
    **dict.fromkeys(("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz"), "fp8"),
    **dict.fromkeys(("e3m2", "e2m3"), "fp6"),
    **dict.fromkeys(("s8", "u8"), "int8"),
    **dict.fromkeys(("s4", "u4"), "int4"),
    "e2m1": "fp4",
}


@dataclass(frozen=True)
class DataSheet:
    """`DataSheet` holds the dense rates of a device in TFLOP/s or TOP/s by format, fp64 to int4.

    `source` is the title of the document, or the reason why there are no rates.
    """

    source: str
    rates: dict[str, float] = field(default_factory=dict)

    def rate(self, fmt: str) -> float | None:
        """Return the rate for operands in a format of the catalogue; None if the document does not state it."""
        return self.rates.get(_NAMES.get(fmt, fmt))


def _sheet(source: str, **rates: float) -> DataSheet:
    return DataSheet(source, rates)


_HOPPER = {"fp64": 66.9, "tf32": 494.7, "fp16": 989.4, "bf16": 989.4, "fp8": 1978.9, "int8": 1978.9}
_GA102 = "NVIDIA Ampere GA102 GPU Architecture (white paper), specifications"
_MI200 = "AMD Instinct MI200 Series data sheet, peak matrix rates"
_NO_SHEET = "Huawei publishes no data sheet of the chip with a rate for each format"

#: Data sheet of each device of :data:`.devices.DEVICES`.
DATA_SHEETS: dict[str, DataSheet] = {
    "v100": _sheet("NVIDIA Tesla V100 data sheet, SXM2", fp16=125),
    "titan_v": _sheet("NVIDIA Titan V product page", fp16=110),
    "t4": _sheet("NVIDIA T4 data sheet", fp16=65, int8=130, int4=260),
    "rtx2080ti": _sheet(
        "NVIDIA Turing GPU Architecture (white paper), RTX 2080 Ti Founders Edition", fp16=56.9, int8=227.7, int4=455.4
    ),
    "a100": _sheet("NVIDIA A100 data sheet", fp64=19.5, tf32=156, fp16=312, bf16=312, int8=624, int4=1248),
    "a2": _sheet("NVIDIA A2 data sheet", tf32=9, fp16=18, bf16=18, int8=36, int4=72),
    "a30": _sheet("NVIDIA A30 data sheet", fp64=10.3, tf32=82, fp16=165, bf16=165, int8=330, int4=661),
    "a40": _sheet("NVIDIA A40 data sheet", tf32=74.8, fp16=149.7, bf16=149.7, int8=299.3, int4=598.7),
    "rtx3090": _sheet(f"{_GA102} of the RTX 3090", tf32=35.6, fp16=71, bf16=71, int8=285, int4=569),
    "rtx_a6000": _sheet(
        f"{_GA102} of the RTX A6000", tf32=77.4, fp16=154.8, bf16=154.8, int8=309.7, int4=619.3
    ),
    "rtx1000_ada": _sheet("NVIDIA's data sheet states one rate, with sparsity and for no named format"),
    "rtx4060": _sheet("NVIDIA's product page states one rate, with sparsity and for no named format"),
    "rtx4090": _sheet(
        "NVIDIA Ada GPU Architecture (white paper), RTX 4090, sums in FP32",
        tf32=82.6, fp16=165.2, bf16=165.2, fp8=330.3, int8=660.6, int4=1321.2,
    ),
    "l40s": _sheet("NVIDIA L40S data sheet", tf32=183, fp16=362.05, bf16=362.05, fp8=733, int8=733, int4=733),
    "h100": DataSheet("NVIDIA H100 Tensor Core GPU Architecture (white paper), H100 SXM5", _HOPPER),
    "h200": DataSheet("NVIDIA H200 data sheet, SXM, as the H100's", _HOPPER),
    "gh200": DataSheet("NVIDIA GH200 Grace Hopper Superchip data sheet, as the H100's", _HOPPER),
    "b200": _sheet(
        "NVIDIA Blackwell data sheet, HGX B200, one GPU",
        fp64=37, tf32=1100, fp16=2250, bf16=2250, fp8=4500, fp6=4500, fp4=9000, int8=4500,
    ),
    "gb200": _sheet(
        "NVIDIA Blackwell data sheet, GB200 NVL72, one GPU",
        fp64=40, tf32=1250, fp16=2500, bf16=2500, fp8=5000, fp6=5000, fp4=10000, int8=5000,
    ),
    "b300": _sheet(
        "NVIDIA Blackwell Ultra data sheet, HGX B300, one GPU",
        fp64=1.25, tf32=1125, fp16=2250, bf16=2250, fp8=4500, fp6=4500, fp4=14000, int8=150,
    ),
    "gb300": _sheet(
        "NVIDIA Blackwell Ultra data sheet, GB300 NVL72, one GPU",
        fp64=1.3, tf32=1250, fp16=2500, bf16=2500, fp8=5000, fp6=5000, fp4=15000, int8=165,
    ),
    "rtx_pro_6000": _sheet(
        "NVIDIA RTX Blackwell PRO GPU Architecture (white paper), RTX PRO 6000 Workstation Edition, sums in FP32",
        tf32=251.9, fp16=503.8, bf16=503.8, fp8=1007.6, fp4=2015.2, int8=1007.6,
    ),
    "mi100": _sheet("AMD Instinct MI100 data sheet, peak matrix rates", fp32=46.1, fp16=184.6, bf16=92.3, int8=184.6),
    "mi210": _sheet(_MI200, fp64=45.3, fp32=45.3, fp16=181, bf16=181, int8=181),
    "mi250": _sheet(_MI200, fp64=90.5, fp32=90.5, fp16=362.1, bf16=362.1, int8=362.1),
    "mi250x": _sheet(_MI200, fp64=95.7, fp32=95.7, fp16=383, bf16=383, int8=383),
    "mi300": _sheet("no single product has this name: name the MI300A or the MI300X"),
    "mi300a": _sheet(
        "AMD Instinct MI300A data sheet, peak matrix rates",
        fp64=122.6, fp32=122.6, tf32=490.3, fp16=980.6, bf16=980.6, fp8=1961.2, int8=1961.2,
    ),
    "mi300x": _sheet(
        "AMD Instinct MI300X data sheet, peak matrix rates",
        fp64=163.4, fp32=163.4, tf32=653.7, fp16=1307.4, bf16=1307.4, fp8=2614.9, int8=2614.9,
    ),
    **dict.fromkeys(SAME_UNIT, _sheet("no rates of this product were entered: it is named for its arithmetic")),
    **dict.fromkeys(("hl-205", "hl-225h", "hl-325l", "hl-338"), _sheet("no data sheet of the card was at hand")),
    **dict.fromkeys(("n150", "n300", "p100a", "p150a"),
                    _sheet("no data sheet of the card was at hand; its rate depends on the fidelity phases")),
    "910a": _sheet("Huawei Ascend 910 product page", fp16=256, int8=512),
    **dict.fromkeys(("910b1", "910b2", "910b3", "910b4", "950", "950pr"), _sheet(_NO_SHEET)),
}  # fmt: skip
