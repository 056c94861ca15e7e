"""The stdio process that an AI tool starts: it joins the tool to the gateway.

Never here: what costs start-up time (relay).
"""
