"""One file that holds all that a result rests on, its verification, and the paper made from it again.

``container`` is the file, ``source`` the project's own files, ``swhid`` the name that follows from them,
``private`` what must not leave the machine, ``stage`` what goes in and from where, ``guide`` and ``crate`` what
describes it, ``sums`` its checksums, ``check`` whether it holds together, ``rebuild`` the paper from it.
"""
