"""Lists the evidence of each row of the catalogue with links, and its open questions."""

import re

from ..catalogue.measured import settled_rules
from ..engines.instruction import Instruction

#: Title and address of each source, by a word that names it in the catalogue.
LINKS = {
    "xie-mma-sim": ("Xie et al., MMA-Sim", "https://arxiv.org/abs/2511.10909"),
    "khattak-mikaitis": (
        "Khattak and Mikaitis, Accurate Models of NVIDIA Tensor Cores",
        "https://github.com/north-numerical-computing/MATLAB-tensor-core",
    ),
    "valpey-smt": ("Valpey et al., An SMT Formalization", "https://pyxis-roc.github.io/tensor_core_semantics/"),
    "fasi-numerical-behavior": ("Fasi et al., Numerical Behavior of NVIDIA Tensor Cores", "https://doi.org/10.7717/peerj-cs.330"),
    "mmasim": ("mmasim, the model of MMA-Sim's authors", "https://github.com/microsoft/MMA-Sim"),
    "MATLAB-tensor-core": ("MATLAB-tensor-core", "https://github.com/north-numerical-computing/MATLAB-tensor-core"),
    "mmaemu": ("mmaemu", "https://pypi.org/project/mmaemu/"),
    "Hawkeye": ("Hawkeye", "https://github.com/badasherez/gpu-simulator"),
    "PTX ISA": ("NVIDIA, PTX ISA", "https://docs.nvidia.com/cuda/parallel-thread-execution/"),
    "AMD CDNA ISA": ("AMD, instruction set documents", "https://gpuopen.com/amd-gpu-architecture-programming-documentation/"),
    "SDM": ("Intel, Software Developer's Manual", "https://www.intel.com/content/www/us/en/developer/articles/technical/intel-sdm.html"),
    "Software Developer": ("Intel, Software Developer's Manual", "https://www.intel.com/content/www/us/en/developer/articles/technical/intel-sdm.html"),
    "Arm Architecture Reference Manual": ("Arm Architecture Reference Manual", "https://developer.arm.com/documentation/ddi0487/latest/"),
    "Extensions Programming Reference": (
        "Intel, Instruction Set Extensions Programming Reference",
        "https://www.intel.com/content/www/us/en/developer/articles/technical/intel-sdm.html",
    ),
    "Intel_Gaudi3_Software": ("Habana, Gaudi's software", "https://github.com/HabanaAI/Intel_Gaudi3_Software"),
    "riscv-isa-sim": ("riscv-isa-sim, the ISA simulator", "https://github.com/riscv-software-src/riscv-isa-sim"),
    "tenstorrent/ttsim": ("ttsim, Tenstorrent's functional model", "https://github.com/tenstorrent/ttsim"),
    "tenstorrent/tt-llk": ("tt-llk, Tenstorrent's kernels", "https://github.com/tenstorrent/tt-llk"),
    "corsix/amx": ("corsix/amx", "https://github.com/corsix/amx"),
    "PTO-ISA/pto-spec": ("PTO-ISA, specification", "https://github.com/PTO-ISA/pto-spec"),
    "arXiv 2409.16626": ("HiFloat8", "https://arxiv.org/abs/2409.16626"),
    "Huawei": ("Huawei, Ascend documentation", "https://www.hiascend.com/document"),
}  # fmt: skip

#: Meaning of each level of evidence.
MEANING = {
    "hardware: own run": "this project ran the instruction on hardware and compared bits",
    "hardware: published vectors": "the model reproduces published outputs of real hardware, bit for bit",
    "vendor document": "the vendor documents the arithmetic",
    "published model": "a published model states the arithmetic; no published outputs of this instruction were compared here",
    "inferred": "the arithmetic is that of related instructions; nobody has published outputs or a model of this instruction",
    "reconstruction": "the arithmetic is partly assumed, because it is not published; the chip may return other results",
    "arithmetic not public": "nobody has published the arithmetic",
}

#: Words of a source or note that mark a fact as not settled.
_OPEN = ("models only", "no data", "unknown", "assumed", "not published", "not run", "not public")
#: Question that each edge rule answers, for rules on which published models disagree.
_QUESTIONS = {
    "zero_operand": "Which exponent does a zero operand have in the alignment: none, -126, or the smallest of its format?",
    "zero_c": "Which exponent does c = 0 have in the alignment: none, -126, or the smallest of its format?",
    "subnormal_c": "Which exponent does a subnormal c have in the alignment: the smallest of its format or its leading bit's?",
    "negative_underflow": "Is the result +0 or -0 if a negative sum is rounded to zero?",
    "scaled_zero": "Does a zero product keep the exponents of its block scales in the alignment?",
    "c_inf_with_overflow": "Is the result c or NaN if c is infinite and a finite product overflows to the other infinity?",
    "flush_input": "Which operands are taken as zero: those that are subnormal in their format, those below 2^-126, or none?",
}


def level_of(row: Instruction) -> str:
    """Return the level of evidence without the details of an own run."""
    return row.evidence.split(" (")[0]


def links_of(row: Instruction) -> list[tuple[str, str]]:
    """Return (name, address) of each source that the row names."""
    text = f"{row.source}; {row.note}"
    return list(dict.fromkeys(link for word, link in LINKS.items() if word in text))


def remarks(note: str) -> list[str]:
    """Return each remark of a note, in which semicolons and full stops separate them, as a sentence."""
    parts = (part.strip(" .") for part in re.split(r"; |\. ", note))
    return [f"{part[0].upper()}{part[1:]}." for part in parts if part]


def open_questions(row: Instruction) -> list[str]:
    """List the open questions about a row: weak evidence, facts that are not settled, and rules on which models disagree."""
    found = []
    level = level_of(row)
    if level in ("published model", "inferred", "reconstruction"):
        found.append(f"The evidence of this row is only *{level}*, so a chip may return other results than the model.")
    for remark in remarks(row.note):
        if any(word in remark for word in _OPEN):
            found.append(remark)
    settled = settled_rules(row.arch) if level == "hardware: own run" else frozenset()
    for rule, question in _QUESTIONS.items():
        if rule in settled:
            continue
        allowed = row.accumulator.edge_rules.get(rule)
        if allowed and (rule != "scaled_zero" or row.scale_format):
            chosen = getattr(row.accumulator, rule)
            others = ", ".join(f"`{value}`" for value in allowed if value != chosen)
            found.append(
                f"{question} Published models give different answers. This row assumes `{rule}={chosen}`. "
                f'`with_rules({rule}="...")` computes the other answer{"s" * (len(allowed) > 2)}: {others}.'
            )
    return found
