"""Route calls, server requests and notifications between client and backend.

Never here: which servers run, what is listed.
"""
