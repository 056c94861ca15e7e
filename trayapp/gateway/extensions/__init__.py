"""Route MCP extensions: tasks, skills, events and Apps of any number of servers, and any extension of only one server.

The id of a task, the address of a skill and the name of an event identify their server, even after the gateway
restarts. wire/capabilities names the implemented revision of each extension. Never here: which servers run, what is
held back, sessions.
"""
