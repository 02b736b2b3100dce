"""What a row of an NVIDIA architecture can say: its tensor cores' instructions, numbers and evidence."""

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
    """Instructions of operands of up to 8 bits.

    Attributes
    ----------
    formats : tuple of str
        Operand formats, which go together in all pairs.
    ks : tuple of int
    terms : int or None
        N; None: k.
    fraction_bits : int or None
        F of a unit of its own, which keeps only as many bits of fp32 results; None: the architecture's.
    interleaved : bool
        Converted to fp16 and run as two chained FP16 operations over interleaved k, c added last.
    outputs : tuple of Outputs
        What pins the rows.
    source, evidence : str
        What they rest on otherwise; formats of 6 bits are inferred.
    """

    formats: tuple[str, ...] = FP8
    ks: tuple[int, ...] = (32,)
    terms: int | None = None
    fraction_bits: int | None = None
    interleaved: bool = False
    outputs: tuple[Outputs, ...] = ()
    source: str = MMA_SIM
    evidence: str = MODEL


@dataclass(frozen=True, kw_only=True)
class Group:
    """Instructions of a warp group or of one thread for all: m and n are free, operands lie in shared memory.

    Attributes
    ----------
    prefix : str
        What their names begin with; up to the first point it is their path.
    narrow : tuple of Narrow
        Beside those of fp16, bf16 and tf32, and of 8-bit integers.
    mixed : tuple of (a, b)
        Pairs of different 16-bit formats.
    shapes, integer_shapes : tuple of (m, tuple of n)
        Legal shapes (PTX ISA).
    input_scale : int
        Largest s of D = A B + D 2^-s that instructions of fp16, bf16 and tf32 operands take (scale-input-d of PTX).
    """

    prefix: str
    narrow: tuple[Narrow, ...] = ()
    mixed: tuple[tuple[str, str], ...] = ()
    shapes: tuple[tuple[int, tuple[int, ...]], ...] = ()
    integer_shapes: tuple[tuple[int, tuple[int, ...]], ...] = ()
    input_scale: int = 0

    @property
    def path(self) -> str:
        return self.prefix.split(".")[0]


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """Block-scaled instructions, whose k is 32, and 64 of fp4.

    Attributes
    ----------
    m, n : int
    group : Group or None
        Whose instructions have them; None: mma.sync.
    free : tuple of (m, tuple of n)
        Legal shapes where m and n are free.
    """

    m: int
    n: int
    group: Group | None = None
    free: tuple[tuple[int, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One architecture: what its tensor cores share, which shapes they have, what a compiler and a user call it.

    Attributes
    ----------
    fraction_bits : int
        F of the fp16, bf16 and tf32 instructions.
    terms : dict of str to int
        N, products that one fused operation takes, by operand format. A shorter k takes k.
    floors : dict of str to int
        Below which the alignment exponent never goes, by result format.
    sync : tuple of (shapes, a = b, (d, c) pairs)
        mma.sync of fp16, bf16 and tf32.
    units : dict of shape to str
        Shapes of mma.sync that run on the unit of another architecture (mmasim 2.1.1).
    blocks : dict of shape to int
        Shapes of mma.sync that multiply several independent blocks.
    emulated : tuple of (shapes, a = b, (d, c) pairs)
        mma.sync that runs on no tensor core: it is compiled to a chain of FP32 fused multiply-adds.
    narrow : tuple of Narrow
        mma.sync of operands of up to 8 bits.
    narrow_kind : str
        How PTX qualifies those of k = 32; empty where it does not.
    scaled : Scaled or None
        Block scales.
    group : Group or None
        wgmma or tcgen05.mma.
    double : tuple of shapes
        mma.sync of fp64.
    integer : tuple of (shapes, operand formats)
        mma.sync into s32.
    capability : (int, int)
        Compute capability.
    variants : tuple of (int, int)
        Other compute capabilities with its tensor cores.
    whole_major : bool
        Whether every other compute capability of the same major number is one of its variants.
    target : str
        Compilation target.
    devices : dict of str to tuple of str
        GPUs, and operand formats that their tensor cores lack although the architecture has them.
    measured_floor : str
        GPU on which the floor of fp32 results has been measured (Hawkeye); empty where models alone state it.
    vectors : str
        GPUs whose published outputs the rows with these operands reproduce (MATLAB-tensor-core).
    pinned : tuple of str
        Operand formats whose arithmetic those outputs pin (they have K = N products; tf32 on Hopper and later only N = 4).
    """

    fraction_bits: int
    terms: dict[str, int]
    floors: dict[str, int]
    sync: tuple[Kind, ...] = ()
    units: dict[Shape, str] = field(default_factory=dict)
    blocks: dict[Shape, int] = field(default_factory=dict)
    emulated: tuple[Kind, ...] = ()
    narrow: tuple[Narrow, ...] = ()
    narrow_kind: str = ""
    scaled: Scaled | None = None
    group: Group | None = None
    double: tuple[Shape, ...] = ()
    integer: tuple[tuple[tuple[Shape, ...], tuple[str, ...]], ...] = ()
    capability: tuple[int, int] = (0, 0)
    variants: tuple[tuple[int, int], ...] = ()
    whole_major: bool = False
    target: str = ""
    devices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    measured_floor: str = ""
    vectors: str = ""
    pinned: tuple[str, ...] = ()

    def floor_note(self, d_format: str) -> str:
        """What the alignment floor of a result format rests on."""
        measured = self.measured_floor if d_format == "fp32" else ""
        known = f"measured on an {measured} (Hawkeye)" if measured else "models only"
        return f"alignment floor {self.floors[d_format]}: {known}"
