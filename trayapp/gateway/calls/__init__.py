"""One request on its way between client and server, in both directions, and what servers tell by themselves.

Never here: which servers run, what is listed.
"""
