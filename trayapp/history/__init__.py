"""The history of calls: the row of each call, the file, and writing it without delaying calls.

Never here: what a call is (gateway/calls), how the history is shown.
"""
