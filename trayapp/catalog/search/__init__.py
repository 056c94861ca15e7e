"""Tool search: a query is compared with tools by stems. SQLite's bm25 finds candidates, and a score ranks them.

Never here: which tools a session may see, texts for people, I/O.
"""
