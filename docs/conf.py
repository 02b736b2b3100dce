"""How sphinx builds the site: `make docs`."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

from generated_pages import PUBLIC  # noqa: E402

from mpgemm.reporting.html_report import palette  # noqa: E402

project = "mpgemm"
author = "The mpgemm authors"
copyright = "the mpgemm authors, BSD-3-Clause"
release = version = installed_version("mpgemm")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
    "myst_nb",
    # of this folder
    "generated_pages",
    "playground",
    "run_blocks",
    "mathml",
    "quick_build",
    "search_texts",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
exclude_patterns = ["_ext", "_templates", "playground"]
templates_path = ["_templates"]
highlight_language = "none"
suppress_warnings = ["mystnb.unknown_mime_type", "misc.highlighting_failure"]  # output below a command is no code

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
#: These need extras: their stored results are shown.
nb_execution_excludepatterns = ["notebooks/torch.ipynb", "notebooks/pytest.ipynb"]
nb_execution_show_tb = True

autosummary_generate = [f"api/{module}.md" for module in PUBLIC]
autosummary_imported_members = True
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
default_role = "py:obj"
smartquotes = False  # they take seconds, and code is quoted as it is typed

html_theme = "furo"
html_title = "mpgemm"
#: The colours and fonts of the report that `mpgemm report` writes, too.
html_theme_options = {f"{mode}_css_variables": values for mode, values in palette().items()}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
#: `make site` builds each version beside the others and sets the tag; the switch lists them.
html_context = {"hosted": tags.has("hosted")}  # type: ignore[name-defined] # noqa: F821
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "version_switch.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_copy_source = False
html_show_search_summary = False  # a page opened from disk may not fetch others: search_texts.py has what they say
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True

#: Pages whose code blocks run and show what they print; those of all other pages are only checked.
run_pages = ["quickstart", "tutorials/*", "how-to/*"]
#: Pages among these whose blocks need a GPU's recording.
checked_pages = ["how-to/logits"]
