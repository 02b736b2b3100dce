"""This package holds the compiled kernels; the public functions that use them validate their arguments."""

from importlib.util import find_spec

if find_spec(f"{__name__}.common.cpu") is None:
    raise ImportError(
        "this is a source tree of mpgemm whose kernels are not built: run `pip install -e .` in it, or "
        "`python setup.py build_ext --inplace` where Cython and a C compiler are installed"
    )
