"""What a web page of ours must keep, in headless Chromium; `python tests/pages.py PAGE` tells what it lacks."""

import importlib.resources
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

WIDTHS = (400, 1280)
SCHEMES = ("light", "dark")
MOST_BYTES = 1_000_000
# Of long lists of the like axe looks at three, and of a drawing, which is one image, at nothing within.
_RULES = """const done = arguments[1];
const page = {exclude: [['#runs li:nth-child(n + 4)'], ['svg > *']]};
axe.run(page, {resultTypes: ['violations'], ...arguments[0]})
  .then((found) => done(found.violations), (error) => done([{id: String(error), nodes: [], help: 'axe failed'}]))"""
# In the dark nothing but the colours is another.
_COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
# Columns that a reader of a wide screen does not see before he scrolls.
_HIDDEN = """return [...document.querySelectorAll('figure.table .scroll')]
  .filter((box) => box.scrollWidth > box.clientWidth + 1)
  .map((box) => `${box.getAttribute('aria-label')}: ${box.scrollWidth - box.clientWidth} pixels behind a scroll bar`)"""
# Drawings that wait for the page's script.
_PACKED = "return document.getElementById('drawings') !== null"
_TOO_WIDE = "return document.documentElement.scrollWidth - innerWidth"
# A table or figure that stands before any sentence of its section.
_FIRST = """return [...document.querySelectorAll('main h2, main h3')].filter(
  (head) => head.nextElementSibling?.matches('figure')).map((head) => head.textContent)"""
# What is in a drawing is drawn when it comes near: which wait, and a way to each.
_WAITING = "return document.querySelectorAll('figure.drawing svg:empty').length"
_NEAR = """document.querySelector('figure.drawing svg:empty')?.scrollIntoView({behavior: 'instant'})"""
# Where a drawing is pointed at, and what is told then.
_POINT = """const told = (svg) => {
  const spot = svg?.spots?.[0];
  if (!spot) return '';
  const at = new DOMPoint(spot.x, spot.y).matrixTransform(svg.getScreenCTM());
  const here = document.querySelector('.told-here');
  here.hidden = true;
  svg.dispatchEvent(new PointerEvent('pointermove', {bubbles: true, clientX: at.x, clientY: at.y}));
  return here.hidden ? '' : here.textContent;
};
const drawings = [...document.querySelectorAll('figure.drawing')];"""
_SILENT = _POINT + "return drawings.filter((one) => !told(one.querySelector('svg'))).map((one) => one.id)"
# A cell that repeats the one above, for those who see it, and is empty for those who hear it.
_EMPTY = """return [...document.querySelectorAll('.repeat')].filter((one) => !one.textContent).length"""
# A number that says that it links to where the one before it does, and does not.
_UNLINKED = """return [...document.querySelectorAll('tr[data-links]')].filter((row) => {
  const cells = [...row.cells];
  const first = cells.findIndex((cell) => cell.querySelector('a'));
  return first < 0 || cells.slice(first).some((cell) => /\\d/.test(cell.textContent) && !cell.querySelector('a'));
}).length"""
# What a point tells when it is pointed at.
_TOLD = _POINT + "return told(drawings[0]?.querySelector('svg'))"
# Lists of runs whose content waits until they are opened: of each kind some are, as by a reader.
_OPENED = """const lists = [...document.querySelectorAll('#runs > details')];
for (const one of [...lists.slice(0, 5), ...lists.slice(-5)]) one.querySelector('summary').click();"""
_UNFILLED = "return document.querySelectorAll('#runs > details[open] > noscript').length"
# The numbers that lead to runs: the first or the last is followed, and whether what it leads to is seen.
_FOLLOWED = """const links = [...document.querySelectorAll('td a[data-at], a.value[data-at]')];
links.at(arguments[0])?.click();
return links.at(arguments[0])?.dataset.at"""
_SHOWN = "return document.getElementById(arguments[0])?.getClientRects().length > 0"


def patient(driver: webdriver.Chrome, seconds: float = 20) -> WebDriverWait:
    """Waits for what a page shows, also while another page or row comes into the place of what was found.

    Chromium has several names for that, one of them for errors that it does not know.
    """
    return WebDriverWait(driver, seconds, ignored_exceptions=[WebDriverException])


def shown(driver: webdriver.Chrome, selector: str, words: str) -> str:
    """Wait until what a selector finds first says these words; all that it says."""

    def says(it: webdriver.Chrome) -> str:
        text = it.find_element("css selector", selector).text
        return text if words in text else ""

    return patient(driver).until(says)


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """The distribution's browser, without a window and without a network."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost"):  # fmt: skip
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
    WebDriverWait(driver, 20).until(lambda it: not it.execute_script(_PACKED))


def draw_all(driver: webdriver.Chrome) -> None:
    """Come near every drawing of the page, as a reader does, and wait until all are drawn."""

    def none_waits(it: webdriver.Chrome) -> bool:
        it.execute_script(_NEAR)
        return it.execute_script(_WAITING) == 0

    WebDriverWait(driver, 60).until(none_waits)


def findings(driver: webdriver.Chrome, page: Path) -> list[str]:
    """All that is wrong with a page, in sentences."""
    found = []
    size = page.stat().st_size
    if size > MOST_BYTES:
        found.append(f"it is of {size} bytes")
    axe = (importlib.resources.files("axe_selenium_python") / "node_modules/axe-core/axe.min.js").read_text()
    for width in WIDTHS:
        for scheme in SCHEMES:
            show(driver, page, width, scheme)
            driver.execute_script(_OPENED)
            WebDriverWait(driver, 20).until(lambda it: not it.execute_script(_UNFILLED))
            driver.execute_script(axe)
            for one in driver.execute_async_script(_RULES, {} if scheme == "light" else _COLOURS):
                places = "; ".join(node["html"][:120] for node in one["nodes"][:3])
                found.append(f"at {width} pixels, {scheme}: {one['id']} ({len(one['nodes'])}): {one['help']}: {places}")
        show(driver, page, width, SCHEMES[0])
        if driver.execute_script(_TOO_WIDE) > 0:
            found.append(f"at {width} pixels it is too wide by {driver.execute_script(_TOO_WIDE)}")
    draw_all(driver)
    found += driver.execute_script(_HIDDEN)
    found += [f"a float before any sentence: {head}" for head in driver.execute_script(_FIRST)]
    found += [f"its points tell nothing: {name}" for name in driver.execute_script(_SILENT)]
    if empty := driver.execute_script(_EMPTY):
        found.append(f"{empty} cells that repeat the ones above are empty")
    if unlinked := driver.execute_script(_UNLINKED):
        found.append(f"{unlinked} rows have numbers that lead nowhere")
    for place in (0, -1):
        name = driver.execute_script(_FOLLOWED, place)
        try:
            WebDriverWait(driver, 5).until(lambda it, name=name: name is None or it.execute_script(_SHOWN, name))
        except TimeoutException:
            found.append(f"a number leads to {name}, which is not shown")
    return found


def told(driver: webdriver.Chrome, page: Path) -> str:
    """What the first point of a page's drawings tells when it is pointed at."""
    show(driver, page, WIDTHS[-1], SCHEMES[0])
    draw_all(driver)
    return driver.execute_script(_TOLD)


if __name__ == "__main__":
    with chromium() as browser:
        wrong = [f"{name}: {one}" for name in sys.argv[1:] for one in findings(browser, Path(name))]
        print("\n".join(wrong))
        for name in sys.argv[1:]:
            print(f"{name}: a point tells: {told(browser, Path(name))}")
    sys.exit(bool(wrong))
