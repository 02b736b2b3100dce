"""`mpgemm trace compare RUN1 RUN2`: where two recorded runs of a model part, why, and what becomes of it."""

import argparse

QUESTION = "debug a kernel"
SUMMARY = "two recorded runs of a model: which module's bits part first, who made each side, what the logits say"
EXAMPLES = (
    ("compare training rollout", "two folders of recorded tensors"),
    ("compare a100 h100 --logits model.lm_head --no-recipes", "the module of the logits by its name"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("what", choices=("compare",), help="compare: two runs, module by module")
    for name in ("first", "second"):
        add(
            name, metavar=f"RUN{1 + (name == 'second')}",
            help="folder of recorded tensors: .safetensors, .npz, .npy or .pt with names of modules and steps",
        )  # fmt: skip
    add("--logits", metavar="MODULE", help="the module whose output are logits (default: lm_head or logits)")
    add("--no-recipes", action="store_true", help="do not look for who made the first output that differs")
    add("--json", action="store_true", help="print JSON")
