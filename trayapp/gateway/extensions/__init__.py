"""Extensions of MCP through any number of servers: tasks, skills, events, Apps, and what nobody has heard of.

What a server hands out (a task's id, a skill's address, an event's name) leads back to that server by itself: it names
the server, so it outlives the gateway. wire/capabilities says which revision of each is followed.
Never here: which servers run, what is held back, sessions.
"""
