"""The HTML report: what it says, what it shows of damaged folders, and how it behaves in a browser."""

import base64
import json
import re
import shutil

import pytest

from mpgemm.cli import main
from mpgemm.reporting.findings import findings_of, sentences_of
from mpgemm.reporting.html_report import palette
from mpgemm.reporting.report import Table
from mpgemm.reporting.result_tables import read_tables, without_constants

pytestmark = pytest.mark.unsanitized

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):  # 2 s, with the import of Matplotlib
    pytest.importorskip("matplotlib")
    out = tmp_path_factory.mktemp("runs") / "evaluate"
    methods = "fp16 fp32 sgemm_cube engine:hopper:mma.m16n8k16.f32.f16.f16.f32"
    command = f"evaluate --distribution normal --shape 8 32 8 --methods {methods}"
    assert main([*command.split(), "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def comparison_folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "compare"
    command = "compare --methods fp16 markidis ootomo --engines v100 h100 --shape 8 32 8 --distribution normal"
    assert main([*command.split(), "--out", str(out)]) == 0
    return out


def page_of(tmp_path, *folders, options=()):
    target = tmp_path / "report.html"
    assert main(["report", *map(str, folders), "--output", str(target), "--title", "Mine & yours", *options]) == 0
    return target


# -- what it says ------------------------------------------------------------------------------------------------------------
def test_a_page_says_question_verdict_evidence_and_origin(run_folder, comparison_folder, tmp_path):
    text = page_of(tmp_path, run_folder, comparison_folder).read_text()
    assert "<title>Mine &amp; yours</title>" in text
    assert "Is SGEMM-cube accurate enough for" in text and "Verdict" in text and "is generated: " in text
    assert "ascend:cube.m16n16k16.f32.f16.f16.f32" in text and "reconstruction" in text
    assert "hopper:mma.m16n8k16.f32.f16.f16.f32" in text and "hardware: own run" in text
    assert "has the smallest error" in text and "volta:mma.m8n8k4.f32.f16.f16.f32" in text
    assert "<dt>mpgemm</dt>" in text and "<dt>date</dt>" in text
    assert text.count("<img ") == 3


def test_a_page_needs_no_network(run_folder, tmp_path):
    text = page_of(tmp_path, run_folder).read_text()
    loaded = re.findall(r'(?:src|srcset|data)="([^"]*)"|@import|url\(', text)
    assert loaded and all(source.startswith("data:image/png;base64,") for source in loaded)
    assert "<link" not in text


def test_markdown_says_the_same(run_folder, tmp_path, capsys):
    assert main(["report", str(run_folder)]) == 0
    text = capsys.readouterr().out
    assert (
        "*Is SGEMM-cube accurate enough for" in text and "### Caveats" in text and "### What the models rest on" in text
    )
    assert max(map(len, re.findall(r"[\d.]+", text.partition("Computed with")[0].replace("-", "")))) < 12


def test_the_command_is_shown_where_it_was_recorded(tmp_path):
    (tmp_path / "x.json").write_text(
        json.dumps({"command": ["mpgemm", "evaluate", "a.npy"], "environment": {"code": "f" * 64}})
    )
    origin = findings_of(tmp_path).origin
    assert origin["command"] == "mpgemm evaluate a.npy" and origin["code"] == "f" * 16


def test_verdicts_with_reasons_and_recommendations_of_a_comparison(tmp_path):
    verdict = {"text": ["Verdict: fine.", "  because", "Use termwise order."]}
    assert sentences_of(verdict) == ["fine.", "because", "Use termwise order."] and sentences_of(None) == []
    (tmp_path / "results.json").write_text(json.dumps({"inputs": [{"case": "x", "verdict": verdict}], "summaries": []}))
    row = {"case": "y", "engine": "a100", "wanted": "FP32", "method": None, "best": "ootomo"}
    record = {"case": "y", "method": "ootomo", "engine": "ampere:nothing", "relative_frobenius": 1e-7, "overflow_a": 3}
    skipped = {"method": "egemm", "engine": "a100", "reason": "no such words"}
    (tmp_path / "c.json").write_text(json.dumps({"records": [record], "recommendations": [row], "skipped": [skipped]}))
    found = findings_of(tmp_path)
    assert ("x: fine.", ["because"]) in found.verdicts
    assert found.recommendations == ["y, a100: no method compared here reaches FP32.", "x: Use termwise order."]
    assert any("ootomo lost elements" in text for text in found.caveats) and any(
        "egemm was not run" in text for text in found.caveats
    )


def test_constant_columns_are_said_once():
    table, said = without_constants(Table("t", ["m", "n", "empty"], [[1, 2, ""], [1, 3, ""]]))
    assert list(table.headings) == ["n"] and table.rows == [[2], [3]] and said == {"m": 1}
    one = Table("t", ["m"], [[1]])
    assert without_constants(one) == (one, {})
    same = Table("t", ["m"], [[1], [1]])
    assert without_constants(same) == (same, {})


def test_a_file_with_several_tables(tmp_path):
    (tmp_path / "x.csv").write_text("# one\na,b\n1,x\n\n# two\nc\n2.5\n")
    assert [(t.title, list(t.headings), t.rows) for t in read_tables(tmp_path / "x.csv")] == [
        ("one", ["a", "b"], [[1, "x"]]),
        ("two", ["c"], [[2.5]]),
    ]


# -- its colours, which the documentation's site has, too ----------------------------------------------------------------------
def luminance(colour):
    """Relative luminance of WCAG 2.2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_can_be_read_on_both_backgrounds(mode):
    colours = palette()[mode]
    for name in ("foreground-primary", "foreground-secondary", "brand-content", "brand-visited", "caveat", "problem"):
        for ground in ("background-primary", "background-secondary"):
            dark, light = sorted(luminance(colours[f"color-{part}"]) for part in (name, ground))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, ground)  # WCAG 2.2, level AA


def test_style_names_colours_that_the_page_has(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    style = page_of(tmp_path, tmp_path).read_text().partition("</style>")[0]
    assert set(re.findall(r"var\(--([\w-]+)\)", style)) <= set(palette()["light"])
    assert set(palette()["dark"]) <= set(palette()["light"])
    assert all(style.count(f"--{name}: {value};") == 1 for part in palette().values() for name, value in part.items())


# -- damaged folders ---------------------------------------------------------------------------------------------------------
def test_damaged_files_are_named_and_the_rest_is_shown(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "results.json").write_text('{"inputs": [')
    (folder / "other.json").write_text('{"inputs": 3}')
    (folder / "bad.csv").write_text("a,b\n1\n")
    (folder / "empty.csv").write_text("")
    (folder / "good.csv").write_text("name,<b>\n<script>,2\n")
    (folder / "bad.png").write_bytes(b"no picture")
    (folder / "good.png").write_bytes(PNG)
    text = page_of(tmp_path, folder).read_text()
    assert "results.json is damaged" in text and "other.json does not have the expected layout" in text
    assert "bad.csv cannot be read as CSV tables (row 2 has 1 cells, expected 2, one for each heading)" in text
    assert "empty.csv is empty" in text and "bad.png is not a PNG picture" in text
    assert "<td>&lt;script&gt;</td>" in text and text.count("<img ") == 1


def test_a_folder_without_results_among_others(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x.csv").write_text("a\n1\n")
    for options in ((), ("--format", "markdown")):
        text = page_of(tmp_path, tmp_path / "empty", tmp_path / "full", options=options).read_text()
        assert text.count("No tables (.csv) and no pictures (.png) are in this folder.") == 1
    assert main(["report", str(tmp_path / "empty")]) == 2
    assert "no tables" in capsys.readouterr().err


def test_long_tables_say_what_is_left_out(tmp_path):
    (tmp_path / "x.csv").write_text("a\n" + "\n".join(map(str, range(100))) + "\n")
    text = page_of(tmp_path, tmp_path, options=("--rows", "10")).read_text()
    assert text.count("<tr>") == 11 and "90 more rows in x.csv." in text


# -- in a browser ------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def browser():
    selenium = pytest.importorskip("selenium.webdriver", reason="pip install selenium")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("Chromium and chromedriver are not installed (apt-get install chromium chromium-driver)")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = selenium.Chrome(options=options, service=selenium.ChromeService(driver))
    yield found
    found.quit()


def resize(browser, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.mark.parametrize("width", [390, 1280])
def test_it_opens_without_errors_and_without_horizontal_scroll(browser, run_folder, comparison_folder, tmp_path, width):
    resize(browser, width)
    browser.get(page_of(tmp_path, run_folder, comparison_folder).as_uri())
    assert browser.get_log("browser") == []
    assert browser.execute_script("return innerWidth") == width
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    sizes = browser.execute_script(
        "return [...document.images].map(i => [i.complete && i.naturalWidth > 0, i.clientWidth])"
    )
    assert sizes and all(loaded and shown <= width for loaded, shown in sizes)


def test_a_picture_that_is_made_smaller_can_be_shown_whole(browser, run_folder, tmp_path):
    widths = (
        "const [f] = document.querySelectorAll('figure'); return [f.querySelector('img').clientWidth, f.scrollWidth]"
    )
    resize(browser, 390)
    browser.get(page_of(tmp_path, run_folder).as_uri())
    button = browser.find_element("css selector", "figcaption button")
    small, _ = browser.execute_script(widths)
    button.click()
    whole, scrolled = browser.execute_script(widths)
    assert small < 390 < whole == scrolled and button.text == "fit to the page"
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    button.click()
    assert browser.execute_script(widths)[0] == small and button.text == "full size"


COLUMN = "return [...document.querySelectorAll('tbody tr')].map(row => row.cells[arguments[0]].textContent)"


def test_a_click_on_a_heading_sorts(browser, tmp_path):
    (tmp_path / "x.csv").write_text("name,error\nb10,1e-3\na,2e-9\nb9,inf\nc,-5\nd,\ne,30000\n")
    resize(browser, 1280)
    browser.get(page_of(tmp_path, tmp_path).as_uri())
    buttons = browser.find_elements("css selector", "th button")
    assert [button.text for button in buttons] == ["name", "error"]
    buttons[1].click()
    assert browser.execute_script(COLUMN, 0) == ["c", "a", "b10", "e", "b9", "d"]
    assert browser.execute_script("return document.querySelectorAll('th')[1].ariaSort") == "ascending"
    buttons[1].click()
    assert browser.execute_script(COLUMN, 0) == ["d", "b9", "e", "b10", "a", "c"]
    buttons[0].click()
    assert browser.execute_script(COLUMN, 0) == ["a", "b9", "b10", "c", "d", "e"]
    assert browser.execute_script("return document.querySelectorAll('th[aria-sort]').length") == 1
    assert browser.get_log("browser") == []


def test_without_scripts_everything_is_there(browser, run_folder, tmp_path):
    page = page_of(tmp_path, run_folder)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        text = browser.find_element("tag name", "main").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "Verdict" in text and "SGEMM-cube" in text and "relative_frobenius" in text


@pytest.mark.full
def test_it_prints(browser, run_folder, tmp_path):
    browser.get(page_of(tmp_path, run_folder).as_uri())
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF") and 1 <= printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page>") <= 12
