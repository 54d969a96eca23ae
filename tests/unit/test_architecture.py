"""What is written down twice is written alike."""

import subprocess
import sys

import projects


def test_what_zenodo_and_codemeta_are_told_is_what_the_citation_says():
    command = [sys.executable, "scripts/citation.py", "--check"]
    done = subprocess.run(command, cwd=projects.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_tables_of_keys_are_those_of_the_schemas():
    command = [sys.executable, "scripts/site/keys.py", "--check"]
    done = subprocess.run(command, cwd=projects.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
