"""Extension modules of mpgemm; everything else about the distribution is in pyproject.toml."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNEL_FOLDERS = ("tensorcore_models/_kernels", "ascend/_kernels", "mpgemm/_kernels")

# Contraction is off because a fused multiply-add would change result bits from one CPU to the next.
# MPGEMM_SANITIZE=1 builds every kernel under AddressSanitizer and UndefinedBehaviorSanitizer.
GNU_FLAGS = ["-O3", "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-unused-function"]
SANITIZE_FLAGS = ["-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


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
    """Adds the flags that the compiler understands."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

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
            if os.environ.get("MPGEMM_SANITIZE") == "1":
                compile_flags += SANITIZE_FLAGS
                link_flags += SANITIZE_FLAGS
        for extension in self.extensions:
            extension.extra_compile_args = compile_flags + extension.extra_compile_args
            extension.extra_link_args = link_flags + extension.extra_link_args
        super().build_extensions()


def kernel_extensions():
    """One extension for every .pyx below a kernel folder; headers are found wherever they are below it."""
    extensions = []
    for folder in map(Path, KERNEL_FOLDERS):
        includes = sorted({str(p.parent) for root in (folder, Path(KERNEL_FOLDERS[0])) for p in root.rglob("*.h")})
        roots = (folder, Path(KERNEL_FOLDERS[0]))
        depends = sorted(str(p) for root in roots for p in root.rglob("*") if p.suffix in (".h", ".pxd"))
        for source in sorted(folder.rglob("*.pyx")):
            name = ".".join(source.with_suffix("").parts)
            extensions.append(Extension(name, [str(source)], include_dirs=includes, depends=depends))
    return extensions


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
        nthreads=0 if sys.platform == "win32" else (os.cpu_count() or 1),
    ),
    cmdclass={"build_ext": BuildKernels},
)
