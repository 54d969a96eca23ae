"""The archive of a project: written, checked, made again from its logs, and compared with others.

make, zip_file: put it together, as one file.  source, metadata, crate, checksums: what it says of
itself.  private, secrets, wrappings: what must not be in it.  check, remake, rebuild, sandbox: what
a reader does with it.  compare: two or more.  output: the folder that a command writes.
"""
