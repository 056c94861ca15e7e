"""The verbs of the command line, one function each: parse the arguments, make one call, print.

Never here: anything that outlives the verb.
"""
