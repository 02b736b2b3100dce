"""Runs Triton kernels on emulated matrix units, in Triton's interpreter (extra "triton").

In ``with emulate("h100"): kernel[grid](...)`` every `tl.dot` and `tl.dot_scaled` gives the bits of the instructions, in the
order in which Triton's compiler issues them. ``assert_triton_matches(kernel, ...)`` compares these results with those of the
kernel's own PTX. See docs/triton.md.
"""

# ruff: noqa: F401  (what is imported here is the public interface)
from mpgemm.frameworks.extras import require

require("triton", "triton")

from mpgemm.frameworks.call_log import CallRow, Report, Site  # noqa: E402
from mpgemm.frameworks.triton_compiled import NotCompiled  # noqa: E402
from mpgemm.frameworks.triton_dots import TritonEmulation, emulate  # noqa: E402
from mpgemm.frameworks.triton_gate import assert_triton_matches  # noqa: E402
