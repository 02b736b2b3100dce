"""Parses other spellings of devices and instructions: PTX, SASS, built-ins, marketing and framework names, in any case.

PTX spellings follow the PTX ISA (mma, wmma, wgmma and tcgen05.mma), and SASS spellings the output of cuobjdump (HMMA.16816.F32
is 16 x 8 x 16). AMD's spellings follow the CDNA ISA documents and clang's built-ins, x86's and Arm's the vendors' intrinsics. A
spelling is parsed to a :class:`Spelling` without the rows; the lookups of the catalogue compare it with them.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, fields

from .devices import DEVICES
from .not_modelled import why_not_modelled
from .nvidia import ARCHITECTURES, PTX_NAMES

#: Architecture of each compilation target, including targets that the rows of architectures do not name.
TARGETS = {
    "sm_72": "volta", "sm_86": "ampere", "sm_87": "ampere", "sm_90": "hopper", "sm_100": "blackwell", "sm_103": "blackwell",
    "sm_103a": "blackwell", "sm_120": "rtx_blackwell", "sm_121": "rtx_blackwell", "sm_121a": "rtx_blackwell",
    "gfx908": "cdna1", "gfx90a": "cdna2", "gfx940": "cdna3", "gfx941": "cdna3", "gfx942": "cdna3",
    **{row.target: arch for arch, row in ARCHITECTURES.items()},
}  # fmt: skip

#: Words of a product's full name that do not tell its matrix unit.
_DECORATION = re.compile(
    r"(nvidia|amd|huawei|instinct|jetson|agx|geforce|tesla|quadro|ascend|tensor|core|gpu|sxm\d*|pcie|nvl|oam|hbm\d*e?|\d+gb)$"
)

#: SASS mnemonics: (path, operand formats if the mnemonic alone tells them).
SASS = {
    "hmma": ("mma", ("fp16",)), "imma": ("mma", ()), "dmma": ("mma", ("fp64",)), "qmma": ("mma", ()), "omma": ("mma", ()),
    "hgmma": ("wgmma", ("fp16",)), "igmma": ("wgmma", ()), "qgmma": ("wgmma", ()),
    "utchmma": ("tcgen05", ("fp16", "bf16", "tf32")), "utcimma": ("tcgen05", ("s8", "u8")),
    "utcqmma": ("tcgen05", ("e5m2", "e4m3fn", "e3m2", "e2m3", "e2m1")), "utcomma": ("tcgen05", ("e2m1",)),
}  # fmt: skip
_NARROW = ("e5m2", "e4m3fn", "e3m2", "e2m3", "e2m1")
#: PTX's kinds of mma and tcgen05.mma: operand formats, k if they have block scales, and the scales' format if there is one.
KINDS: dict[str, tuple[tuple[str, ...], int | None, str | None]] = {
    "f16": (("fp16", "bf16"), None, None), "tf32": (("tf32",), None, None), "i8": (("s8", "u8"), None, None),
    "f8f6f4": (_NARROW, None, None), "mxf8f6f4": (_NARROW, 32, "ue8m0"),
    "mxf4": (("e2m1",), 64, "ue8m0"), "mxf4nvf4": (("e2m1",), 64, None),
}  # fmt: skip
#: Rounding modifiers of FP64 products.
_ROUNDINGS = ("rn", "rz", "rm", "rp")
_QUALIFIERS = {"sync", "aligned", "mma_async", "row", "col", "block_scale", "mma", "cta_group:1", "cta_group:2"}
_TYPES = {**{ptx: name for name, ptx in PTX_NAMES.items()}, **{
    t: t for t in ("bf16", "tf32", "e5m2", "e3m2", "e2m3", "e2m1", "s8", "u8", "s4", "u4", "s32", "ue8m0", "ue4m3")
}}  # fmt: skip
#: Intrinsics and built-ins: (pattern, name in the catalogue).
_INTRINSICS = (
    (re.compile(r"__builtin_amdgcn_mfma_(\w+)"), r"v_mfma_\1"),
    (re.compile(r"_tile_(dp\w+)"), r"t\1"),
    (re.compile(r"_mm\d*_dpbf16_ps"), "vdpbf16ps"),
    (re.compile(r"vbfmmlaq_f32"), "bfmmla"),
)


@dataclass(frozen=True)
class Spelling:
    """`Spelling` holds the facts about an instruction that a spelling gives; None for a fact that it does not give.

    `stem` is the first word of the name without underscores.
    """

    path: str | None = None
    shape: tuple[int, int, int] | None = None
    k: int | None = None
    a_formats: tuple[str, ...] | None = None
    b_formats: tuple[str, ...] | None = None
    c_format: str | None = None
    d_format: str | None = None
    scale_format: str | None = None
    block_size: int | None = None
    scaled: bool | None = None
    saturating: bool | None = None
    rounding: str | None = None
    stem: str | None = None

    def answers(self, row) -> bool:
        """Return whether a row of the catalogue fits all given facts; free m and n fit every legal shape."""
        facts = {
            "path": row.path,
            "k": row.k,
            "c_format": row.c_format,
            "d_format": row.d_format,
            "scale_format": row.scale_format,
            "block_size": row.block_size,
            "scaled": row.scale_format is not None,
            "saturating": row.name.endswith(".satfinite"),
            "rounding": row.name[-2:] if row.name[-3:] in (".rz", ".rm", ".rp") else "rn",
            "stem": stem(row.name),
        }
        if any(getattr(self, name) not in (None, value) for name, value in facts.items()):
            return False
        if self.a_formats is not None and row.a_format not in self.a_formats:
            return False
        if self.b_formats is not None and row.b_format not in self.b_formats:
            return False
        return self.shape is None or self._shape_fits(row)

    def _shape_fits(self, row) -> bool:
        m, n, k = self.shape  # type: ignore[misc]
        legal = dict(row.legal_shapes) or {row.m: (row.n,)}
        return k == row.k and n in legal.get(m, ())

    @property
    def empty(self) -> bool:
        """Return whether the spelling gives no fact."""
        return all(getattr(self, field.name) is None for field in fields(self))


def stem(name: str) -> str:
    """Return the first word of a name without underscores, so that v_mfma_f32_16x16x16_f16 and v_mfma_f32_16x16x16f16 match."""
    return name.lower().split(".")[0].replace("_", "")


def device_or_architecture(text: str, architectures: Collection[str]) -> str | None:
    """Return the device or architecture of a name such as "NVIDIA A100-SXM4-80GB", "sm_90" or "gfx942"; None if unknown."""
    known = {"".join(_words(name)): name for name in (*architectures, *DEVICES)}
    known |= {"".join(_words(target)): arch for target, arch in TARGETS.items()}
    whole, plain = "".join(_words(text)), _plain(text).replace("compute", "sm")
    return known.get(whole) or known.get(plain)


def not_modelled(text: str) -> str | None:
    """Return why the catalogue has no rows of a device's unit; None for an unknown name."""
    return why_not_modelled("".join(_words(text))) or why_not_modelled(_plain(text))


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s_\-/]+", text.lower()) if word]


def _plain(text: str) -> str:
    """Return a name without the words that do not tell the matrix unit."""
    return "".join(word for word in _words(text) if not _DECORATION.match(word))


def instruction_query(text: str) -> Spelling | None:
    """Return the parsed spelling of an instruction; None if the text is not an instruction."""
    word = text.strip().rstrip(";").lower().replace("::", ":")
    for pattern, name in _INTRINSICS:
        word = pattern.sub(name, word)
    parts = [part for part in word.split(".") if part]
    if not parts:
        return None
    if parts[0] in SASS:
        return _sass(parts)
    if parts[0] in ("mma", "wmma", "wgmma", "tcgen05"):
        return _ptx(parts)
    return Spelling(stem=stem(word)) if re.fullmatch(r"\w+", parts[0]) and len(parts) == 1 else None


def _ptx(parts: list[str]) -> Spelling | None:
    """Return the facts of a PTX spelling, or of the shorter spelling of the catalogue; None if a part is unknown."""
    path, kind, block, shape, vector = parts[0], None, None, None, None
    types: list[str] = []
    saturating, rounding = False, "rn"
    for part in parts[1:]:
        found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", part)
        if found:
            shape = (int(found[1]), int(found[2]), int(found[3]))
        elif part in _TYPES:
            types.append(_TYPES[part])
        elif part.startswith("kind:") and part[5:] in KINDS:
            kind = part[5:]
        elif re.fullmatch(r"scale_vec:[124]x", part):
            vector = int(part[-2])
        elif re.fullmatch(r"block\d+", part):
            block = int(part[5:])
        elif part == "satfinite":
            saturating = True
        elif part in _ROUNDINGS:
            rounding = part
        elif part not in _QUALIFIERS:
            return None
    scale = types.pop() if types and types[-1].startswith("ue") else None
    facts: dict = {"path": path, "shape": shape, "block_size": block, "scale_format": scale}
    facts |= {"saturating": saturating, "rounding": rounding}
    if kind is not None:
        operands, depth, only = KINDS[kind]
        facts |= {"scaled": depth is not None, "a_formats": operands, "b_formats": operands, "k": depth}
        facts["scale_format"] = scale or only
        if vector is not None and depth is not None:
            facts["block_size"] = depth // vector
    elif scale is None and block is None:
        facts["scaled"] = False
    if path == "wmma" and len(types) == 2:
        types = [types[0], "fp16", "fp16", types[1]]
    if types:
        wanted = {"mma": (4,), "wmma": (4,), "wgmma": (3,), "tcgen05": (3,)}[path]
        if len(types) not in wanted or shape is None:
            return None
        facts |= {"d_format": types[0], "a_formats": (types[1],), "b_formats": (types[2],)}
        facts["c_format"] = types[3] if len(types) == 4 else None
    elif path != "tcgen05":
        return None
    return Spelling(**facts)


def _sass(parts: list[str]) -> Spelling | None:
    """Return the facts of a SASS spelling (mnemonic, shape, result, operands); None if a part is unknown."""
    path, operands = SASS[parts[0]]
    facts: dict = {"path": path, "scaled": False, "saturating": False, "rounding": "rn"}
    types: list[str] = []
    for part in parts[1:]:
        digits = re.fullmatch(r"(16|8)(8)(4|8|16|32|64)", part)
        free = re.fullmatch(r"(\d+)x(\d+)x(\d+)", part)
        if digits or free:
            found = digits or free
            facts["shape"] = tuple(int(x) for x in found.groups())  # type: ignore[union-attr]
        elif part in _TYPES:
            types.append(_TYPES[part])
        elif part in ("sf", "e8"):
            facts |= {"scaled": True} if part == "sf" else {"scale_format": "ue8m0"}
        elif part == "sat":
            facts["saturating"] = True
        elif part in _ROUNDINGS:
            facts["rounding"] = part
        elif part not in ("step0", "step1", "step2", "step3", "row", "col"):
            return None
    results = [t for t in types if t in ("fp32", "fp16")]
    others = [t for t in types if t not in results and not t.startswith("ue")]
    if results:
        facts["d_format"] = results[0]
    elif parts[0] in ("imma", "igmma", "utcimma"):
        facts["d_format"] = "s32"
    if len(results) == 2:
        facts["c_format"] = results[1]
    elif path == "mma" and results:
        facts["c_format"] = results[0]
    a = (others[0],) if others else operands or None
    b = (others[1],) if len(others) > 1 else a
    return Spelling(**facts, a_formats=a, b_formats=b)
