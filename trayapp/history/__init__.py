"""The history of calls: its rows, its file, and a recorder that does not delay calls.

Never here: how calls are made (gateway/calls), how the history is shown.
"""
