"""Retired kinds of Karpenter to those of today, with a row of a report for every field. Pure, as its room."""
