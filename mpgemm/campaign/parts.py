"""This module lists the parts of a campaign as rows."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from mpgemm.campaign.work import Work


@dataclass(frozen=True)
class CampaignPart:
    """`CampaignPart` is a part of a campaign.

    Attributes
    ----------
    name : str
        Name of the part and of its module.
    about : str
        Purpose of the part.
    shares : int
        Number of processes among which its tasks are dealt. It is the same on every machine, so that a resumed run finds its
        rows.
    alone : bool
        Whether the part takes times, and so runs alone; its kernels are compiled before, in `shares` processes.
    """

    name: str
    about: str
    shares: int
    alone: bool = False

    def runner(self, warm: bool = False) -> Callable[[Work], None]:
        """Return the function that runs a share.

        With `warm`, the function that calls everything once before times are taken.
        """
        module = importlib.import_module(f"mpgemm.campaign.{self.name}")
        found: Callable[[Work], None] = module.warm if warm else module.run
        return found


PARTS = {
    part.name: part
    for part in (
        CampaignPart(
            "units", "every instruction of the architecture against its model, all kinds of operands, and vectors", 8
        ),
        CampaignPart("emulation", "units emulated on the GPU beside the CPU, and beside the GPU's own products", 4),
        CampaignPart("recovery", "kernels of FP32 and FP64 recovery against the simulation", 4),
        CampaignPart("functions", "special functions over their whole domains by hashes, and their models", 1),
        CampaignPart(
            "libraries", "torch's products, attention and functions: hashes, kernels, cuBLASLt's configuration", 1
        ),
        CampaignPart("times", "recovery and emulation beside torch's products, device and host apart", 4, alone=True),
    )
}
