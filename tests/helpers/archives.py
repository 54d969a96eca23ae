"""Change unpacked archives, and adjust their description and checksums."""

import json

from strata.archive import checksums, crate, metadata, zip_file


def unpack(archive, folder):
    """An archive unpacked into a folder that is made."""
    folder.mkdir()
    zip_file.unpack_archive(str(archive), str(folder))
    return folder


def put(value, keys, new):
    """Change a value of JSON at a place such as ``measured.cells``; `...` removes it.

    keys: also a list, of keys with dots in them.  At a place of a list the rest of it is replaced.
    """
    *above, last = keys.split(".") if isinstance(keys, str) else keys
    for key in above:
        value = value[int(key)] if isinstance(value, list) else value.setdefault(key, {})
    if new is ...:
        del value[last]
    elif isinstance(value, list):
        value[int(last) :] = [new]
    else:
        value[last] = new


def change(path, keys, new):
    """Change a file: a place of its JSON, or, with empty `keys`, all of its bytes."""
    content = path.read_bytes() if path.exists() else b""
    if keys:
        value = json.loads(content)
        put(value, keys, new)
        content = json.dumps(value).encode()
    else:
        content = new(content) if callable(new) else new
    path.write_bytes(content)


def describe(folder):
    """Write crate and checksums for the contents of a folder."""
    facts = json.loads((folder / metadata.FACTS).read_text())
    (folder / crate.FILE).write_text(crate.format_crate(str(folder), facts))
    checksums.write_checksums(str(folder))


def sign(folder, **given):
    """Write description, crate and checksums, as of somebody who changed the contents knowingly."""
    facts = json.loads((folder / metadata.FACTS).read_text())
    given = {key: given.get(key, facts[key]) for key in metadata.GIVEN}
    facts = metadata.collect_facts(str(folder), given)
    (folder / metadata.FACTS).write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    (folder / metadata.README).write_text(metadata.format_readme(facts))
    describe(folder)
