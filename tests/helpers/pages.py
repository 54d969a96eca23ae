"""Check in headless Chromium the rules that our web pages must keep.

`python tests/helpers/pages.py PAGE` lists the faults of a page.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import projects
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

# What npm installs for the tests (scripts/setup.sh).
AXE = projects.ROOT / ".venv/node_modules/axe-core/axe.min.js"
WIDTHS = (400, 1280)
SCHEMES = ("light", "dark")
MAX_BYTES = 1_000_000
_RULES = """const done = arguments[0];
axe.run(document, {resultTypes: ['violations']})
  .then(
    (found) => done(found.violations),
    (error) => done([{id: String(error), nodes: [], help: 'axe failed'}])
  )"""
_TOO_WIDE = "return document.documentElement.scrollWidth - innerWidth"
_LOST = """return [...document.querySelectorAll('a[href^="#"]')]
  .map((link) => link.getAttribute('href').slice(1))
  .filter((name) => !document.getElementById(name))"""
_FILES = """return [...document.querySelectorAll('main a')].map((link) => link.getAttribute('href'))
  .filter((name) => !/^(#|[a-z]+:)/.test(name))"""
# A table is sorted by a button in its heading: up, then down.
_SORTED = """const button = document.querySelector('th button');
const cells = () => [...button.closest('table').tBodies[0].rows]
  .map((row) => row.cells[0].textContent);
button.click();
const up = cells();
button.click();
return button.parentNode.getAttribute('aria-sort') === 'descending' && cells()[0] === up.at(-1)"""


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """The distribution's browser, without a window and without a network."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
    ):
        options.add_argument(argument)
    driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
    try:
        driver.set_script_timeout(100)
        yield driver
    finally:
        driver.quit()


def show(driver: webdriver.Chrome, page: Path, width: int, scheme: str) -> None:
    """Open a page at a width, in light or dark."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(page.resolve().as_uri())


def findings(driver: webdriver.Chrome, page: Path) -> list[str]:
    """All that is wrong with a page, in sentences."""
    found = []
    size = page.stat().st_size
    if size > MAX_BYTES:
        found.append(f"it is of {size} bytes")
    for width in WIDTHS:
        for scheme in SCHEMES:
            show(driver, page, width, scheme)
            driver.execute_script(AXE.read_text())
            for one in driver.execute_async_script(_RULES):
                places = "; ".join(node["html"][:120] for node in one["nodes"][:3])
                count = len(one["nodes"])
                found.append(
                    f"at {width} pixels, {scheme}: {one['id']} ({count}): {one['help']}: {places}"
                )
        if driver.execute_script(_TOO_WIDE) > 0:
            found.append(f"at {width} pixels it is too wide by {driver.execute_script(_TOO_WIDE)}")
    found += [f"a link leads nowhere: #{name}" for name in driver.execute_script(_LOST)]
    files = set(driver.execute_script(_FILES))
    found += [
        f"a link leads to no file: {name}"
        for name in sorted(files)
        if not (page.parent / name).exists()
    ]
    if not driver.execute_script(_SORTED):
        found.append("a table is not sorted by its heading")
    return found


if __name__ == "__main__":
    with chromium() as browser:
        wrong = [f"{name}: {one}" for name in sys.argv[1:] for one in findings(browser, Path(name))]
        print("\n".join(wrong))
    sys.exit(bool(wrong))
