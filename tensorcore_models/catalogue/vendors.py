"""Lists vendor, year, name and file of rows of each architecture's matrix unit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """`Unit` describes the matrix unit of an architecture.

    `since` is the year of the first product, or the state of an announcement or specification. `name` is the vendor's name of
    the unit.
    """

    vendor: str
    since: str
    name: str
    file: str = ""  # module of this folder with the rows of its instructions


#: Units of the architectures, in the order of the catalogue.
UNITS: dict[str, Unit] = {
    "volta": Unit("NVIDIA", "2017", "Tensor Core", "nvidia"),
    "turing": Unit("NVIDIA", "2018", "Tensor Core", "nvidia"),
    "ampere": Unit("NVIDIA", "2020", "Tensor Core", "nvidia"),
    "ada": Unit("NVIDIA", "2022", "Tensor Core", "nvidia"),
    "hopper": Unit("NVIDIA", "2022", "Tensor Core", "nvidia"),
    "blackwell": Unit("NVIDIA", "2024", "Tensor Core", "nvidia"),
    "rtx_blackwell": Unit("NVIDIA", "2025", "Tensor Core", "nvidia"),
    "cdna1": Unit("AMD", "2020", "Matrix Core", "amd"),
    "cdna2": Unit("AMD", "2021", "Matrix Core", "amd"),
    "cdna3": Unit("AMD", "2023", "Matrix Core", "amd"),
    "arm": Unit(
        "Arm",
        "2019 (BF16), 2021 (SME), 2023 (FP8): years of the specifications",
        "BFMMLA, SME, FP8 instructions",
        "arm",
    ),
    "x86": Unit(
        "Intel, AMD",
        "2020 (VDPBF16PS), 2023 (AMX); AMX-FP8 announced, AMX-TF32 withdrawn",
        "AMX, AVX512-BF16",
        "other",
    ),
    "tpu": Unit("Google", "2017", "MXU", "other"),
    "ascend": Unit("Huawei", "2018", "Cube", "ascend"),
    "ascend910b": Unit("Huawei", "2022", "Cube", "ascend"),
    "ascend950": Unit("Huawei", "2026 (950PR, as announced)", "Cube", "ascend"),
    "gaudi": Unit("Intel (Habana)", "2019", "MME", "gaudi"),
    "gaudi2": Unit("Intel (Habana)", "2022", "MME", "gaudi"),
    "gaudi3": Unit("Intel (Habana)", "2024", "MME", "gaudi"),
    "riscv": Unit("RISC-V International", "specification frozen, not ratified", "Zv*dota vector instructions", "riscv"),
    "apple_amx": Unit("Apple", "2020 (M1); M4 has SME instead", "AMX", "apple"),
    "wormhole": Unit("Tenstorrent", "2024 (n150, n300)", "Matrix Unit (FPU)", "tenstorrent"),
    "blackhole": Unit("Tenstorrent", "2025 (p100a, p150a)", "Matrix Unit (FPU)", "tenstorrent"),
}


def unit_of(arch: str) -> Unit:
    """Return the unit of an architecture; for an architecture that a caller added, a unit with only its name."""
    return UNITS.get(arch, Unit("", "", arch))
