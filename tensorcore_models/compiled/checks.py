"""Checks kernels for faults that do not stop a run: reads of unwritten memory, and races between threads."""

from .errors import KernelFault


class NoChecks:
    """`NoChecks` defines the events that checks watch, and ignores them."""

    def watch_read(self, memory, places, size: int, lanes, kind: str) -> None:
        """Note that each of `lanes` reads `size` bytes at its flat place.

        `kind` is generic, async, atomic, wgmma, tcgen05, tma, ...
        """

    def watch_write(self, memory, places, size: int, lanes, kind: str, words=None) -> None:
        """Note that each of `lanes` writes `size` bytes at its flat place; with `words`, writes of the same value do not
        race."""

    def exchanged(self, lanes) -> None:
        """Note that lanes ran an atomic operation or a fence, which orders accesses of global memory."""

    def synchronised(self, lanes) -> None:
        """Note that all threads of the lanes' blocks passed a barrier together."""

    def warp_synchronised(self, lanes) -> None:
        """Note that warps passed bar.warp.sync."""

    def arriving(self, lanes, number: int) -> None:
        """Note that lanes arrived at a barrier of their block."""

    def completed(self, rows, number: int) -> None:
        """Note that a barrier of these blocks completed."""

    def copied(self, lanes) -> None:
        """Note that lanes issued cp.async."""

    def committed(self, lanes) -> None:
        """Note that lanes closed a group of copies."""

    def waited(self, lanes, left: int) -> None:
        """Note that lanes waited until at most `left` groups of copies are pending."""

    def arriving_at(self, lane: int, place: int, *, copies: bool = False) -> None:
        """Note that a lane arrives at an mbarrier."""

    def products_report_to(self, lane: int, place: int) -> None:
        """Note that a lane's tcgen05 products so far arrive at an mbarrier when they are complete."""

    def copy_reports_to(self, row: int, place: int) -> None:
        """Note that the bulk copy that a block just wrote counts its bytes at an mbarrier."""

    def tensor_waited(self, lanes, kind: str) -> None:
        """Note that lanes waited for their tcgen05.ld ("tensor load") or tcgen05.st ("tensor store")."""

    def phase_completed(self, place: int) -> None:
        """Note that an mbarrier completed a phase."""

    def waited_for(self, lanes, places) -> None:
        """Note that lanes saw the phases of mbarriers complete."""

    def bulk_committed(self, lanes) -> None:
        """Note that lanes closed a group of bulk copies."""

    def bulk_waited(self, lanes, left: int) -> None:
        """Note that lanes waited until at most `left` groups of bulk copies still read, or are pending."""

    def fenced(self, lanes) -> None:
        """Note that lanes ran a proxy fence."""

    def group_committed(self, lanes) -> None:
        """Note that lanes closed a group of wgmma."""

    def group_waited(self, lanes, left: int) -> None:
        """Note that lanes waited until at most `left` groups of wgmma are pending."""


class Checks(NoChecks):
    """`Checks` finds reads of shared memory that nobody wrote.

    Parameters
    ----------
    machine : object
        Machine whose threads and memories are watched.
    """

    def __init__(self, machine):
        self.machine = machine

    def watch_read(self, memory, places, size: int, lanes, kind: str) -> None:
        bad = memory.unwritten(places, size)
        if bad.any():
            what = f"reads {size} bytes of shared memory of which some were never written"
            raise KernelFault(what, index=int(bad.argmax()), lanes=lanes)
