"""The documentation site: it is built strictly, asks no network for anything, and its search finds."""

import contextlib
import functools
import http.server
import shutil
import subprocess
import threading

import pages
import projects
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "built"
    done = subprocess.run(
        [projects.ROOT / "scripts/site.sh", folder], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_document_has_a_page_and_every_kind_its_own(site):
    docs = projects.ROOT / "docs"
    for page in docs.rglob("*.md"):
        assert (site / page.relative_to(docs)).with_suffix(".html").exists(), page
    home = (site / "index.html").read_text()
    for name in ("tutorial", "how-to/plan-an-experiment", "reference/workloads", "method", "gallery"):
        assert f'href="{name}.html' in home
    for page, key in (("config", "repetitions.target"), ("virtual-machines", "profiles.NAME.pin")):
        assert f"<code>{key}</code>" in (site / f"{page}.html").read_text()


def test_a_broken_link_fails_the_build(site, tmp_path):
    for path in projects.ROOT.iterdir():
        if path.name not in ("docs", "site", ".git"):
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / "scripts").unlink()
    shutil.copytree(projects.ROOT / "scripts", tmp_path / "scripts")
    shutil.copytree(projects.ROOT / "docs", tmp_path / "docs")
    page = tmp_path / "docs/aa.md"
    page.write_text(page.read_text() + "\n[one](absent.md) [two](statistics.md#absent) [three](../absent)\n")
    build = [tmp_path / "scripts/site.sh", tmp_path / "built"]
    done = subprocess.run(build, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode != 0
    assert "aa.md links ../absent, which is not in the project" in done.stderr
    page.write_text(page.read_text().replace(" [three](../absent)", ""))
    done = subprocess.run(build, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode != 0
    for link in ("'absent.md'", "'statistics.md#absent'"):
        assert f"'aa.md' contains a link {link}" in done.stderr


@contextlib.contextmanager
def served(folder):
    """The address of a server of a folder, on loopback alone."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_in_a_browser_nothing_else_is_asked_and_the_search_finds(site):
    with served(site) as address, pages.chromium() as driver:
        for name in ("index", "architecture", "gallery", "config"):
            driver.get(f"{address}/{name}.html")
            asked = driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
            assert asked
            assert [one for one in asked if not one.startswith((address, "data:", "blob:"))] == []
            broken = "return [...document.images].filter((one) => !one.naturalWidth).map((one) => one.src)"
            assert driver.execute_script(broken) == []
        driver.get(f"{address}/index.html?q=namespace")
        found = WebDriverWait(driver, 30).until(
            lambda shown: shown.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
        )
        assert any("client" in (link.get_attribute("href") or "") for link in found)
        refused = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
        assert refused == []
