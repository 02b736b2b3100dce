"""States the evidence of each row of the catalogue, with links, and its open questions."""

import re

from ..catalogue.measured import settled_rules
from ..engines.instruction import Instruction

#: What sources call themselves in the catalogue, and where they are.
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

#: What the levels of evidence mean.
MEANING = {
    "hardware: own run": "this project ran the instruction on hardware and compared bits",
    "hardware: published vectors": "the model reproduces published outputs of real hardware, bit for bit",
    "vendor document": "the vendor documents the arithmetic",
    "published model": "a published model states the arithmetic; no published outputs of this instruction were compared here",
    "inferred": "carried over from instructions that are known; nobody has published outputs or a model of this one",
    "reconstruction": "assumed where nothing is published: its results say nothing certain about the chip",
    "arithmetic not public": "nobody has published the arithmetic",
}

#: Words of a source or note that mark something as not settled.
_OPEN = ("models only", "no data", "unknown", "assumed", "not published", "not run", "not public")
#: Edge rules on which published models disagree, and the question that each answers.
_QUESTIONS = {
    "zero_operand": "Does a product of zero take part in the alignment?",
    "zero_c": "Does c = 0 take part in the alignment?",
    "subnormal_c": "Which exponent does a subnormal c have at the alignment?",
    "negative_underflow": "Which sign does a zero have that a negative sum is rounded to?",
    "scaled_zero": "Does a zero below block scales take part in the alignment?",
    "c_inf_with_overflow": "What results if c is infinite and a finite product overflows to the other infinity?",
    "flush_input": "Which operands count as zero?",
}


def level_of(row: Instruction) -> str:
    """Return the level of evidence, without what an own run adds to it."""
    return row.evidence.split(" (")[0]


def links_of(row: Instruction) -> list[tuple[str, str]]:
    """Return (name, address) of each source that the row names."""
    text = f"{row.source}; {row.note}"
    return list(dict.fromkeys(link for word, link in LINKS.items() if word in text))


def open_questions(row: Instruction) -> list[str]:
    """List the open questions about a row: its evidence, remarks that say so, and edge rules on which models disagree."""
    found = []
    level = level_of(row)
    if level in ("published model", "inferred", "reconstruction", "arithmetic not public"):
        found.append(f"Its evidence is *{level}*: {MEANING[level]}.")
    for remark in re.split(r"; |\. ", f"{row.source}; {row.note}"):
        remark = remark.strip(" .")
        if any(word in remark for word in _OPEN):
            found.append(f"{remark[0].upper()}{remark[1:]}.")
    settled = settled_rules(row.arch) if level == "hardware: own run" else frozenset()
    for rule, question in _QUESTIONS.items():
        if rule in settled:
            continue
        allowed = row.accumulator.edge_rules.get(rule)
        if allowed and (rule != "scaled_zero" or row.scale_format):
            chosen = getattr(row.accumulator, rule)
            others = ", ".join(f"`{value}`" for value in allowed if value != chosen)
            found.append(
                f"{question} Published models differ. This row has `{rule}={chosen}`; "
                f'`with_rules({rule}="...")` computes the others: {others}.'
            )
    return found
