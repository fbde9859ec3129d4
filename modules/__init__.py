"""The plug-ins that come along, written as a user would write theirs: a file, a class, and nothing imported but `gossamer`.

A file that is put here is a module by its name: `modules/titles.py` is `--module titles`.
"""
