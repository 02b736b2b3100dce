"""Extension modules of mpgemm; everything else about the distribution is in pyproject.toml."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

KERNEL_FOLDERS = tuple(map(Path, ("tensorcore_models/_kernels", "ascend/_kernels", "mpgemm/_kernels")))

#: What Cython's typed memoryviews need, compiled once for all extensions instead of into each of them.
SHARED_UTILITY = "tensorcore_models._kernels.common.memoryviews"

# Contraction is off because a fused multiply-add would change result bits from one CPU to the next.
# Nobody debugs Cython's output in a built package: debugging information was a quarter of the compiler's time.
GNU_FLAGS = ["-O3", "-g0", "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-unused-function"]
# MPGEMM_SANITIZE=1 builds every kernel under AddressSanitizer and UndefinedBehaviorSanitizer.
SANITIZE_FLAGS = ["-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]

# MPGEMM_CHECK=1 builds operations that look at what they are given and end the program outside of their domains (check.h).
CHECK = [("MPG_CHECK", None)] if os.environ.get("MPGEMM_CHECK") == "1" else []

# MPGEMM_LIMITED_API=1 builds for Python's stable interface: one wheel for CPython 3.11 and all later ones.
OLDEST = (3, 11)
LIMITED = os.environ.get("MPGEMM_LIMITED_API") == "1"
LIMITED_MACROS = (
    [("Py_LIMITED_API", f"0x{OLDEST[0]:02X}{OLDEST[1]:02X}0000"), ("CYTHON_LIMITED_API", "1")] if LIMITED else []
)

# LANES_TEXT names the header that lanes_of_each_set.h includes.
INCLUDE = re.compile(r'^\s*(?:#\s*include|#\s*define LANES_TEXT|cdef extern from)\s+"([^"]+)"', re.MULTILINE)
CIMPORT = re.compile(r"^\s*from\s+((?:tensorcore_models|ascend|mpgemm)[\w.]+)\s+cimport", re.MULTILINE)


def compiles(compiler, source, flags):
    """Whether `compiler` (a distutils CCompiler) builds and links `source` with `flags`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.c"
        path.write_text(source)
        try:
            objects = compiler.compile([str(path)], output_dir=folder, extra_postargs=flags)
            compiler.link_executable(objects, str(Path(folder) / "probe"), extra_postargs=flags)
        except (OSError, subprocess.SubprocessError, Exception):  # distutils raises its own CompileError
            return False
    return True


class BuildKernels(build_ext):
    """Adds the flags that the compiler understands; keeps what stands beside the sources and is up to date."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self):
        self.beside_sources = self.inplace or self.editable_mode
        super().run()

    def build_extension(self, extension):
        """Compile, unless the sources' own folder has it: `pip install --editable` asks for a build in a folder of its own."""
        target = Path(self.get_ext_fullpath(extension.name))
        built = Path(*extension.name.split(".")[:-1], target.name)
        needs = [*extension.sources, *extension.depends]
        if self.beside_sources and not self.force and built.exists() and not newer_group(needs, str(built)):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(built, target)
            return
        print(f"compiling {extension.name}", flush=True)
        super().build_extension(extension)

    def build_extensions(self):
        compile_flags, link_flags = [], []
        if self.compiler.compiler_type == "msvc":
            compile_flags += ["/O2", "/fp:precise", "/openmp", "/Zc:preprocessor"]
        else:
            compile_flags += GNU_FLAGS
            openmp = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
            if compiles(self.compiler, openmp, ["-fopenmp"]):
                compile_flags.append("-fopenmp")
                link_flags.append("-fopenmp")
            if CHECK:
                compile_flags.append("-O1")  # what is looked at in every lane would take minutes to optimise
            if os.environ.get("MPGEMM_SANITIZE") == "1":
                compile_flags += SANITIZE_FLAGS
                link_flags += SANITIZE_FLAGS
        for extension in self.extensions:
            extension.extra_compile_args = compile_flags + extension.extra_compile_args
            extension.extra_link_args = link_flags + extension.extra_link_args
        super().build_extensions()


def dependencies(source, headers):
    """Every .pxd and .h that `source` reads, directly or through others: only these make it compile again.

    `headers` maps the name of each header to its path.
    """
    own = source.with_suffix(".pxd")  # Cython reads it without being told
    found, to_read = {own} if own.exists() else set(), [source, *([own] if own.exists() else [])]
    while to_read:
        text = to_read.pop().read_text(encoding="utf-8")
        named = [headers[name] for name in INCLUDE.findall(text) if name in headers]
        named += [Path(*module.split(".")).with_suffix(".pxd") for module in CIMPORT.findall(text)]
        to_read += [path for path in named if path not in found]
        found.update(named)
    return sorted(map(str, found))


def kernel_extensions():
    """One extension for every .pyx below a kernel folder, and the one that they share.

    Those with the most text in headers come first: they compile the longest, and the last compiler should not run alone.
    """
    paths = [path for folder in KERNEL_FOLDERS for path in sorted(folder.rglob("*.h"))]
    headers = {path.name: path for path in paths}
    includes = sorted({str(path.parent) for path in paths})
    options = {"define_macros": [*CHECK, *LIMITED_MACROS], "py_limited_api": LIMITED}
    shared = [SHARED_UTILITY.replace(".", "/") + ".c"]
    extensions = [Extension(SHARED_UTILITY, shared, depends=["setup.py"], **options)]
    for source in (path for folder in KERNEL_FOLDERS for path in sorted(folder.rglob("*.pyx"))):
        name = ".".join(source.with_suffix("").parts)
        depends = ["setup.py", *dependencies(source, headers)]
        extensions.append(Extension(name, [str(source)], include_dirs=includes, depends=depends, **options))
    return sorted(extensions, key=lambda extension: -sum(Path(path).stat().st_size for path in extension.depends))


def made_by_another_cython():
    """Whether C files are there that another Cython wrote: they do not fit those that this one would write beside them."""
    path = Path(SHARED_UTILITY.replace(".", "/") + ".c")
    return path.exists() and f"Cython {Cython.__version__} " not in path.read_text(encoding="utf-8")[:200]


debug_bounds = os.environ.get("MPGEMM_BOUNDSCHECK") == "1"
setup(
    ext_modules=cythonize(
        kernel_extensions(),
        compiler_directives={
            "language_level": "3",
            "boundscheck": debug_bounds,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "embedsignature": True,
        },
        shared_utility_qualified_name=SHARED_UTILITY,
        force=made_by_another_cython(),
        nthreads=0 if sys.platform == "win32" else (os.cpu_count() or 1),
    ),
    cmdclass={"build_ext": BuildKernels},
    options={"bdist_wheel": {"py_limited_api": f"cp{OLDEST[0]}{OLDEST[1]}"}} if LIMITED else {},
)
