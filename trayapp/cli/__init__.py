"""One function a verb: parse, one call, print.

Never here: anything that outlives the verb.
"""
