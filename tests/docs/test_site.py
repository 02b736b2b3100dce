"""The site's own tools, its notebooks, and its pages as far as they can be checked without building it."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = ("atlas/", "api/", "gallery/")
sys.path.insert(0, str(DOCS / "_ext"))

import check_site  # noqa: E402
import hosting  # noqa: E402
from terminal import COLUMNS, in_a_terminal  # noqa: E402

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
#: Those that need an extra keep their results; tests/frameworks/test_pages.py looks at them.
STORED = ("pytest", "torch")
RUN = [path for path in NOTEBOOKS if path.stem not in STORED]


def code_cells(path):
    return ["".join(c["source"]) for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]


def test_there_are_three_notebooks_without_stored_results():
    assert len(RUN) == 3
    for path in RUN:
        cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
        assert all(not c["outputs"] and c["execution_count"] is None for c in cells), path.name


@pytest.mark.sweep(1)
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    pytest.importorskip("matplotlib")
    code = "\n".join(code_cells(path))
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_what_pages_that_run_import_is_installed_for_the_site():
    """By the group docs, as a core dependency, or by the extra plot, which every target installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = [
        *project["dependency-groups"]["docs"],
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["plot"],
    ]
    known = {re.match(r"[\w-]+", each)[0].replace("-", "_") for each in asked} | set(sys.stdlib_module_names)
    pages = [DOCS / "quickstart.md", *(DOCS / "tutorials").glob("*.md"), *(DOCS / "how-to").glob("*.md")]
    blocks = [b for path in pages for b in re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.S | re.M)]
    codes = [*blocks, *("\n".join(code_cells(path)) for path in RUN)]
    found = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name).partition(".")[0]
        for code in codes
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert "scipy" in found and found <= known | {"tensorcore_models", "ascend", "mpgemm"}


PAGES = sorted(path for path in DOCS.rglob("*.md") if not str(path.relative_to(DOCS)).startswith(GENERATED))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_page_links_to_what_is_there_and_its_python_compiles(path):
    text = path.read_text()
    prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)#\s]+)", prose):
        inside = os.path.relpath((path.parent / target).resolve(), DOCS)
        assert "://" in target or inside.startswith(GENERATED) or (path.parent / target).exists(), target
    for code in re.findall(r"^```python\n(.*?)^```", text, re.S | re.M):
        ast.parse(code)


def outputs(path):
    """(command or empty, line) of everything that a page shows as printed: below a command, or as text."""
    for language, block in re.findall(r"^```(console|text)\n(.*?)^```", path.read_text(), re.S | re.M):
        command = ""
        lines = iter(block.splitlines())
        for line in lines:
            if language == "console" and line.startswith("$ "):
                command = line
                while line.endswith("\\"):
                    line = next(lines)
                    command += line
            else:
                yield command, line


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_outputs_are_as_wide_as_a_terminal(path):
    wide = [line for command, line in outputs(path) if len(line) > COLUMNS and "--wide" not in command]
    assert not wide


def test_what_python_prints_is_wrapped():
    assert in_a_terminal("  a  b\n\nc\n") == "  a  b\n\nc"
    wrapped = in_a_terminal("  " + "word " * 30).splitlines()
    assert max(map(len, wrapped)) <= COLUMNS
    assert [len(line) - len(line.lstrip()) for line in wrapped] == [2, 4]


def test_every_page_is_in_the_table_of_contents():
    doors = sorted((DOCS / "doors").glob("*.md"))
    tables = "\n".join(page.read_text() for page in (DOCS / "index.md", *doors))
    listed = set(re.findall(r"^(?:\.\./)?([\w/-]+)$", tables, re.M))
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in [*PAGES, *NOTEBOOKS]}
    assert pages - listed == {"index", "instructions"}  # the table of instructions is part of the atlas
    assert {name for name in listed - pages if not f"{name}".startswith(GENERATED)} == set()


@pytest.fixture
def site(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "other.html").write_text('<h1 id="here">x</h1>')
    return tmp_path


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="sub/other.html#here">x</a>', None),
        ('<a href="https://example.org">x</a>', None),
        ('<img src="data:image/png;base64,AA" alt="x">', None),
        ('<a href="sub/gone.html">x</a>', "does not exist"),
        ('<a href="sub/other.html#gone">x</a>', "no such anchor"),
        ('<a href="#gone">x</a>', "no such anchor"),
        ('<a href="#units=volta">x</a>', None),
        ('<a href="../../etc">x</a>', "exist|outside"),
        ('<a href="http://example.org">x</a>', "neither https"),
        ('<img src="gone.png" alt="x">', "does not exist"),
        ('<img src="sub/other.html">', "has no text"),
        ('<script src="https://example.org/x.js"></script>', "from the network"),
        ('<link rel="stylesheet" href="https://example.org/x.css">', "from the network"),
    ],
)
def test_the_checker_finds_what_is_wrong(site, body, fault):
    (site / "index.html").write_text(body)
    found = check_site.complaints(site)
    assert (found == []) if fault is None else (len(found) == 1 and re.search(fault, found[0]))


def test_the_checker_refuses_an_empty_folder(tmp_path, capsys):
    assert check_site.main([str(tmp_path)]) == 2
    assert "no pages" in capsys.readouterr().err


def test_a_hosted_site_leads_to_its_newest_version_and_lists_all(tmp_path):
    for name in ("0.9.1", "0.10.0", "notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("x")
    assert hosting.finish(tmp_path) == ["0.10.0", "0.9.1"]
    assert (tmp_path / "versions.js").read_text() == 'const MPGEMM_VERSIONS = ["0.10.0", "0.9.1"];\n'
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text()
    assert check_site.complaints(tmp_path) == []
    with pytest.raises(ValueError, match="no version of the site"):
        hosting.finish(tmp_path / "notes")


def test_blocks_run_and_failures_are_seen(tmp_path, monkeypatch):
    pytest.importorskip("sphinx", reason="pip install --group docs")
    import run_blocks

    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    assert run_blocks.run_python("x = 2\nx + 1", namespace) == "3\n"
    assert run_blocks.run_python("print(x)", namespace) == "2\n"
    assert run_blocks.commands("$ mpgemm a \\\n  b  # why\noutput\n$ make c") == [["mpgemm", "a", "b"], ["make", "c"]]
    assert "a100" in run_blocks.run_console("$ mpgemm models --devices\n")
    with pytest.raises(ValueError, match="the build cannot run"):
        run_blocks.run_console("$ rm x\n")
    with pytest.raises(ValueError, match="ended with 2"):
        run_blocks.run_console("$ mpgemm evaluate nowhere.npy nothing.npy\n")


@pytest.mark.parametrize(
    ("page", "orphan", "name"),
    [
        ("atlas/volta/mma.m8n8k4.f32.f16.f16.f32", True, "atlas/volta/"),
        ("atlas/volta/index", False, "atlas/volta/index"),
        ("api/generated/mpgemm.inputs.generate", False, "api/generated/mpgemm.inputs"),
        ("api/mpgemm.inputs", False, "api/mpgemm.inputs"),
        ("index", False, "index"),
    ],
)
def test_pages_whose_sidebars_are_alike_share_one(page, orphan, name):
    pytest.importorskip("sphinx", reason="pip install --group docs")
    import quick_build

    assert quick_build.same_sidebar(page, orphan) == name


def test_the_text_of_a_page_has_its_words_and_not_its_headings_or_rules():
    nodes = pytest.importorskip("docutils.nodes", reason="pip install --group docs")
    import search_texts

    page = nodes.section(
        "", nodes.title("", "Heading"), nodes.paragraph("", "", nodes.Text("two  "), nodes.strong("", "words"))
    )
    page += [nodes.literal_block("", "a  b\n-----  ---\n1  2"), nodes.raw("", "<svg/>", format="html")]
    assert search_texts.text_of(page, 100) == "two words a b 1 2"
    assert search_texts.text_of(page, 5) == "two w"


SEARCH_PAGE = """<!doctype html><meta charset="utf-8"><div id="search-results"><ul></ul></div>
<script>
class Stemmer { stemWord(word) { return word.replace(/ing$/, ""); } }
const PAGE_TEXTS = { "sub/x": "WORDS round 1 the END", empty: "" };
</script><script src="search_summaries.js"></script>"""


@pytest.mark.full  # a browser starts
def test_the_search_shows_what_a_page_from_disk_says(tmp_path):
    if not (shutil.which("node") and shutil.which("chromium")):
        pytest.skip("node and chromium are needed to open the page (Debian: apt install nodejs chromium)")
    shutil.copy(DOCS / "_static" / "search_summaries.js", tmp_path)
    words = " ".join(f"word{i}" for i in range(100))
    page = tmp_path / "search.html"
    page.write_text(SEARCH_PAGE.replace("WORDS", words).replace("END", words))
    code = """(async () => {
      const list = document.querySelector("ul");
      for (const target of ["sub/x.html#part", "empty.html", "gone.html"]) {
        list.innerHTML += `<li><a href="${target}">title</a></li>`;
        await new Promise((done) => setTimeout(done, 50));
      }
      return [...list.children].map((item) => item.querySelector("p")?.textContent ?? null);
    })()"""
    browser = ROOT / "tests" / "support" / "browser.js"
    done = subprocess.run(
        ["node", browser, f"{page.as_uri()}?q=Rounding", code], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    first, empty, gone = answer["value"]
    assert answer["thrown"] == [] and empty is None and gone is None
    assert "round 1 the word0" in first and first.startswith("… word") and first.endswith(" …") and len(first) < 250
