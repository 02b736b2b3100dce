"""Defines the rows of an NVIDIA architecture: its tensor cores' instructions, numbers and evidence."""

from dataclasses import dataclass, field

MMA_SIM = "xie-mma-sim, table III and section IV; mmasim 2.1.1"
KHATTAK = "khattak-mikaitis, section IV"
VECTORS = "hardware: published vectors"
MODEL = "published model"
INFERRED = "inferred"

FP8 = ("e5m2", "e4m3fn")
F8F6F4 = ("e5m2", "e4m3fn", "e3m2", "e2m3", "e2m1")


Shape = tuple[int, int, int]
#: Shapes, operand format, and pairs of result and addend formats.
Kind = tuple[tuple[Shape, ...], str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Outputs:
    """Published outputs that instructions reproduce: result formats and k that were run; `alike`: A and B had one format."""

    text: str
    results: tuple[str, ...]
    ks: tuple[int, ...] = (32,)
    alike: bool = True


@dataclass(frozen=True, kw_only=True)
class Narrow:
    """Instructions of operands of up to 8 bits; `fraction_bits`: F of their own unit, which keeps as many of fp32 results."""

    formats: tuple[str, ...] = FP8  # of operands, which go together in all pairs
    ks: tuple[int, ...] = (32,)
    terms: int | None = None  # N; None: k
    fraction_bits: int | None = None
    # converted to fp16 and run as two chained FP16 operations over interleaved k, c added last
    interleaved: bool = False
    outputs: tuple[Outputs, ...] = ()  # what pins the rows
    source: str = MMA_SIM  # what they rest on otherwise
    evidence: str = MODEL  # formats of 6 bits are inferred


@dataclass(frozen=True, kw_only=True)
class Group:
    """Instructions of a warp group or of one thread for all: m and n are free, operands lie in shared memory.

    `input_scale` is the largest s of D = A B + D 2^-s that those of fp16, bf16 and tf32 take (scale-input-d of PTX).
    """

    prefix: str  # what their names begin with; up to the first point it is their path
    narrow: tuple[Narrow, ...] = ()  # beside those of fp16, bf16 and tf32, and of 8-bit integers
    mixed: tuple[tuple[str, str], ...] = ()  # pairs of different 16-bit formats
    shapes: tuple[tuple[int, tuple[int, ...]], ...] = ()  # legal (m, all n) (PTX ISA)
    integer_shapes: tuple[tuple[int, tuple[int, ...]], ...] = ()
    input_scale: int = 0

    @property
    def path(self) -> str:
        return self.prefix.split(".")[0]


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """Block-scaled instructions, whose k is 32, and 64 of fp4."""

    m: int
    n: int
    group: Group | None = None  # whose instructions have them; None: mma.sync
    free: tuple[tuple[int, tuple[int, ...]], ...] = ()  # legal (m, all n) where these are free


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One architecture: what its tensor cores share, which shapes they have, what a compiler and a user call it.

    `pinned` formats have K = N products among the published outputs (tf32 on Hopper and later only N = 4).
    """

    fraction_bits: int  # F of the fp16, bf16 and tf32 instructions
    terms: dict[str, int]  # N, products that one fused operation takes, by operand format; a shorter k takes k
    floors: dict[str, int]  # below which the alignment exponent never goes, by result format
    sync: tuple[Kind, ...] = ()  # mma.sync of fp16, bf16 and tf32
    # shapes of mma.sync that run on another architecture's unit (mmasim 2.1.1)
    units: dict[Shape, str] = field(default_factory=dict)
    blocks: dict[Shape, int] = field(default_factory=dict)  # shapes of mma.sync that multiply several blocks
    emulated: tuple[Kind, ...] = ()  # mma.sync on no tensor core: compiled to a chain of FP32 fused multiply-adds
    narrow: tuple[Narrow, ...] = ()  # mma.sync of operands of up to 8 bits
    narrow_kind: str = ""  # how PTX qualifies those of k = 32; empty where it does not
    scaled: Scaled | None = None
    group: Group | None = None  # wgmma or tcgen05.mma
    double: tuple[Shape, ...] = ()  # mma.sync of fp64
    double_nan: str = "NaN payloads unknown (on an H100 those of operands)"  # what is known of their NaN
    integer: tuple[tuple[tuple[Shape, ...], tuple[str, ...]], ...] = ()  # mma.sync into s32, with operand formats
    # whether the target's SASS of WMMA with C and D of different formats widens C, sums in FP32 and rounds D; else not seen
    widens: bool = False
    capability: tuple[int, int] = (0, 0)  # compute capability
    variants: tuple[tuple[int, int], ...] = ()  # others with its tensor cores
    whole_major: bool = False  # whether all others of the same major number are variants
    target: str = ""  # of compilation
    # GPUs, and operand formats that their tensor cores lack
    devices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # GPUs on which floors have been measured, by result format, and who did; else models alone state them
    measured_floors: dict[str, str] = field(default_factory=dict)
    vectors: str = ""  # GPUs whose published outputs the `pinned` rows reproduce (MATLAB-tensor-core)
    pinned: tuple[str, ...] = ()  # operand formats whose arithmetic those outputs pin

    def floor_note(self, d_format: str) -> str:
        """Name the evidence for the alignment floor of a result format."""
        measured = self.measured_floors.get(d_format)
        known = f"measured on {measured}" if measured else "models only"
        return f"alignment floor {self.floors[d_format]}: {known}"
