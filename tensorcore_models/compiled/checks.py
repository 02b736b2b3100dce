"""Checks for faults of a kernel whose values come out: reads of what nobody wrote, and races between threads."""

from .errors import KernelFault


class NoChecks:
    """Events that checks watch, which do nothing without them."""

    def watch_read(self, memory, places, size: int, lanes, kind: str) -> None:
        """`lanes` read `size` bytes at flat places, one each; `kind`: generic, async, atomic, wgmma, tcgen05, tma, ..."""

    def watch_write(self, memory, places, size: int, lanes, kind: str, words=None) -> None:
        """`lanes` write `size` bytes at flat places; with `words` given, two that write the same do not race."""

    def exchanged(self, lanes) -> None:
        """Lanes did what orders accesses of global memory: an atomic operation, a fence."""

    def synchronised(self, lanes) -> None:
        """All threads of the lanes' blocks passed a barrier together."""

    def warp_synchronised(self, lanes) -> None:
        """Warps passed bar.warp.sync."""

    def arriving(self, lanes, number: int) -> None:
        """Lanes arrived at a barrier of their block."""

    def completed(self, rows, number: int) -> None:
        """A barrier of these blocks completed."""

    def copied(self, lanes) -> None:
        """Lanes issued cp.async."""

    def committed(self, lanes) -> None:
        """Lanes closed a group of copies."""

    def waited(self, lanes, left: int) -> None:
        """Lanes waited until at most `left` groups of copies are pending."""

    def arriving_at(self, lane: int, place: int, *, copies: bool = False) -> None:
        """A lane arrives at an mbarrier."""

    def products_report_to(self, lane: int, place: int) -> None:
        """A lane's products of tcgen05 so far arrive at an mbarrier when they are complete."""

    def copy_reports_to(self, row: int, place: int) -> None:
        """The bulk copy that a block just wrote counts its bytes at an mbarrier."""

    def tensor_waited(self, lanes, kind: str) -> None:
        """Lanes waited for their tcgen05.ld ("tensor load") or tcgen05.st ("tensor store")."""

    def phase_completed(self, place: int) -> None:
        """An mbarrier completed a phase."""

    def waited_for(self, lanes, places) -> None:
        """Lanes saw the phases of mbarriers complete."""

    def bulk_committed(self, lanes) -> None:
        """Lanes closed a group of bulk copies."""

    def bulk_waited(self, lanes, left: int) -> None:
        """Lanes waited until at most `left` groups of bulk copies still read, or are pending."""

    def fenced(self, lanes) -> None:
        """Lanes ran a proxy fence."""

    def group_committed(self, lanes) -> None:
        """Lanes closed a group of wgmma."""

    def group_waited(self, lanes, left: int) -> None:
        """Lanes waited until at most `left` groups of wgmma are pending."""


class Checks(NoChecks):
    """Reads of shared memory that nobody wrote.

    Parameters
    ----------
    machine : object
        Whose threads and memories are watched.
    """

    def __init__(self, machine):
        self.machine = machine

    def watch_read(self, memory, places, size: int, lanes, kind: str) -> None:
        bad = memory.unwritten(places, size)
        if bad.any():
            what = f"reads {size} bytes of shared memory of which some were never written"
            raise KernelFault(what, index=int(bad.argmax()), lanes=lanes)
