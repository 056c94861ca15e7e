"""The history of calls: what is kept of one, the file, and writing it beside the calls.

Never here: what a call is (gateway/calls), how it is shown.
"""
