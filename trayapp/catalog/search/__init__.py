"""Tool search: query and tools as stems, candidates by SQLite's bm25, and a score for how well each tool answers.

Never here: which tools a session may see, texts for people, I/O.
"""
