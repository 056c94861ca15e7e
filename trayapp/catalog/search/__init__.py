"""Tool search: a query and the tools as stems, the candidates by SQLite's bm25, and how well each one answers.

Never here: which tools a session may see, texts for people, I/O.
"""
