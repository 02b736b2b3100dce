"""Compiles the source of an interpreted kernel with Triton's compiler for a target, without a GPU.

The interpreter has patched Triton's language by then, so a child process compiles. It gets the kernel's function, the functions
and values that its code names, and the signature that Triton's own launcher would see.
"""

import marshal
import os
import pickle
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: Compilation targets by the architecture of the catalogue: backend, the backend's name of it, threads of a warp.
TARGETS = {
    "ampere": ("cuda", 80, 32), "ada": ("cuda", 89, 32), "hopper": ("cuda", 90, 32), "blackwell": ("cuda", 100, 32),
    "rtx_blackwell": ("cuda", 120, 32), "cdna3": ("hip", "gfx942", 64),
}  # fmt: skip
#: Time limit of a compilation in seconds.
PATIENCE = 180.0


class NotCompiled(ValueError):
    """`NotCompiled` says why Triton did not compile a kernel."""


@dataclass(frozen=True)
class CompiledKernel:
    """`CompiledKernel` holds the compiler's output for one kernel.

    Attributes
    ----------
    version, target : str
        Version of Triton, and target such as "sm_90".
    texts : dict of str to str
        Stages of the compiler: "source" (before any pass), "ttir", "ttgir", "ptx" or "amdgcn".
    parameters : tuple of str
        Names of the arguments that the compiled kernel takes, in order; other arguments are constants.
    """

    version: str
    target: str
    texts: dict[str, str]
    parameters: tuple[str, ...]

    @property
    def label(self) -> str:
        """Compiler and target as text."""
        return f"Triton {self.version}, {self.target}"


_KNOWN: dict[bytes, CompiledKernel | str] = {}


def compile_kernel(kernel: Any, arguments: tuple, options: dict, target: tuple) -> CompiledKernel:
    """Compile a kernel for the arguments of a launch.

    Parameters
    ----------
    kernel : triton.runtime.interpreter.InterpretedFunction
        Kernel.
    arguments, options : tuple, dict
        Positional and keyword arguments of the launch, with num_warps and the like.
    target : tuple
        Target (backend, architecture, warp size), a value of :data:`TARGETS`.

    Returns
    -------
    CompiledKernel
        Compiled kernel, which is cached by kernel and signature.

    Raises
    ------
    NotCompiled
        If this version of Triton cannot be called in this way, or the compiler refuses the kernel.
    """
    try:
        job = pickle.dumps(_job(kernel, arguments, options, target))
    except Exception as error:  # from internals of Triton, or for values that cannot be sent
        raise NotCompiled(f"the kernel's signature could not be made ({type(error).__name__}: {error})") from error
    if job not in _KNOWN:
        _KNOWN[job] = _asked(job)
    found = _KNOWN[job]
    if isinstance(found, str):
        raise NotCompiled(found)
    return found


def _asked(job: bytes) -> CompiledKernel | str:
    """Return the child's answer, or a text that says why there is none."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-W", "ignore", "-m", __name__]
    try:
        done = subprocess.run(command, input=job, capture_output=True, env=environment, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the compiler did not answer: {error}"
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return f"the compiler refused the kernel: {lines[-1] if lines else f'exit status {done.returncode}'}"
    return CompiledKernel(**pickle.loads(done.stdout))


# -- the job for the child ---------------------------------------------------------------------------------------------------
def _job(kernel, arguments: tuple, options: dict, target: tuple) -> dict:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend
    from triton.runtime.jit import JITFunction, create_function_from_signature

    sent = _Functions()
    number = sent.add(kernel)
    jit = JITFunction(kernel.fn, **_settings(kernel))
    backend = make_backend(GPUTarget(*target))
    launch = {name: value for name, value in options.items() if name not in jit.arg_names}
    binder = create_function_from_signature(jit.signature, jit.params, backend)
    bound, specialization, _ = binder(*arguments, **options)
    _, signature, constants, attributes = jit._pack_args(backend, launch, bound, specialization, launch)
    constants = {place: sent.reference(value) for place, value in constants.items()}
    return {
        "functions": sent.rows, "kernel": number, "signature": signature, "constants": constants,
        "attributes": attributes, "options": launch, "target": target, "path": sys.path,
    }  # fmt: skip


def _settings(kernel) -> dict:
    """Return the settings that were given to the kernel's decorator."""
    names = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline")
    return {name: kernel.kwargs[name] for name in names if kernel.kwargs.get(name) is not None}


class _Functions:
    """`_Functions` collects interpreted functions as rows that can be sent, each once."""

    def __init__(self):
        self.rows: list[dict] = []
        self._numbers: dict[int, int] = {}

    def add(self, function) -> int:
        """Add a function if it is new, and return the number of its row."""
        plain = function.fn
        if id(plain) not in self._numbers:
            self._numbers[id(plain)] = number = len(self.rows)
            row: dict[str, Any] = {}
            self.rows.append(row)
            names = {name for code in _codes(plain.__code__) for name in code.co_names}
            row |= {
                "code": marshal.dumps(plain.__code__), "name": plain.__qualname__, "module": plain.__module__,
                "annotations": {n: self.reference(a) for n, a in plain.__annotations__.items()},
                "defaults": [self.reference(x) for x in plain.__defaults__ or ()],
                "globals": {n: self.reference(plain.__globals__[n]) for n in sorted(names) if n in plain.__globals__},
                "settings": _settings(function),
            }  # fmt: skip
            return number
        return self._numbers[id(plain)]

    def reference(self, value) -> tuple:
        """Return a value in a form that can be sent: the number of a function, a name to import, or the value itself."""
        from triton.runtime.interpreter import InterpretedFunction

        if isinstance(value, InterpretedFunction):
            module = value.fn.__module__
            if module.partition(".")[0] == "triton":
                return "import", module, value.fn.__qualname__
            return "function", self.add(value)
        if isinstance(value, types.ModuleType):
            return "module", value.__name__
        try:
            return "value", pickle.dumps(value)
        except Exception:  # a value that cannot be sent is left out; the compiler reports it if it needs it
            return ("nothing",)


def _codes(code: types.CodeType):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


# -- the child ---------------------------------------------------------------------------------------------------------------
def _compiled(job: dict) -> dict:
    """Compile a job's kernel, in the child process."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    sys.path[:] = job["path"]
    functions = _received(job["functions"])
    value = _resolver(functions)
    constants = {place: value(reference) for place, reference in job["constants"].items()}
    source = ASTSource(functions[job["kernel"]], job["signature"], constants, job["attributes"])
    backend, arch, warp = job["target"]
    made = triton.compile(source, target=GPUTarget(backend, arch, warp), options=job["options"])
    texts = {stage: made.asm[stage] for stage in ("source", "ttir", "ttgir", "ptx", "amdgcn") if stage in made.asm}
    return {
        "version": triton.__version__, "target": f"sm_{arch}" if backend == "cuda" else str(arch),
        "texts": {stage: str(text) for stage, text in texts.items()},
        "parameters": tuple(name for name, kind in job["signature"].items() if kind != "constexpr"),
    }  # fmt: skip


def _received(rows: list[dict]) -> list:
    """Make the functions of the rows again, for the compiler."""
    from triton.runtime.jit import JITFunction

    functions: list = []
    value = _resolver(functions)
    for row in rows:
        plain = types.FunctionType(marshal.loads(row["code"]), {"__name__": row["module"]})
        plain.__qualname__, plain.__module__ = row["name"], row["module"]
        plain.__annotations__ = {name: value(x) for name, x in row["annotations"].items()}
        plain.__defaults__ = tuple(value(x) for x in row["defaults"]) or None
        functions.append(JITFunction(plain, **row["settings"]))
    for row, function in zip(rows, functions, strict=True):
        function.fn.__globals__.update({name: value(x) for name, x in row["globals"].items() if x != ("nothing",)})
    return functions


def _resolver(functions: list) -> Callable[[tuple], Any]:
    import importlib

    def value(reference: tuple) -> Any:
        kind, *rest = reference
        if kind == "function":
            return functions[rest[0]]
        if kind == "module":
            return importlib.import_module(rest[0])
        if kind == "import":
            found: Any = importlib.import_module(rest[0])
            for name in rest[1].split("."):
                found = getattr(found, name)
            return found
        return pickle.loads(rest[0]) if kind == "value" else None

    return value


if __name__ == "__main__":
    answer = pickle.dumps(_compiled(pickle.load(sys.stdin.buffer)))
    sys.stdout.buffer.write(answer)
