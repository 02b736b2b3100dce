"""The names that public modules offer, read from their files: nothing is imported."""

import ast
from pathlib import Path

#: The public modules (docs/architecture.md); modules of frameworks offer functions of their own and are not packages.
MODULES = (
    "mpgemm",
    "mpgemm.inputs",
    "mpgemm.kernels",
    "mpgemm.testing",
    "mpgemm.traces",
    "ascend",
    "tensorcore_models",
    "tensorcore_models.accumulators",
    "tensorcore_models.catalogue",
    "tensorcore_models.compiled",
    "tensorcore_models.functions",
    "tensorcore_models.hardware",
    "tensorcore_models.libraries",
    "tensorcore_models.probing",
    "tensorcore_models.probing.formal",
    "tensorcore_models.reference",
)


def offered(root: Path, module: str) -> list[str]:
    """Return the public names of a module: what its stub imports, else its `__all__`, else what it imports by name."""
    folder = root.joinpath(*module.split("."))
    files = [folder / "__init__.pyi", folder / "__init__.py", folder.with_suffix(".pyi"), folder.with_suffix(".py")]
    file = next((path for path in files if path.exists()), None)
    if file is None:
        return []
    body = ast.parse(file.read_text(encoding="utf-8")).body
    listed = [
        ast.literal_eval(node.value)
        for node in body
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets)
        and isinstance(node.value, ast.List | ast.Tuple)
    ]  # fmt: skip
    imports = [alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names]
    return sorted(listed[0] if listed else (name for name in imports if not name.startswith("_")))
