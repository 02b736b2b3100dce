"""Defines the records that describe an NVIDIA architecture: instructions, numbers and evidence of its tensor cores."""

from dataclasses import dataclass, field

MMA_SIM = "xie-mma-sim, table III and section IV; mmasim 2.1.1"
KHATTAK = "khattak-mikaitis, section IV"
VECTORS = "hardware: published vectors"
MODEL = "published model"
INFERRED = "inferred"

FP8 = ("e5m2", "e4m3fn")
F8F6F4 = ("e5m2", "e4m3fn", "e3m2", "e2m3", "e2m1")


def floor_note(floor: int, known: str | None = None) -> str:
    """Return the sentence about the evidence for an alignment floor, by default that only models state it."""
    return f"the alignment floor {floor} {known or 'is stated by models only'}"


Shape = tuple[int, int, int]
#: Shapes, operand format, and pairs of result and addend formats.
Kind = tuple[tuple[Shape, ...], str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Outputs:
    """`Outputs` are published outputs that instructions reproduce, with the result formats and the k of the recorded runs.

    `alike` says whether A and B had the same format.
    """

    text: str
    results: tuple[str, ...]
    ks: tuple[int, ...] = (32,)
    alike: bool = True


@dataclass(frozen=True, kw_only=True)
class Narrow:
    """`Narrow` describes instructions whose operands have up to 8 bits.

    `fraction_bits` is the F of a unit of their own, which also keeps only that many fraction bits of fp32 results.
    """

    formats: tuple[str, ...] = FP8  # operand formats; every pair of them has an instruction
    ks: tuple[int, ...] = (32,)
    terms: int | None = None  # N; None means that N is k
    fraction_bits: int | None = None
    # whether operands are converted to fp16, two FP16 operations over interleaved k are chained, and c is added last
    interleaved: bool = False
    outputs: tuple[Outputs, ...] = ()  # published outputs that rows reproduce
    source: str = MMA_SIM  # source of all rows
    evidence: str = MODEL  # formats of 6 bits are inferred


@dataclass(frozen=True, kw_only=True)
class Group:
    """`Group` describes wgmma and tcgen05.mma, whose m and n are free and whose operands lie in shared memory.

    `input_scale` is the largest s of D = A B + D 2^-s for operands in fp16, bf16 and tf32 (PTX's scale-input-d).
    """

    prefix: str  # start of the instructions' names; the part before the first point is their path
    narrow: tuple[Narrow, ...] = ()  # instructions other than those of fp16, bf16, tf32 and 8-bit integers
    mixed: tuple[tuple[str, str], ...] = ()  # pairs of different 16-bit formats
    shapes: tuple[tuple[int, tuple[int, ...]], ...] = ()  # legal (m, all n) (PTX ISA)
    integer_shapes: tuple[tuple[int, tuple[int, ...]], ...] = ()
    input_scale: int = 0

    @property
    def path(self) -> str:
        return self.prefix.split(".")[0]


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """`Scaled` describes block-scaled instructions, whose k is 32, or 64 for fp4."""

    m: int
    n: int
    group: Group | None = None  # group that has these instructions; None for mma.sync
    free: tuple[tuple[int, tuple[int, ...]], ...] = ()  # legal (m, all n) if m and n are free


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """`Architecture` describes the tensor cores of an architecture, their shapes, and their names in compilers and products.

    The published outputs contain sums of k = N products for all `pinned` formats (tf32 on Hopper and later only N = 4).
    """

    fraction_bits: int  # F of the fp16, bf16 and tf32 instructions
    terms: dict[str, int]  # N, products of one fused operation, by operand format; an instruction with k < N takes k
    floors: dict[str, int]  # least alignment exponent, by result format
    sync: tuple[Kind, ...] = ()  # mma.sync of fp16, bf16 and tf32
    # shapes of mma.sync that run on another architecture's unit (mmasim 2.1.1)
    units: dict[Shape, str] = field(default_factory=dict)
    blocks: dict[Shape, int] = field(
        default_factory=dict
    )  # number of blocks that shapes of mma.sync multiply, if several
    emulated: tuple[Kind, ...] = ()  # mma.sync that is compiled to a chain of FP32 fused multiply-adds
    narrow: tuple[Narrow, ...] = ()  # mma.sync of operands of up to 8 bits
    narrow_kind: str = ""  # PTX's qualifier of narrow instructions with k = 32; empty if there is none
    scaled: Scaled | None = None
    group: Group | None = None  # wgmma or tcgen05.mma
    double: tuple[Shape, ...] = ()  # mma.sync of fp64
    double_nan: str = (
        "the payload of a NaN result is unknown (an H100 returns that of an operand)"  # note on fp64 instructions
    )
    integer: tuple[tuple[tuple[Shape, ...], tuple[str, ...]], ...] = ()  # mma.sync into s32, with operand formats
    # whether SASS shows that WMMA with C and D of different formats widens C, sums in FP32 and rounds D
    widens: bool = False
    capability: tuple[int, int] = (0, 0)  # compute capability
    variants: tuple[tuple[int, int], ...] = ()  # other compute capabilities with the same tensor cores
    whole_major: bool = False  # whether all compute capabilities of the same major number are variants
    target: str = ""  # compilation target
    # GPUs by name, with the operand formats that their tensor cores lack
    devices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # GPU on which a floor was measured, and by whom, by result format; only models state the other floors
    measured_floors: dict[str, str] = field(default_factory=dict)
    vectors: str = ""  # names of the GPUs whose published outputs the `pinned` rows reproduce (MATLAB-tensor-core)
    pinned: tuple[str, ...] = ()  # operand formats whose arithmetic these outputs confirm

    def floor_note(self, d_format: str) -> str:
        """Return the sentence about the evidence for the alignment floor of a result format."""
        measured = self.measured_floors.get(d_format)
        return floor_note(self.floors[d_format], f"was measured on {measured}" if measured else None)
