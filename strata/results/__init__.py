"""What was measured, and what is made of it: whose record is good, which files there are, of what each was made.

``judge`` says whose record is good, ``products`` is the list that rules, archive, rebuild and verification ask,
``digests`` are checksums of files, ``made`` is what is noted beside each product.
"""
