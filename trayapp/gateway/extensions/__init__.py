"""Route MCP extensions to any number of servers: tasks, skills, events, Apps, and unknown ones.

The id of a task, the address of a skill and the name of an event lead back to their server, even after the gateway
restarts. wire/capabilities names the followed revision of each extension. Never here: which servers run, what is held
back, sessions.
"""
