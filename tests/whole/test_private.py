"""What is private on the machine that measured is in no archive: real R, LaTeX and Snakemake."""

import hashlib
import json
import os
import subprocess
import types
import zipfile

import measured
import pytest

from strata.archive import check, make, private, rebuild
from strata.experiment import plan

USER, HOST, TOKEN = "zoequill", "quillbox", "gh" + "p_" + "a1B2" * 9


def plant(folder):
    """Put private things wherever a run might leave some; gives the texts that no archive may hold."""
    secrets = folder / "secrets"
    secrets.mkdir()
    (secrets / "id_ed25519").write_text("planted-key-file\n")
    (folder / ".env").write_text("TOKEN=planted-env-file\n")
    subprocess.run(["git", "-C", folder, "add", "secrets", ".env"], check=True)
    page = folder / "config.yaml"
    page.write_text(f"# Of {USER}, on {HOST}.\n" + page.read_text().replace("image:\n", "image:\n", 1))
    planned = folder / "results/plan.json"
    experiment = json.loads(planned.read_text())
    experiment["environments"]["docker"]["label"] = f"Docker at {HOST}"
    stream = experiment["workloads"]["stream"]
    stream["parameters"]["listing"] = "/mnt/planted-disk/list"
    stream["cell"]["files"] = ["listing"]
    stream["notes"] = [f"Read from /home/{USER}/planted-home."]
    planned.write_text(json.dumps(experiment, indent=1, ensure_ascii=False) + "\n")
    log = folder / "results/raw/native/stream/1.log"
    log.write_text(f"{USER}@{HOST}: {folder}/results, token {TOKEN}\n" + log.read_text())
    content = log.read_bytes()
    for path in folder.glob("results/raw/*/*/*.json"):
        record = json.loads(path.read_text())
        record["observed"]["host"]["static"]["machine"] = f"box of {USER}"
        if path == log.with_suffix(".json"):
            record["log"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        if record["workload"] == "stream":
            record["parameters"]["listing"] = "/mnt/planted-disk/list"
            record["fingerprint"] = plan.fingerprint(experiment, record["environment"], "stream")
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    (folder / "results/raw/docker/linpack/3.log").unlink()
    (folder / "results/raw/docker/linpack/3.json").unlink()
    error = f"cell failed: {folder}/x and /home/{USER}/y with {TOKEN} on {HOST}"
    measured.write_json(folder / "results/failed/docker/linpack/3.json", {"error": error})
    (folder / "results/failed/docker/linpack/3.log").write_text(error + "\n")
    return [USER, HOST, TOKEN, str(folder), "planted-key-file", "planted-env-file", "planted-disk"]


@pytest.mark.long
def test_what_is_private_is_in_no_file_of_an_archive(tmp_path, monkeypatch):
    folder = measured.project(tmp_path / "project", monkeypatch)
    planted = plant(folder)
    rebuild.remake(str(folder), True)
    assert USER in (folder / "paper/report.html").read_text()
    for key in ("USER", "LOGNAME"):
        monkeypatch.setenv(key, USER)
    monkeypatch.setattr(os, "uname", lambda: types.SimpleNamespace(nodename=HOST))
    make.make("archive.zip", False)
    assert check.verify("archive.zip") == []
    with zipfile.ZipFile("archive.zip") as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    text = tmp_path / "paper.txt"
    pdf = tmp_path / "paper.pdf"
    pdf.write_bytes(held["paper/report.pdf"])
    subprocess.run(["pdftotext", "-layout", pdf, text], check=True)
    held["text of the PDF"] = text.read_bytes()
    page = private.unpacked(held["paper/report.html"].decode())
    held["page with its drawings"] = page.encode()
    leaks = [(name, word) for name, content in held.items() for word in planted if word.encode() in content]
    assert leaks == []
    assert (
        b"REDACTED-USER@REDACTED-HOST: REDACTED-PATH/results, token REDACTED-SECRET"
        in (held["results/raw/native/stream/1.log"])
    )
    assert json.loads(held["results/plan.json"])["workloads"]["stream"]["parameters"]["listing"] == "REDACTED-PATH/list"
    assert any("Docker at REDACTED-HOST" in drawing for drawing in page.split("<svg ")[1:])
    assert b"partial" in held["text of the PDF"].lower()
    # In a narrow column it goes on in the next line.
    inline = subprocess.check_output(["pdftotext", pdf, "-"], text=True)
    assert "REDACTED-PATH/list" in "".join(inline.split())
    untouched = "results/raw/native/stream/2.log"
    assert held[untouched] == (folder / untouched).read_bytes()
    listed = json.loads(held["rewritten.json"])["files"]
    assert listed["results/raw/native/stream/1.log"] == {
        "REDACTED-HOST": 1,
        "REDACTED-PATH": 1,
        "REDACTED-SECRET": 1,
        "REDACTED-USER": 1,
    }
    assert untouched not in listed
