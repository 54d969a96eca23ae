"""The archive of a project: written, checked, made again from its logs, and compared with others.

make, light, zip_file, seal: write it, as one file.  source, metadata, crate, checksums: describe
it.  private, secrets, extraction: search it for private texts.  check, remake, rebuild, sandbox:
make its tables and papers again.  compare, pool: read several.  output: the folder that a command
writes.
"""
