"""Route MCP extensions to any number of servers: tasks, skills, events, Apps, and unknown ones.

What a server hands out (a task's id, a skill's address, an event's name) leads back to that server, because it names
the server. So it outlives the gateway. wire/capabilities says which revision of each is followed. Never here: which
servers run, what is held back, sessions.
"""
