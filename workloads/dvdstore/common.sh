# shellcheck shell=bash
# Sourced by the other scripts: where a shop's files are, and what all shops have alike.

# A shop has its own folder, by its number from 0.
# shellcheck disable=SC2034  # the scripts that source this use them
home=/data/dvdstore database=shop
