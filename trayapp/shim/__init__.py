"""The shim: the stdio process that an AI tool starts. It connects the tool to the gateway.

Never here: imports that cost start-up time (see relay).
"""
