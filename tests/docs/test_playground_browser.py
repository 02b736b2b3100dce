"""The playground in Chromium, opened from a folder on disk: it computes, refuses bad input in words, and nothing throws."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm.explanations.functions import explain_function

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import playground_data  # noqa: E402

BROWSER = ROOT / "tests" / "support" / "browser.js"
V100, A100, H100 = (
    "volta:mma.m8n8k4.f32.f16.f16.f32", "ampere:mma.m16n8k16.f32.f16.f16.f32", "hopper:mma.m16n8k16.f32.f16.f16.f32",
)  # fmt: skip
#: Waits until the panel of dot products, or the curves of the matrices, are there.
READY = """const until = async (test) => { while (!test()) await new Promise((done) => setTimeout(done, 50)); };
await until(() => document.querySelector('#dot-units'));
const all = (selector) => [...document.querySelectorAll(selector)];
const get = (id) => document.getElementById(id);
const set = (id, value) => { get(id).value = value; get(id).dispatchEvent(new Event('input')); };
const message = () => document.querySelector('#playground-dots .message').textContent;
const bits = () => all('#playground-dots .results code').map((code) => code.textContent);
"""

pytestmark = pytest.mark.full  # a browser starts for each test


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the page and what it loads."""
    if not playground_data.can_compile():
        pytest.skip(playground_data.MISSING)
    if not (shutil.which("node") and shutil.which("chromium")):
        pytest.skip("node and chromium are needed to open the page (Debian: apt install nodejs chromium)")
    folder = tmp_path_factory.mktemp("site")
    playground_data.write(folder / playground_data.FOLDER)
    head = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Playground</title>'
    head += '<meta name="viewport" content="width=device-width">'
    (folder / "page.html").write_text(
        f"{head}</head><body>{playground_data.panels('')}</body></html>", encoding="utf-8"
    )
    return folder


def run(site, code, state=None, width=1280):
    """What code in the page returns; nothing may have been thrown."""
    address = (site / "page.html").as_uri() + (f"#{urlencode(state)}" if state else "")
    command = ["node", str(BROWSER), address, f"(async () => {{ {READY} {code} }})()", str(width)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["thrown"] == [] and answer["logged"] == []
    return answer["value"]


def dot(unit, a, b, c):
    """The encoding of a result as the page shows it."""
    row = tcm.get_instruction(unit)
    d = row.gemm_bits(
        np.array([a], np.float16).view(np.uint16),
        np.array(b, np.float16)[:, None].view(np.uint16),
        np.array([[c]], np.float32).view(np.uint32),
    )
    return f"0x{int(d[0, 0]):08x}"


def test_it_computes_what_the_address_says(site):
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(20).astype(np.float16).tolist() for _ in range(2))
    units = (H100, A100, V100)
    state = {"units": " ".join(units), "a": " ".join(map(str, a)), "b": " ".join(map(str, b)), "c": "0.25"}
    found = run(site, "return [bits(), location.hash, all('#playground-dots details').length]", state)
    assert found[0] == [dot(unit, a, b, 0.25) for unit in units] and len(set(found[0])) > 1
    assert found[1] == f"#{urlencode(state)}" and found[2] == 3


BAD = {
    ("dot-a", "1 two 3"): "“two” is not a number",
    ("dot-a", ""): "at least one",
    ("dot-a", " ".join(["1"] * 33)): "a has 33 values, at most 32",
    ("dot-a", "1 2"): "b has 3 values, 2 are needed",
    ("dot-a", "1 0x12345 3"): "more than the 16 bits of fp16",
    ("dot-c", "1 2"): "c has 2 values, 1 is needed",
    ("dot-units", "nothing"): "no instruction of the catalogue is named “nothing”",
    ("dot-units", "m16n16k8"): "these names have it: ampere:wmma.m16n16k8",
    ("dot-units", "H100"): "“H100” is a device; choose one of its instructions: hopper:",
    ("dot-units", ""): "choose an instruction first",
    ("dot-units", " ".join([H100] * 7)): "at most 6",
    ("dot-a", "1e999999999 1 1"): "an exponent beyond 5000",
}


def test_bad_input_is_refused_in_words_and_good_input_works_again(site):
    steps = json.dumps([[*key] for key in BAD])
    found = run(
        site,
        f"""const said = [];
        for (const [id, value] of {steps}) {{
          const before = get(id).value;
          set(id, value); said.push(message()); set(id, before);
          if (message() || bits().length !== 3) said.push('not well again');
        }}
        return said;""",
    )
    assert len(found) == len(BAD), found
    for wanted, said in zip(BAD.values(), found, strict=True):
        assert wanted in said, (wanted, said)


def test_rounded_numbers_are_told(site):
    note = "return [all('.note').map((x) => x.textContent), bits()]"
    (notes, bits) = run(site, note, {"units": H100, "a": "0.1 65520", "b": "1 0"})
    assert "“0.1” is no number of fp16: it was rounded to 0.0999755859375." in notes
    assert any("beyond 65504" in text and "became infinity" in text for text in notes) and bits == ["0x7fffffff"]


def test_the_search_button_says_what_does_not_differ(site):
    fp8 = "ada:mma.m16n8k32.f32.e4m3.e4m3.f32"
    code = f"""const said = [];
    for (const units of ['{H100}', '{H100} {H100}', '{H100} {fp8}']) {{
      set('dot-units', units);
      all('button').find((button) => button.textContent.startsWith('Make')).click();
      await new Promise((done) => setTimeout(done));
      said.push(message());
    }}
    return said;"""
    one, twice, other = run(site, code)
    assert "choose two instructions" in one and "take different operands" in other
    assert twice == f"{H100} is chosen twice and does not differ from itself: choose another instruction"


def test_the_search_button_makes_two_units_differ(site):
    code = """all('button').find((button) => button.textContent.startsWith('Make')).click();
    await until(() => bits().length === 2 && new Set(bits()).size === 2);
    return [bits(), get('dot-a').value, get('dot-b').value, get('dot-c').value];"""
    bits, a, b, c = run(site, code, {"units": f"{A100} {H100}", "a": "1", "b": "1"})
    codes = [np.array([int(x, 16) for x in text.split()], np.uint16).view(np.float16).tolist() for text in (a, b)]
    addend = float(np.array([int(c, 16)], np.uint32).view(np.float32)[0])
    assert bits == [dot(unit, *codes, addend) for unit in (A100, H100)]


def test_special_functions_are_those_of_explain_and_bad_input_is_refused(site):
    bad = [["function-name", "ex3"], ["function-name", "tanh"], ["function-x", "two"], ["function-x", "0x123456789"]]
    code = f"""const panel = get('playground-functions'), texts = (parts) => all(parts).map((x) => x.textContent);
    const shown = () => [texts('#playground-functions .results code')[0], texts('#playground-functions pre')];
    const told = () => panel.querySelector('.message').textContent;
    const found = [shown(), location.hash], said = [];
    for (const [id, value] of {json.dumps(bad)}) {{
      const before = get(id).value;
      set(id, value); said.push(told()); set(id, before);
    }}
    set('function-name', 'div.full.f32'); set('function-x', '1'); set('function-y', '3');
    get('function-arch').value = 'volta'; get('function-arch').dispatchEvent(new Event('change'));
    set('function-name', 'tanh.approx.f32'); said.push(told());
    set('function-name', 'div.full.f32');
    return [...found, said, shown()[0], location.hash];"""
    state = {"function": "hopper:expf", "x": "1"}
    (bits, texts), address, said, quotient, last = run(site, code, state)
    found = explain_function(tcm.get_function("hopper", "expf"), [1.0])
    assert bits == f"{found.result:#010x}" and address == f"#{urlencode(state)}"
    assert "\n\n".join(texts) == "\n\n".join(str(found).split("\n\n")[1:-1])
    for words, text in zip(
        (
            "no function named “ex3”",
            "no function named “tanh”",
            "“two” is not a number",
            "more than the 32 bits",
            "not on volta",
        ),
        said,
        strict=True,
    ):
        assert words in text, said
    third = tcm.get_function("hopper", "div.full.f32").bits(0x3F800000, 0x40400000)
    assert quotient == f"{int(third):#010x}"
    assert last == "#function=volta%3Adiv.full.f32&x=1"  # 3 is what y is at first


def test_every_control_is_reached_by_the_keyboard_and_has_a_name(site):
    nameless = """const controls = all('button, input, select, textarea, summary, [tabindex]');
    const faults = controls.filter((x) => x.checkVisibility({ contentVisibilityAuto: true })).filter((x) => {
      x.focus();
      const name = x.labels?.[0]?.textContent || x.textContent || x.getAttribute('aria-label');
      return document.activeElement !== x || x.tabIndex < 0 || !name;
    });
    return [controls.length, faults.map((x) => x.outerHTML)];"""
    count, faults = run(site, nameless)
    assert count > 15 and faults == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_does_not_scroll_sideways(site, width):
    assert run(site, "return document.documentElement.scrollWidth", width=width) <= width


def test_matrices_have_the_bits_of_the_package_and_bad_ones_are_refused(site):
    rng = np.random.default_rng(1)
    a, b = rng.uniform(-1, 1, (6, 20)).astype(np.float32), rng.uniform(-1, 1, (20, 4)).astype(np.float32)
    texts = ["\\n".join(", ".join(map(repr, row)) for row in x.astype(float).tolist()) for x in (a, b)]
    code = f"""set('matrix-A', "{texts[0]}"); set('matrix-B', "{texts[1]}"); set('matrix-scale', '6');
    await until(() => document.querySelector('#playground-matrices figure polyline'));
    const shown = all('#playground-matrices .results td:last-child').map((cell) => Number(cell.textContent));
    const said = [];
    for (const text of ['1, x', '1, 2\\n3', '', '1e60', '0\\n'.repeat(65)]) {{
      set('matrix-A', text); said.push(document.querySelector('#playground-matrices .message').textContent);
    }}
    return [shown, said];"""
    bits, said = run(site, code)
    methods = ("fp16", "markidis", "ootomo", "sgemm_cube:scale_exponent=6")
    wanted = [mpgemm.errors(mpgemm.recovered_gemm(a, b, method=x, engine=H100), a, b).effective_bits() for x in methods]
    assert np.allclose(bits, wanted, atol=0.0051), (bits, wanted)  # shown with two digits
    for words, text in zip(
        ("line 1: “x” is not a number", "line 2 has 1 numbers", "is empty", "not finite", "at most 64"),
        said,
        strict=True,
    ):
        assert words in text, said
