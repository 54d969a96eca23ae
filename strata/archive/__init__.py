"""One file that holds all that a result rests on, its verification, and the paper made from it again.

``make`` puts it together and ``container`` is the file; ``source`` has the project's own files and their name,
``private`` what must not leave the machine, ``guide`` and ``crate`` what describes it, ``sums`` its checksums;
``check`` says whether it holds together, ``derive`` makes tables and papers of it again, ``rebuild`` the paper.
"""
