"""Calls, requests of servers and notifications, each on its way between client and backend.

Never here: which servers run, what is listed.
"""
