"""The operations of the auctions: their mix, their order, and the limits of their latency."""

# As published: users who attend one auction.
USERS_OF_AN_AUCTION = 15
# As published: the share of each operation in per cent.
MIX = {
    "HomePage": 0.93,
    "Login": 0.93,
    "GetActiveAuctions": 15.1,
    "GetAuctionDetail": 7.59,
    "GetUserProfile": 0.93,
    "UpdateUserProfile": 0.46,
    "JoinAuction": 6.93,
    "GetCurrentItem": 7.0,
    "GetNextBid": 39.75,
    "PlaceBid": 2.8,
    "LeaveAuction": 5.2,
    "GetBidHistory": 0.46,
    "GetAttendanceHistory": 0.47,
    "GetPurchaseHistory": 0.93,
    "GetItemDetail": 7.59,
    "GetImageForItem": 0.4,
    "AddItem": 1.38,
    "AddImageForItem": 0.22,
    "Logout": 0.93,
}
# The mean cycle in seconds, as published, to which the following limits belong.
CYCLE = 5.0
# As published: the seconds within which 99 of 100 answers come.  GetNextBid waits for other users'
# bids, and has no limit.
LIMITS = {
    **{operation: 2.0 for operation in MIX if operation != "GetNextBid"},
    **dict.fromkeys(["Login", "JoinAuction", "GetCurrentItem", "Logout"], 3.0),
    **dict.fromkeys(["GetImageForItem", "AddImageForItem"], 5.0),
}
# Of 10,000 operations, how often one follows another.  The order was not published; these are whole
# walks of a user (who joins before bidding) whose sums are the published mix.
FLOWS = {
    "HomePage": {"Login": 93},
    "Login": {"GetActiveAuctions": 93},
    "GetActiveAuctions": {"GetAuctionDetail": 759, "JoinAuction": 693, "AddItem": 58},
    "GetAuctionDetail": {"GetItemDetail": 759},
    "GetItemDetail": {"GetActiveAuctions": 719, "GetImageForItem": 40},
    "GetImageForItem": {"GetActiveAuctions": 40},
    "JoinAuction": {"GetCurrentItem": 693},
    "GetCurrentItem": {"GetNextBid": 700},
    "GetNextBid": {
        "GetNextBid": 2995,
        "PlaceBid": 280,
        "GetCurrentItem": 7,
        "LeaveAuction": 520,
        "Logout": 93,
        "AddItem": 80,
    },
    "PlaceBid": {"GetNextBid": 280},
    "LeaveAuction": {"GetActiveAuctions": 427, "GetUserProfile": 93},
    "GetUserProfile": {"GetPurchaseHistory": 93},
    "GetPurchaseHistory": {"UpdateUserProfile": 46, "GetAttendanceHistory": 47},
    "UpdateUserProfile": {"GetBidHistory": 46},
    "GetBidHistory": {"GetActiveAuctions": 46},
    "GetAttendanceHistory": {"GetActiveAuctions": 47},
    "AddItem": {"GetActiveAuctions": 116, "AddImageForItem": 22},
    "AddImageForItem": {"GetActiveAuctions": 22},
    "Logout": {"HomePage": 93},
}


def find_limit(operation: str, cycle: float) -> float | None:
    """Return the seconds within which an answer is in time; None for an operation without limit.

    The load generator counts late answers by it, and parse.py leaves out operations without one.
    cycle: the mean time between the beginnings of a user's operations, in seconds, to which the
    limits are proportional.
    """
    return LIMITS[operation] * cycle / CYCLE if operation in LIMITS else None
