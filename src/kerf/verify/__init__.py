"""The last line before a plan is printed or acted on: a second reader that puts it to plain rules.

It shares nothing with the search but the values that both read. A mistake of the search is not made twice, then.
"""
