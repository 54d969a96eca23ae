"""The operations of the social-events site: the published matrix, mix and thresholds."""

OPERATIONS = [
    *["HomePage", "Login", "TagSearch", "EventDetail"],
    *["PersonDetail", "AddPerson", "AddEvent"],
]
# As published: after the operation of a row, the share of each next one, in per cent and in the
# order of OPERATIONS.
MATRIX = {
    "HomePage": [0, 11, 52, 36, 0, 1, 0],
    "Login": [0, 0, 60, 20, 0, 0, 20],
    "TagSearch": [21, 6, 41, 31, 0, 1, 0],
    "EventDetail": [72, 21, 0, 0, 6, 1, 0],
    "PersonDetail": [52, 6, 0, 31, 11, 0, 0],
    "AddPerson": [0, 0, 0, 0, 100, 0, 0],
    "AddEvent": [0, 0, 0, 100, 0, 0, 0],
}
FLOWS = {operation: dict(zip(OPERATIONS, row, strict=True)) for operation, row in MATRIX.items()}
# As published, for 1,500 users: the share of each operation in per cent, and the threshold of its
# mean latency in ms.
MIX = dict(zip(OPERATIONS, [26.14, 10.22, 33.37, 24.71, 2.65, 0.86, 2.04], strict=True))
THRESHOLDS = dict(zip(OPERATIONS, [250, 250, 250, 250, 500, 500, 500], strict=True))
# As published: the share of sessions whose browser has none of the site's own files.
EMPTY_CACHES = 0.4
